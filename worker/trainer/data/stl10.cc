// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/stl10.h"

#include <fmt/format.h>

#include "base/error.h"
#include "worker/trainer/data/records.h"

namespace abl::trainer {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 96, kClasses = 10;
constexpr std::size_t kPlanes = 3 * kSide * kSide;

std::vector<Record> read_split(RecordSet& set, const fs::path& root, const std::string& split) {
  const auto images = map_records(root / (split + "_X.bin"), kPlanes, "3×96×96 pixels an image");
  const auto labels = map_records(root / (split + "_y.bin"), 1, "a label each");
  const std::size_t count = images->bytes().size() / kPlanes;
  if (labels->bytes().size() != count)
    throw Error{Code::kDataLoss, fmt::format("data: {} has {} labels; expected {}, one for each image of {}",
                                             labels->path().string(), labels->bytes().size(), count,
                                             images->path().filename().string())};
  const auto file = static_cast<std::uint32_t>(set.files.size());
  set.files.push_back(images);
  set.files.push_back(labels);
  std::vector<Record> records;
  for (std::size_t i = 0; i < count; ++i) {
    const int label = static_cast<unsigned char>(labels->bytes()[i]);
    if (label < 1 || label > kClasses)
      throw Error{Code::kDataLoss, fmt::format("data: {}, byte {} is label {}; expected 1 to {}",
                                               labels->path().string(), i, label, kClasses)};
    records.push_back(
        {.file = file, .offset = i * kPlanes, .number = static_cast<std::uint32_t>(i), .label = label - 1});
  }
  return records;
}

}  // namespace

DataSet open_stl10(const config::DataConfig& config, const fs::path& root) {
  RecordSet set{.format = "STL-10 (binary)", .kind = "stl10-1", .side = kSide, .planes = Planes::kColumns};
  check_classes(config, root, set.format, kClasses);
  set.train = read_split(set, root, "train");
  set.val = read_split(set, root, "test");
  set.classes = class_names(root / "class_names.txt", kClasses);
  return data_set_of_records(config, std::move(set));
}

}  // namespace abl::trainer
