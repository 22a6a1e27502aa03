// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "data/formats.h"
#include "data/order.h"
#include "data/pack_format.h"
#include "data/records.h"
#include "data/stored_source.h"

namespace abl::data {
namespace {

class PackSource final : public StoredSource {
 public:
  PackSource(const config::DataConfig& data, std::shared_ptr<const MappedFile> file, const char* split,
             std::vector<PackEntry> entries)
      : StoredSource{data, entries.size()},
        file_{std::move(file)},
        split_{split},
        entries_{std::move(entries)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(entries_.size()); }
  int label(std::uint32_t index) const override { return entries_.at(index).label; }
  std::string name(std::uint32_t index) const override {
    return fmt::format("{}, {} image {}", file_->path().string(), split_, index);
  }
  images::EncodedImage open(std::uint32_t index) const override {
    const PackEntry& entry = entries_.at(index);
    const auto bytes = file_->bytes().substr(entry.offset, entry.length);
    if (entry.crc && crc32(bytes) != *entry.crc)
      throw Error{Code::kDataLoss, "its CRC-32 differs from the one stored when it was packed"};
    return {.coding = entry.coding,
            .bytes = bytes,
            .owner = file_,
            .width = static_cast<int>(entry.width),
            .height = static_cast<int>(entry.height),
            .label = entry.label};
  }

 private:
  const std::shared_ptr<const MappedFile> file_;
  const char* const split_;
  const std::vector<PackEntry> entries_;
};

PackIndex read_index(const MappedFile& file) {
  try {
    return decode_pack(file.bytes());
  } catch (const Error& error) {
    throw Error{error.code(), fmt::format("data: {}: {}", file.path().string(), error.what())};
  }
}

}  // namespace

void expect_pack(const std::filesystem::path& file) { read_index(MappedFile{file}); }

DataSet open_pack(const config::DataConfig& config, const std::filesystem::path& file) {
  auto mapped = std::make_shared<const MappedFile>(file);
  PackIndex index = read_index(*mapped);
  if (index.annotated)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("data: {} holds annotated images; expected classification images", file.string())};
  const bool checked = !std::ranges::any_of(index.train, [](const PackEntry& entry) { return !entry.crc; }) &&
                       !std::ranges::any_of(index.val, [](const PackEntry& entry) { return !entry.crc; });
  check_classes(config, file, "a packed file", static_cast<int>(index.classes.size()));
  const std::string fingerprint = index.fingerprint();
  for (auto& what : index.passed_over) what = "when it was packed, " + what;
  keep_some(index.train, config.train_images, "train_images");
  keep_some(index.val, config.val_images, "val_images");
  return {.train = std::make_shared<PackSource>(config, mapped, "train", std::move(index.train)),
          .val = std::make_shared<PackSource>(config, mapped, "val", std::move(index.val)),
          .fingerprint = fingerprint,
          .classes = std::move(index.classes),
          .format = checked ? "packed file" : "packed file of version 1, without checksums",
          .passed_over = std::move(index.passed_over)};
}

}  // namespace abl::data
