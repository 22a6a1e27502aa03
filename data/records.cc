// SPDX-License-Identifier: Apache-2.0
#include "data/records.h"

#include <fmt/format.h>

#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "data/order.h"
#include "data/stored_source.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::shared_ptr<const MappedFile>>;

class RecordSource final : public StoredSource {
 public:
  RecordSource(const config::DataConfig& data, Files files, std::vector<Record> records, int side,
               Planes planes)
      : StoredSource{data, records.size()},
        files_{std::move(files)},
        records_{std::move(records)},
        side_{side},
        planes_{planes} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(records_.size()); }
  int label(std::uint32_t index) const override { return records_.at(index).label; }
  std::string name(std::uint32_t index) const override {
    const Record& record = records_.at(index);
    return fmt::format("{}, record {}", files_[record.file]->path().string(), record.number);
  }
  images::EncodedImage open(std::uint32_t index) const override {
    const Record& record = records_.at(index);
    const auto side = static_cast<std::size_t>(side_), area = side * side;
    const std::string_view planes = files_[record.file]->bytes().substr(record.offset, 3 * area);
    auto pixels = std::make_shared<std::string>(3 * area, '\0');
    for (std::size_t y = 0, out = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x)
        for (std::size_t channel = 0; channel < 3; ++channel)
          (*pixels)[out++] =
              planes[channel * area + (planes_ == Planes::kRows ? y * side + x : x * side + y)];
    return {.coding = images::EncodedImage::Coding::kPixels,
            .bytes = *pixels,
            .owner = pixels,
            .width = side_,
            .height = side_,
            .label = record.label};
  }

 private:
  const Files files_;
  const std::vector<Record> records_;
  const int side_;
  const Planes planes_;
};

}  // namespace

DataSet data_set_of_records(const config::DataConfig& data, RecordSet set) {
  Sha256 digest;
  for (const auto& file : set.files)
    digest.update(fmt::format("{}\n{}\n{}\n", file->path().filename().string(), file->bytes().size(),
                              sha256_hex(file->bytes())));
  keep_some(set.train, data.train_images, "train_images");
  keep_some(set.val, data.val_images, "val_images");
  return {
      .train = std::make_shared<RecordSource>(data, set.files, std::move(set.train), set.side, set.planes),
      .val = std::make_shared<RecordSource>(data, set.files, std::move(set.val), set.side, set.planes),
      .fingerprint = fmt::format("{}:{}", set.kind, digest.hex()),
      .classes = std::move(set.classes),
      .format = std::move(set.format)};
}

std::shared_ptr<const MappedFile> map_records(const fs::path& file, std::size_t record,
                                              std::string_view what) {
  if (!fs::exists(file))
    throw Error{Code::kNotFound,
                fmt::format("data: {} is missing; expected it beside the other files", file.string())};
  auto mapped = std::make_shared<const MappedFile>(file);
  const std::size_t size = mapped->bytes().size();
  if (size == 0 || size % record != 0)
    throw Error{Code::kDataLoss, fmt::format("data: {} has {} bytes; expected a multiple of {} ({}): it is "
                                             "truncated or damaged",
                                             file.string(), size, record, what)};
  return mapped;
}

std::vector<std::string> class_names(const fs::path& file, int count) {
  std::vector<std::string> names;
  if (fs::exists(file)) {
    std::istringstream lines{read_file(file)};
    for (std::string line; std::getline(lines, line);) {
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty()) names.push_back(line);
    }
    if (static_cast<int>(names.size()) != count)
      throw Error{Code::kInvalidArgument, fmt::format("data: {} has {} lines; expected the names of {} "
                                                      "classes, a line each",
                                                      file.string(), names.size(), count)};
  } else {
    for (int label = 0; label < count; ++label) names.push_back(std::to_string(label));
  }
  return names;
}

void check_classes(const config::DataConfig& data, const fs::path& root, std::string_view format, int found) {
  if (data.classes > 0 && data.classes != found)
    throw Error{Code::kInvalidArgument, fmt::format("data: {} is {} with {} classes, the trial is for {}",
                                                    root.string(), format, found, data.classes)};
}

}  // namespace abl::data
