// SPDX-License-Identifier: Apache-2.0
#include "data/annotated/pack.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/mapped_file.h"
#include "base/new_file.h"
#include "data/annotated/formats.h"
#include "data/annotated/stored_annotations.h"
#include "data/order.h"
#include "data/pack_format.h"

namespace abl::data {
namespace {

/// Writes a picture at `at`, and what is known of it behind it.
PackEntry write_picture(const StoredAnnotations& source, std::uint32_t index, NewFile& out,
                        std::uint64_t at) {
  const auto image = source.open_as_told(index);
  const auto truths = source.truths(index);
  const std::string known = encode_truths(truths);
  out.write(at, image.bytes), out.write(at + image.bytes.size(), known);
  return {.offset = at,
          .length = static_cast<std::uint32_t>(image.bytes.size()),
          .width = static_cast<std::uint32_t>(image.width),
          .height = static_cast<std::uint32_t>(image.height),
          .coding = image.coding,
          .crc = crc32(image.bytes),
          .truths = static_cast<std::uint32_t>(known.size()),
          .truths_crc = crc32(known),
          .things = static_cast<std::uint32_t>(truths.things.size())};
}

/// Writes the pictures of a split from `at` on.
void write_pictures(const StoredAnnotations& source, const PackOptions& options, NewFile& out,
                    std::uint64_t& at, std::vector<PackEntry>& entries) {
  for (std::uint32_t index = 0; index < source.size(); ++index) {
    if (options.stop && *options.stop) throw Error{Code::kCancelled, "stopped: nothing was packed"};
    try {
      entries.push_back(write_picture(source, index, out, at));
    } catch (const Error& error) {
      if (error.code() != Code::kDataLoss) throw;
      throw Error{Code::kDataLoss, fmt::format("unreadable image {}: {} ('data check' lists every one)",
                                               source.name(index), error.what())};
    }
    at = entries.back().offset + entries.back().length + entries.back().truths;
    if (options.progress) options.progress(1);
  }
}

const StoredAnnotations& stored(const AnnotatedSource& source) {
  if (const auto* of = dynamic_cast<const StoredAnnotations*>(&source)) return *of;
  throw Error{Code::kInvalidArgument, "generated images need no packed file"};
}

class AnnotatedPackSource final : public StoredAnnotations {
 public:
  AnnotatedPackSource(const config::DataConfig& data, std::shared_ptr<const MappedFile> file,
                      const char* split, const AnnotatedSet& set, std::vector<PackEntry> entries)
      : StoredAnnotations{data.damaged, static_cast<int>(set.labels.size())},
        file_{std::move(file)},
        split_{split},
        categories_{static_cast<int>(set.categories.size())},
        entries_{std::move(entries)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(entries_.size()); }
  std::string name(std::uint32_t index) const override {
    return fmt::format("{}, {} image {}", file_->path().string(), split_, index);
  }
  Extent extent(std::uint32_t index) const override {
    return {static_cast<int>(entries_.at(index).width), static_cast<int>(entries_.at(index).height)};
  }
  std::size_t instances(std::uint32_t index) const override { return entries_.at(index).things; }
  images::EncodedImage open(std::uint32_t index) const override {
    const PackEntry& entry = entries_.at(index);
    return {.coding = entry.coding,
            .bytes = checked(entry.offset, entry.length, *entry.crc),
            .owner = file_,
            .width = static_cast<int>(entry.width),
            .height = static_cast<int>(entry.height)};
  }
  Truths truths(std::uint32_t index) const override {
    const PackEntry& entry = entries_.at(index);
    return decode_truths(checked(entry.offset + entry.length, entry.truths, entry.truths_crc), categories_);
  }

 private:
  std::string_view checked(std::uint64_t offset, std::uint32_t length, std::uint32_t crc) const {
    const auto bytes = file_->bytes().substr(offset, length);
    if (crc32(bytes) != crc)
      throw Error{Code::kDataLoss, "its CRC-32 differs from the one stored when it was packed"};
    return bytes;
  }

  const std::shared_ptr<const MappedFile> file_;
  const char* const split_;
  const int categories_;
  const std::vector<PackEntry> entries_;
};

}  // namespace

PackResult pack_annotated(const AnnotatedSet& set, const PackOptions& options) {
  if (options.bound > 0 || options.raw)
    throw Error{Code::kInvalidArgument,
                "--bound and --raw do not apply to annotated images, which are packed unchanged"};
  const StoredAnnotations &train = stored(*set.train), &val = stored(*set.val);
  FileLock lock = FileLock::wait(options.output.string() + ".lock", 0644);
  lock.remove_after(true);
  if (const auto there = packed_already(options.output, set.fingerprint, "")) return *there;
  PackResult result{.made = true, .train = train.size(), .val = val.size()};
  PackIndex index{.made_of = set.fingerprint,
                  .classes = set.categories,
                  .annotated = true,
                  .labels = set.labels,
                  .passed_over = set.passed_over};
  const std::string notes = encode_notes(index);
  const std::uint64_t payload = payload_of(index, result.train, result.val);
  NewFile out{options.output, {.ending = ".part"}};
  std::uint64_t at = payload;
  write_pictures(train, options, out, at, index.train);
  write_pictures(val, options, out, at, index.val);
  const std::string text = encode_index(index);
  out.write(kPackHeader, text + notes);
  out.write(0, encode_header(text, notes, payload, at, kAnnotatedPackVersion));
  out.publish();
  result.bytes = at, result.fingerprint = index.fingerprint();
  return result;
}

AnnotatedSet open_annotated_pack(const config::DataConfig& config, const std::filesystem::path& file) {
  auto mapped = std::make_shared<const MappedFile>(file);
  PackIndex index;
  try {
    index = decode_pack(mapped->bytes());
  } catch (const Error& error) {
    throw Error{error.code(), fmt::format("data: {}: {}", file.string(), error.what())};
  }
  if (!index.annotated)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("data: {} holds classification images; expected annotated images", file.string())};
  AnnotatedSet set{.fingerprint = index.fingerprint(),
                   .categories = std::move(index.classes),
                   .labels = std::move(index.labels),
                   .format = "packed file of annotated images"};
  for (auto& what : index.passed_over) set.passed_over.push_back("when it was packed, " + what);
  keep_some(index.train, config.train_images, "train_images");
  keep_some(index.val, config.val_images, "val_images");
  set.train = std::make_shared<AnnotatedPackSource>(config, mapped, "train", set, std::move(index.train));
  set.val = std::make_shared<AnnotatedPackSource>(config, mapped, "val", set, std::move(index.val));
  return set;
}

}  // namespace abl::data
