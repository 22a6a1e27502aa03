// SPDX-License-Identifier: Apache-2.0
#include "data/pack_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32.h"
#include "base/error.h"
#include "base/sha256.h"
#include "data/little_endian.h"

namespace abl::data {
namespace {

// In the header: after magic, version, its own size, and the sizes of file, index and what lies before the
// images.
constexpr std::size_t kDigestAt = 40, kDigestSize = 64, kNotesAt = kDigestAt + kDigestSize;

constexpr std::string_view kItsIndex = "its index";

[[noreturn]] void refuse(const std::string& reason) { throw Error{Code::kDataLoss, reason}; }

void put_entry(std::string& out, const PackEntry& entry, bool annotated) {
  put(out, entry.offset);
  put(out, entry.length);
  put(out, entry.label);
  put(out, entry.width);
  put(out, entry.height);
  put(out, static_cast<std::uint32_t>(entry.coding));
  put(out, entry.crc.value_or(0));
  if (annotated) put(out, entry.truths), put(out, entry.truths_crc), put(out, entry.things);
}

/// The images follow each other: `free_from` is where the one before ended.
PackEntry take_entry(Taker& taker, std::uint32_t version, std::uint64_t& free_from, std::uint64_t end,
                     std::uint32_t classes) {
  const auto offset = taker.number<std::uint64_t>();
  const auto length = taker.number<std::uint32_t>();
  const auto label = taker.number<std::uint32_t>();
  const auto width = taker.number<std::uint32_t>(), height = taker.number<std::uint32_t>();
  const auto coding = taker.number<std::uint32_t>();
  const auto crc = taker.number<std::uint32_t>();
  const bool annotated = version == kAnnotatedPackVersion;
  const auto truths = annotated ? taker.number<std::uint32_t>() : 0,
             truths_crc = annotated ? taker.number<std::uint32_t>() : 0,
             things = annotated ? taker.number<std::uint32_t>() : 0;
  if (offset < free_from || offset > end || length == 0 || length > end - offset)
    refuse(fmt::format("an image of {} bytes at {} lies outside the file's {} bytes or over another", length,
                       offset, end));
  if (truths > end - offset - length || (annotated && truths == 0))
    refuse(fmt::format(
        "annotation of {} bytes at offset {} is empty or extends beyond the end of the file ({} bytes)",
        truths, offset + length, end));
  const std::uint32_t labels = std::max<std::uint32_t>(classes, annotated);  // annotated images all have 0
  if (label >= labels)
    refuse(fmt::format("image label {} is out of range; expected 0 to {}", label, labels - 1));
  if (width < 1 || height < 1 || width > kPackLargestSide || height > kPackLargestSide)
    refuse(fmt::format("an image is {}×{} pixels; expected 1 to {} a side", width, height, kPackLargestSide));
  if (coding > static_cast<std::uint32_t>(version > 1 ? images::EncodedImage::Coding::kWebp
                                                      : images::EncodedImage::Coding::kPixels))
    refuse(fmt::format("an image has coding {}; expected 0 (JPEG), 1 (pixels), 2 (PNG) or 3 (WebP)", coding));
  const PackEntry entry{.offset = offset,
                        .length = length,
                        .label = static_cast<std::int32_t>(label),
                        .width = width,
                        .height = height,
                        .coding = static_cast<images::EncodedImage::Coding>(coding),
                        .crc = version > 1 ? std::optional{crc} : std::nullopt,
                        .truths = truths,
                        .truths_crc = truths_crc,
                        .things = things};
  if (entry.coding == images::EncodedImage::Coding::kPixels && length != std::uint64_t{3} * width * height)
    refuse(
        fmt::format("an image of {}×{} pixels has {} bytes; expected three a pixel", width, height, length));
  free_from = offset + length + truths;
  return entry;
}

}  // namespace

std::string encode_index(const PackIndex& index) {
  std::string out;
  for (const auto size : {index.train.size(), index.val.size(), index.classes.size()})
    put(out, static_cast<std::uint32_t>(size));
  put(out, static_cast<std::uint32_t>(index.changed));
  for (const auto* split : {&index.train, &index.val})
    for (const auto& entry : *split) put_entry(out, entry, index.annotated);
  put_text(out, index.made_of);
  put_text(out, index.packing);
  for (const auto& name : index.classes) put_text(out, name);
  if (!index.annotated) return out;
  put(out, static_cast<std::uint32_t>(index.labels.size()));
  for (const auto& name : index.labels) put_text(out, name);
  return out;
}

std::string encode_notes(const PackIndex& index) {
  std::string out;
  for (const auto& what : index.passed_over) put_text(out, what);
  return out;
}

std::uint64_t payload_of(PackIndex index, std::size_t train, std::size_t val) {
  // its size does not depend on what it says of the images: room for it can be left before them
  index.train.resize(train), index.val.resize(val);
  const std::size_t before = kPackHeader + encode_index(index).size() + encode_notes(index).size();
  return (before + kPackPage - 1) / kPackPage * kPackPage;
}

std::string encode_header(std::string_view index, std::string_view notes, std::uint64_t payload,
                          std::uint64_t file_size, std::uint32_t version) {
  std::string out{kPackMagic};
  put(out, version);
  put(out, static_cast<std::uint32_t>(kPackHeader));
  put(out, file_size);
  put(out, static_cast<std::uint64_t>(index.size()));
  put(out, payload);
  out += sha256_hex(index);
  put(out, static_cast<std::uint32_t>(notes.size()));
  put(out, notes.empty() ? 0 : crc32(notes));
  out.resize(kPackHeader, '\0');
  return out;
}

namespace {

/// `room`: what lies between the index and the images. Files that were made before there were notes have
/// zeros in the header's place for them.
std::vector<std::string> decode_notes(std::string_view header, std::string_view room) {
  Taker place{header.substr(kNotesAt), kItsIndex};
  const auto size = place.number<std::uint32_t>(), crc = place.number<std::uint32_t>();
  if (size == 0) return {};
  if (size > room.size() || crc32(room.substr(0, size)) != crc)
    refuse("what it says of the files that were passed over does not have the CRC-32 that its header gives");
  std::vector<std::string> notes;
  for (Taker taker{room.substr(0, size), kItsIndex}; taker.left() > 0;) notes.push_back(taker.text());
  return notes;
}

}  // namespace

PackIndex decode_pack(std::string_view file) {
  if (file.substr(0, kPackMagic.size()) != kPackMagic)
    refuse("it does not begin as a packed file (ABLDATA) does; make one with 'ablate data pack'");
  if (file.size() < kPackHeader) refuse(fmt::format("it is truncated after {} bytes", file.size()));
  Taker header{file.substr(kPackMagic.size(), kDigestAt - kPackMagic.size()), kItsIndex};
  const auto version = header.number<std::uint32_t>(), header_size = header.number<std::uint32_t>();
  const auto file_size = header.number<std::uint64_t>(), index_size = header.number<std::uint64_t>(),
             payload = header.number<std::uint64_t>();
  if (version < 1 || version > kAnnotatedPackVersion || header_size != kPackHeader)
    refuse(fmt::format("its version is {}; expected 1 to {}: pack it again", version, kAnnotatedPackVersion));
  if (file_size != file.size())
    refuse(fmt::format("it has {} bytes, its header says {}: it is truncated or damaged", file.size(),
                       file_size));
  if (index_size > file.size() - kPackHeader || payload < kPackHeader + index_size || payload > file.size())
    refuse(fmt::format("its header puts an index of {} bytes before {}, which does not fit {} bytes",
                       index_size, payload, file.size()));
  const auto bytes = file.substr(kPackHeader, index_size);
  if (sha256_hex(bytes) != file.substr(kDigestAt, kDigestSize))
    refuse("its index does not have the SHA-256 that its header gives: it is damaged");

  Taker taker{bytes, kItsIndex};
  const std::uint64_t train = taker.number<std::uint32_t>(), val = taker.number<std::uint32_t>();
  const auto classes = taker.number<std::uint32_t>();
  const auto changed = taker.number<std::uint32_t>();
  const bool annotated = version == kAnnotatedPackVersion;
  if (classes < (annotated ? 0 : 1) || classes > kPackMostClasses || changed > 1 ||
      (train + val) > taker.left() / (annotated ? kAnnotatedPackEntry : kPackEntry))
    refuse(fmt::format("its index announces {} images of {} classes, which do not fit its {} bytes",
                       train + val, classes, bytes.size()));
  PackIndex index{.changed = changed == 1, .annotated = annotated};
  std::uint64_t free_from = payload;
  for (auto* const split : {&index.train, &index.val}) {
    const auto count = split == &index.train ? train : val;
    split->reserve(count);
    for (std::uint64_t i = 0; i < count; ++i)
      split->push_back(take_entry(taker, version, free_from, file.size(), classes));
  }
  index.made_of = taker.text();
  index.packing = taker.text();
  for (std::uint32_t i = 0; i < classes; ++i) index.classes.push_back(taker.text());
  if (annotated)
    for (auto left = taker.number<std::uint32_t>(); left > 0; --left) index.labels.push_back(taker.text());
  if (taker.left() > 0) refuse(fmt::format("its index has {} bytes too many", taker.left()));
  const auto notes_at = kPackHeader + index_size;
  index.passed_over = decode_notes(file.substr(0, kPackHeader), file.substr(notes_at, payload - notes_at));
  return index;
}

}  // namespace abl::data
