// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/cifar.h"

#include <fmt/format.h>

#include "base/error.h"
#include "worker/trainer/data/records.h"

namespace abl::trainer {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 32, kCoarseClasses = 20;
constexpr std::size_t kPlanes = 3 * kSide * kSide;

/// Adds the records of a file; `labels` bytes before the planes, of which the last is the class.
std::vector<Record> read_records(RecordSet& set, const fs::path& path, std::size_t labels, int classes) {
  const auto file = map_records(path, labels + kPlanes, "labels and 3×32×32 pixels a record");
  const auto number = static_cast<std::uint32_t>(set.files.size());
  set.files.push_back(file);
  std::vector<Record> records;
  for (std::size_t at = 0; at < file->bytes().size(); at += labels + kPlanes) {
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
  RecordSet set{.format = "CIFAR-10 (binary)", .kind = "cifar10-1", .side = kSide};
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
  RecordSet set{.format = "CIFAR-100 (binary)", .kind = "cifar100-1", .side = kSide};
  check_classes(config, root, set.format, kClasses);
  set.train = read_records(set, root / "train.bin", 2, kClasses);
  set.val = read_records(set, root / "test.bin", 2, kClasses);
  set.classes = class_names(root / "fine_label_names.txt", kClasses);
  return data_set_of_records(config, std::move(set));
}

}  // namespace abl::trainer
