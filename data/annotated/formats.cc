// SPDX-License-Identifier: Apache-2.0
#include "data/annotated/formats.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iostream>

#include "base/error.h"
#include "data/little_endian.h"
#include "data/pack_format.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

/// By its first bytes: what is wrong further on is said when it is opened.
bool is_annotated_pack(const fs::path& file) {
  std::array<char, 12> first{};
  std::ifstream{file, std::ios::binary}.read(first.data(), first.size());
  Taker taker{{first.data(), first.size()}, "its header"};
  return taker.take(kPackMagic.size()) == kPackMagic &&
         taker.number<std::uint32_t>() == kAnnotatedPackVersion;
}

}  // namespace

std::string annotated_format_in(const fs::path& root) {
  if (fs::is_regular_file(root)) return is_annotated_pack(root) ? "packed file of annotated images" : "";
  if (is_coco(root)) return "annotations/instances_train*.json (COCO instances)";
  return is_ade20k(root) ? "annotations/training (ADE20K)" : "";
}

AnnotatedSet open_annotated(const config::DataConfig& config, const fs::path& root, const Report& report) {
  if (fs::is_regular_file(root)) return open_annotated_pack(config, root);
  const Report told = report ? report : by_damaged(config.damaged);
  if (is_coco(root)) return open_coco(config, root, told);
  if (is_ade20k(root)) return open_ade20k(config, root, told);
  throw Error{
      Code::kNotFound,
      fmt::format("data: {} holds no annotated images; looked for annotations/instances_train2017.json "
                  "(COCO) and annotations/training (ADE20K)",
                  root.string())};
}

Report by_damaged(config::Damaged damaged) {
  if (damaged == config::Damaged::kFail)
    return [](const std::string& problem) {
      throw Error{Code::kDataLoss, "data: " + problem + " (data.damaged: skip would leave it out)"};
    };
  return [](const std::string& problem) { std::cerr << "skipped " + problem + "\n"; };
}

}  // namespace abl::data
