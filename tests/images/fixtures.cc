// SPDX-License-Identifier: Apache-2.0
#include "tests/images/fixtures.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace abl::images {
namespace {

Image read_pixels(std::istream& file, int width, int height) {
  Image image = black(width, height);
  file.read(reinterpret_cast<char*>(image.pixels.data()), static_cast<std::streamsize>(image.pixels.size()));
  if (!file) throw std::runtime_error{"fixtures.bin breaks off: run tests/images/make_fixtures.py"};
  return image;
}

Words words_of(std::istream& line) { return {std::istream_iterator<std::string>{line}, {}}; }

NumberCase read_numbers(std::istream& line) {
  NumberCase number;
  line >> number.policy;
  std::string word;
  while (line >> word && word != "=") number.arguments.push_back(word);
  for (const auto& value : words_of(line)) number.expected.push_back(std::stod(value));
  return number;
}

void read_record(std::istream& file, const std::string& text, Fixtures& all) {
  std::istringstream line{text};
  std::string kind;
  int width = 0, height = 0;
  line >> kind;
  if (kind == "picture") {
    std::string name;
    line >> name >> width >> height;
    all.pictures.emplace(name, read_pixels(file, width, height));
  } else if (kind == "image") {
    ImageCase image;
    line >> image.operation >> image.picture >> image.bound >> width >> height;
    image.arguments = words_of(line);
    image.expected = read_pixels(file, width, height);
    all.images.push_back(std::move(image));
  } else if (kind == "numbers") {
    all.numbers.push_back(read_numbers(line));
  } else {
    throw std::runtime_error{"fixtures.bin: no record begins with \"" + kind + "\""};
  }
}

}  // namespace

const Fixtures& fixtures() {
  static const Fixtures kAll = [] {
    std::ifstream file{ABLATE_SOURCE_DIR "/tests/images/fixtures.bin", std::ios::binary};
    Fixtures all;
    for (std::string line; std::getline(file, line);) read_record(file, line, all);
    if (all.images.empty()) throw std::runtime_error{"there is no tests/images/fixtures.bin"};
    return all;
  }();
  return kAll;
}

}  // namespace abl::images
