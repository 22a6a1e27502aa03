// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "base/error.h"
#include "data/formats.h"
#include "data/records.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;

constexpr int kCifarSide = 32, kCoarseClasses = 20;
constexpr std::size_t kCifarPlanes = 3 * kCifarSide * kCifarSide;

/// Adds the records of a file; `labels` bytes before the planes, of which the last is the class.
std::vector<Record> read_records(RecordSet& set, const fs::path& path, std::size_t labels, int classes) {
  const auto file = map_records(path, labels + kCifarPlanes, "labels and 3×32×32 pixels a record");
  const auto number = static_cast<std::uint32_t>(set.files.size());
  set.files.push_back(file);
  std::vector<Record> records;
  for (std::size_t at = 0; at < file->bytes().size(); at += labels + kCifarPlanes) {
    const auto place = static_cast<std::uint32_t>(records.size());
    for (std::size_t i = 0; i < labels; ++i) {
      const int label = static_cast<unsigned char>(file->bytes()[at + i]);
      const int known = i + 1 == labels ? classes : kCoarseClasses;
      if (label >= known)
        throw Error{Code::kDataLoss, fmt::format("data: {}, record {} has label {}; expected 0 to {}",
                                                 path.string(), place, label, known - 1)};
    }
    records.push_back({.file = number,
                       .offset = at + labels,
                       .number = place,
                       .label = static_cast<unsigned char>(file->bytes()[at + labels - 1])});
  }
  return records;
}

}  // namespace

DataSet open_cifar10(const config::DataConfig& config, const fs::path& root) {
  constexpr int kClasses = 10, kBatches = 5;
  RecordSet set{.format = "CIFAR-10 (binary)", .kind = "cifar10-1", .side = kCifarSide};
  check_classes(config, root, set.format, kClasses);
  for (int batch = 1; batch <= kBatches; ++batch) {
    const auto path = root / fmt::format("data_batch_{}.bin", batch);
    const auto records = read_records(set, path, 1, kClasses);
    if (batch > 1 && set.files.back()->bytes().size() != set.files.front()->bytes().size())
      throw Error{Code::kDataLoss,
                  fmt::format("data: {} has {} records, data_batch_1.bin {}; expected as "
                              "many in each: one of them is truncated",
                              path.string(), records.size(), set.train.size() / (batch - 1))};
    set.train.insert(set.train.end(), records.begin(), records.end());
  }
  set.val = read_records(set, root / "test_batch.bin", 1, kClasses);
  set.classes = class_names(root / "batches.meta.txt", kClasses);
  return data_set_of_records(config, std::move(set));
}

DataSet open_cifar100(const config::DataConfig& config, const fs::path& root) {
  constexpr int kClasses = 100;
  RecordSet set{.format = "CIFAR-100 (binary)", .kind = "cifar100-1", .side = kCifarSide};
  check_classes(config, root, set.format, kClasses);
  set.train = read_records(set, root / "train.bin", 2, kClasses);
  set.val = read_records(set, root / "test.bin", 2, kClasses);
  set.classes = class_names(root / "fine_label_names.txt", kClasses);
  return data_set_of_records(config, std::move(set));
}

namespace {

constexpr int kStlSide = 96, kStlClasses = 10;
constexpr std::size_t kStlPlanes = 3 * kStlSide * kStlSide;

std::vector<Record> read_split(RecordSet& set, const fs::path& root, const std::string& split) {
  const auto images = map_records(root / (split + "_X.bin"), kStlPlanes, "3×96×96 pixels an image");
  const auto labels = map_records(root / (split + "_y.bin"), 1, "a label each");
  const std::size_t count = images->bytes().size() / kStlPlanes;
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
    if (label < 1 || label > kStlClasses)
      throw Error{Code::kDataLoss, fmt::format("data: {}, byte {} is label {}; expected 1 to {}",
                                               labels->path().string(), i, label, kStlClasses)};
    records.push_back({.file = file,
                       .offset = i * kStlPlanes,
                       .number = static_cast<std::uint32_t>(i),
                       .label = label - 1});
  }
  return records;
}

}  // namespace

DataSet open_stl10(const config::DataConfig& config, const fs::path& root) {
  RecordSet set{.format = "STL-10 (binary)", .kind = "stl10-1", .side = kStlSide, .planes = Planes::kColumns};
  check_classes(config, root, set.format, kStlClasses);
  set.train = read_split(set, root, "train");
  set.val = read_split(set, root, "test");
  set.classes = class_names(root / "class_names.txt", kStlClasses);
  return data_set_of_records(config, std::move(set));
}

}  // namespace abl::data
