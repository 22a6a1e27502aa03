// SPDX-License-Identifier: Apache-2.0
// The C++ side of bench/augmentation/bench.py: augmentation_server FILE WIDTH HEIGHT, a file of raw pixels.
// Reads "REPEATS OPERATION ARGUMENT…" from stdin, a line each, applies the operation so often to that image
// and answers with the seconds it took.
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "tests/images/named_operation.h"

int main(int argc, char** argv) {
  using namespace abl::images;
  if (argc != 4) return 2;
  std::ifstream file{argv[1], std::ios::binary};
  const Image image{std::stoi(argv[2]), std::stoi(argv[3]), {std::istreambuf_iterator<char>{file}, {}}};
  if (image.pixels.size() != image.row_bytes() * static_cast<std::size_t>(image.height)) return 2;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    int repeats = 0;
    std::string operation;
    words >> repeats >> operation;
    const Words arguments{std::istream_iterator<std::string>{words}, {}};
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) apply_named(operation, image, arguments);
    std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << std::endl;
  }
}
