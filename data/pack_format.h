// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/image_source.h"

namespace abl::data {

/// The packed file: a header of kPackHeader bytes, the index, zeros up to a page, the images one after the
/// other. Numbers are little-endian. docs/data.md has the layout byte by byte. Version 1 had no checksums and
/// only JPEG files and pixels; it is still read. Version 3 has annotated pictures, and behind each what is to
/// be found in it.
inline constexpr std::string_view kPackMagic{"ABLDATA\0", 8};
inline constexpr std::uint32_t kPackVersion = 2, kAnnotatedPackVersion = 3;
inline constexpr std::size_t kPackHeader = 128, kPackEntry = 32, kAnnotatedPackEntry = 44, kPackPage = 4096;
inline constexpr std::uint32_t kPackLargestSide = 32'768, kPackMostClasses = 1'000'000;

/// Where an image lies in the file.
struct PackEntry {
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::int32_t label = 0;
  std::uint32_t width = 0, height = 0;
  images::EncodedImage::Coding coding = images::EncodedImage::Coding::kJpeg;
  std::optional<std::uint32_t> crc{};  ///< CRC-32 of its bytes; nothing in a file of version 1
  /// Of what `encode_truths` wrote, right behind the image: its bytes and their CRC-32; and how many things
  /// there are in it.
  std::uint32_t truths = 0, truths_crc = 0, things = 0;
};

/// All but the images.
struct PackIndex {
  std::vector<PackEntry> train, val;
  std::string made_of;   ///< fingerprint of the data set that was packed
  std::string packing;   ///< what was done to its images: "" nothing, "restarts", "raw", "bound-256" …
  bool changed = false;  ///< and whether that changed the pixels of any
  std::vector<std::string> classes;      ///< of images, or the categories of things
  bool annotated = false;                ///< of version 3: images have truths in place of a label
  std::vector<std::string> labels;       ///< of pixels, where it is annotated
  std::vector<std::string> passed_over;  ///< by the data set that was packed; older files say nothing of it

  /// made_of, and the packing where it changed pixels: what trains the same has the same.
  std::string fingerprint() const { return changed ? made_of + "+" + packing : made_of; }
};

/// Every image must have its CRC.
std::string encode_index(const PackIndex& index);
/// What was passed over, to stand right behind the index. Readers that do not know of it skip it.
std::string encode_notes(const PackIndex& index);
/// Where the images of a file begin that has so many of them. `index`: without images.
std::uint64_t payload_of(PackIndex index, std::size_t train, std::size_t val);
/// The header of a file of `file_size` bytes.
std::string encode_header(std::string_view index, std::string_view notes, std::uint64_t payload,
                          std::uint64_t file_size, std::uint32_t version = kPackVersion);

/// Reads header and index of a whole file; every offset lies in it afterwards, and every label, size and text
/// is what it may be. Throws: Error{kDataLoss} with the reason, for whatever bytes.
PackIndex decode_pack(std::string_view file);

}  // namespace abl::data
