// SPDX-License-Identifier: Apache-2.0
#include "data/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/crc32.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/mapped_file.h"
#include "base/new_file.h"
#include "data/pack_format.h"
#include "data/parallel.h"
#include "data/stored_source.h"
#include "images/jpeg_write.h"
#include "images/pillow_transform.h"

namespace abl::data {
namespace {

namespace fs = std::filesystem;
using Coding = images::EncodedImage::Coding;

constexpr int kQuality = 95;             // of what is made smaller
constexpr std::size_t kAtOnceEach = 16;  // images a thread prepares before they are written

/// An image as it goes into the file.
struct PackedImage {
  images::EncodedImage image;
  bool resized = false, decoded = false;
  std::string damage;  ///< why it stays as it is
};

images::EncodedImage own(Coding coding, std::string bytes, int width, int height, int label) {
  auto kept = std::make_shared<const std::string>(std::move(bytes));
  return {.coding = coding, .bytes = *kept, .owner = kept, .width = width, .height = height, .label = label};
}

/// The bytes with the dimensions that every entry needs.
images::EncodedImage open_named(const ImageSource& source, std::uint32_t index) {
  try {
    return source.open(index);
  } catch (const Error& error) {
    if (error.code() != Code::kDataLoss) throw;
    throw Error{Code::kDataLoss, fmt::format("unreadable image {}: {} ('data check' lists every one)",
                                             source.name(index), error.what())};
  }
}

/// PNG and WebP files stay as they are: their formats have nothing that could be found without the rest.
images::EncodedImage easy_to_cut(const images::EncodedImage& stored) {
  if (stored.coding != Coding::kJpeg) return stored;
  return own(Coding::kJpeg, images::with_restarts(stored.bytes), stored.width, stored.height, stored.label);
}

PackedImage made_of(const images::EncodedImage& stored, const PackOptions& options) {
  const bool resize = options.bound > 0 && std::min(stored.width, stored.height) > options.bound;
  if (!resize && (!options.raw || stored.coding == Coding::kPixels))
    return {.image = options.verbatim ? stored : easy_to_cut(stored), .damage = {}};
  images::Image image = decode_image(stored);
  if (resize) {
    const double scale = 1.0 * options.bound / std::min(image.width, image.height);
    const auto shorter = [&](int side) { return static_cast<int>(std::lround(side * scale)); };
    image = images::shrink(image, shorter(image.width), shorter(image.height));
  }
  const bool pixels = options.raw || stored.coding == Coding::kPixels;
  return {.image = own(
              pixels ? Coding::kPixels : Coding::kJpeg,
              pixels ? std::string{image.pixels.begin(), image.pixels.end()}
                     : images::with_restarts(images::encode_jpeg(image, kQuality, images::Chroma::kHalved)),
              image.width, image.height, stored.label),
          .resized = resize,
          .decoded = pixels && stored.coding == Coding::kJpeg,
          .damage = {}};
}

/// A damaged file stays as it is: what to do with it is for data.damaged to say, when it is trained on.
PackedImage prepare(const ImageSource& source, std::uint32_t index, const PackOptions& options) {
  images::EncodedImage stored = open_named(source, index);
  try {
    return made_of(stored, options);
  } catch (const Error& error) {
    if (error.code() != Code::kDataLoss) throw;  // memory: nothing is said of the file
    return {.image = std::move(stored), .damage = fmt::format("{}: {}", source.name(index), error.what())};
  }
}

std::string packing_of(const PackOptions& options) {
  std::string packing = options.raw ? "raw" : "";
  if (options.bound > 0) packing += fmt::format("{}bound-{}", packing.empty() ? "" : "-", options.bound);
  return packing.empty() && !options.verbatim ? "restarts" : packing;
}

/// Writes the images of a split from `at` on.
void write_images(const ImageSource& source, const PackOptions& options, NewFile& out, std::uint64_t& at,
                  std::vector<PackEntry>& entries, PackResult& result) {
  const std::size_t at_once = kAtOnceEach * static_cast<std::size_t>(std::max(1, options.threads));
  for (std::uint32_t first = 0; first < source.size();) {
    if (options.stop && *options.stop) throw Error{Code::kCancelled, "stopped: nothing was packed"};
    const auto count = std::min<std::size_t>(at_once, source.size() - first);
    std::vector<PackedImage> prepared(count);
    parallel_for(count, options.threads, [&](std::size_t i) {
      prepared[i] = prepare(source, first + static_cast<std::uint32_t>(i), options);
    });
    for (const auto& [image, resized, decoded, damage] : prepared) {
      out.write(at, image.bytes);
      entries.push_back({.offset = at,
                         .length = static_cast<std::uint32_t>(image.bytes.size()),
                         .label = image.label,
                         .width = static_cast<std::uint32_t>(image.width),
                         .height = static_cast<std::uint32_t>(image.height),
                         .coding = image.coding,
                         .crc = crc32(image.bytes)});
      at += image.bytes.size();
      result.resized += resized, result.decoded += decoded;
      if (!damage.empty() && result.damaged++ == 0) result.first_damaged = damage;
    }
    first += static_cast<std::uint32_t>(count);
    if (options.progress) options.progress(count);
  }
}

}  // namespace

std::optional<PackResult> packed_already(const fs::path& output, const std::string& made_of,
                                         const std::string& packing) {
  if (!fs::exists(output)) return std::nullopt;
  const auto other = [&](const std::string& what) {
    return Error{Code::kAlreadyExists,
                 fmt::format("{} exists and {}; remove it, or name another file", output.string(), what)};
  };
  const MappedFile file{output};
  PackIndex index;
  try {
    index = decode_pack(file.bytes());
  } catch (const Error& error) {
    throw other(fmt::format("is an invalid packed file: {}", error.what()));
  }
  if (index.made_of != made_of || index.packing != packing)
    throw other(fmt::format("was made of {}{}", index.made_of,
                            index.packing.empty() ? ", the files as they are" : ", with " + index.packing));
  return PackResult{.made = false,
                    .bytes = file.bytes().size(),
                    .train = static_cast<std::uint32_t>(index.train.size()),
                    .val = static_cast<std::uint32_t>(index.val.size()),
                    .fingerprint = index.fingerprint()};
}

PackResult pack(const DataSet& data, const PackOptions& options) {
  // one process makes it, the others wait; the lock is a file beside it, gone afterwards
  FileLock lock = FileLock::wait(options.output.string() + ".lock", 0644);
  lock.remove_after(true);
  if (const auto there = packed_already(options.output, data.fingerprint, packing_of(options))) return *there;
  PackResult result{.made = true, .train = data.train->size(), .val = data.val->size()};
  PackIndex index{.made_of = data.fingerprint,
                  .packing = packing_of(options),
                  .classes = data.classes,
                  .passed_over = data.passed_over};
  const std::string notes = encode_notes(index);
  const std::uint64_t payload = payload_of(index, result.train, result.val);

  NewFile out{options.output, {.ending = ".part"}};
  std::uint64_t at = payload;
  write_images(*data.train, options, out, at, index.train, result);
  write_images(*data.val, options, out, at, index.val, result);
  // JPEG files that are pixels now are no longer decoded at a reduced scale
  index.changed = result.resized > 0 || result.decoded > 0;
  const std::string text = encode_index(index);
  out.write(kPackHeader, text + notes);
  out.write(0, encode_header(text, notes, payload, at));
  out.publish();
  result.bytes = at, result.fingerprint = index.fingerprint();
  return result;
}

}  // namespace abl::data
