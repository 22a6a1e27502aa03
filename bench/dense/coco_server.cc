// SPDX-License-Identifier: Apache-2.0
// Our side of coco_evaluation.py: reads truths and detections from a file, then for each line with a number
// of threads scores all of them once, on so many, and answers with the seconds that it took and the AP.
//   coco_server FILE (boxes|masks) CATEGORIES SIDE
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "images/masks/coded.h"
#include "scoring/coco.h"

namespace {

using namespace abl;

struct Picture {
  std::vector<images::Instance> truths;
  std::vector<scoring::Detection> found;
};

/// "picture", then "truth CATEGORY LEFT TOP WIDTH HEIGHT AREA CROWD COUNTS" and "found CATEGORY LEFT TOP
/// WIDTH HEIGHT SCORE COUNTS"; COUNTS is - without masks.
std::vector<Picture> read(const char* file, int side) {
  std::vector<Picture> pictures;
  std::ifstream in{file};
  const auto mask = [&](const std::string& counts) {
    return counts == "-" ? images::Mask{} : images::mask_of_compressed(counts, side, side);
  };
  std::string word, counts;
  while (in >> word) {
    if (word == "picture") {
      pictures.emplace_back();
      continue;
    }
    int category = 0;
    images::Box box;
    double value = 0;
    bool crowd = false;
    in >> category >> box.left >> box.top >> box.width >> box.height >> value;
    if (word == "truth") in >> crowd;
    in >> counts;
    if (word == "truth")
      pictures.back().truths.push_back(
          {.category = category, .box = box, .mask = mask(counts), .area = value, .crowd = crowd});
    else
      pictures.back().found.push_back(
          {.category = category, .score = value, .box = box, .mask = mask(counts)});
  }
  return pictures;
}

double score(const std::vector<Picture>& pictures, scoring::Regions regions, int categories, int threads) {
  std::vector<scoring::ImageMatches> matches(pictures.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < pictures.size();)
      matches[i] = scoring::match(pictures[i].truths, pictures[i].found, regions);
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  return scoring::coco_scores(matches, categories).mean.average_precision();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto regions = std::string{argv[2]} == "boxes" ? scoring::Regions::kBoxes : scoring::Regions::kMasks;
  const auto pictures = read(argv[1], std::stoi(argv[4]));
  for (int threads = 0; std::cin >> threads;) {
    const auto begun = std::chrono::steady_clock::now();
    const double precision = score(pictures, regions, std::stoi(argv[3]), threads);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    std::printf("%.6f %.12f\n", took.count(), precision);
    std::fflush(stdout);
  }
}
