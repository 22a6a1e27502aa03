// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "base/crc32.h"
#include "data/pack_format.h"
#include "images/random.h"
#include "tests/data/data_folder.h"

namespace abl::data {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kPayload = kPackPage;

/// Two images of 2×1 pixels, and room for what a test changes.
PackIndex small_index() {
  const auto image = [](std::uint64_t offset, int label) {
    return PackEntry{.offset = offset,
                     .length = 6,
                     .label = label,
                     .width = 2,
                     .height = 1,
                     .coding = images::EncodedImage::Coding::kPixels,
                     .crc = crc32(std::string(6, '\x7f'))};
  };
  return {.train = {image(kPayload, 0), image(kPayload + 6, 1)},
          .val = {image(kPayload + 12, 1)},
          .made_of = "folder-1:x",
          .classes = {"a", "b"},
          .passed_over = {"one file", "two classes"}};
}

/// A file with this index, its digest right: what is wrong must be seen without it.
std::string file_with(const std::string& index, const std::string& notes = encode_notes(small_index())) {
  constexpr std::uint64_t kSize = kPayload + 18;
  std::string file = encode_header(index, notes, kPayload, kSize) + index + notes;
  file.resize(kSize, '\x7f');
  return file;
}

/// Reads a file of these bytes and every image of it; the sanitizer sees a read outside.
std::string read(const std::string& file) {
  const std::vector<char> exact{file.begin(), file.end()};  // a string has room behind its end
  const std::string_view bytes{exact.data(), exact.size()};
  try {
    const PackIndex index = decode_pack(bytes);
    for (const auto* split : {&index.train, &index.val})
      for (const auto& entry : *split)
        EXPECT_GT(std::ranges::count(bytes.substr(entry.offset, entry.length), '\x7f'), 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_EQ(std::string{error.what()}.find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

std::string read_changed(const std::function<void(PackIndex&)>& change) {
  PackIndex index = small_index();
  change(index);
  return read(file_with(encode_index(index)));
}

class HostilePack : public DataFolder {};

TEST_F(HostilePack, TheUnchangedFileIsRead) { EXPECT_EQ(read(file_with(encode_index(small_index()))), ""); }

TEST_F(HostilePack, ARefusalNamesTheFile) {
  put("x.abldata", file_with(encode_index(small_index())));
  EXPECT_EQ(open(2, "x.abldata").train->load(1)->label, 1);
  EXPECT_THAT(refusal(7, "x.abldata"), HasSubstr("a packed file with 2 classes, the trial is for 7"));
  put("x.abldata", "ABLDATA");
  EXPECT_THAT(refusal(0, "x.abldata"), HasSubstr(path("x.abldata").string()));
  put("x.abldata", "");
  EXPECT_THAT(refusal(0, "x.abldata"), HasSubstr("does not begin as a packed file"));
}

TEST_F(HostilePack, EveryTruncationIsRefused) {
  const auto whole = file_with(encode_index(small_index()));
  for (std::size_t kept = 0; kept < whole.size(); ++kept) EXPECT_NE(read(whole.substr(0, kept)), "") << kept;
  EXPECT_THAT(read(whole + "x"), HasSubstr("its header says"));
}

TEST_F(HostilePack, OffsetsOutsideOrOverAnotherAreRefused) {
  for (const std::uint64_t offset : {std::uint64_t{0}, kPayload - 1, kPayload + 5, kPayload + 18,
                                     std::uint64_t{1} << 60, ~std::uint64_t{0}, ~std::uint64_t{0} - 5})
    EXPECT_THAT(read_changed([&](PackIndex& index) { index.train[1].offset = offset; }),
                HasSubstr("outside the file's"))
        << offset;
  for (const std::uint32_t length : {0u, 13u, ~0u})
    EXPECT_THAT(read_changed([&](PackIndex& index) {
                  index.train[1].length = length, index.train[1].coding = images::EncodedImage::Coding::kJpeg;
                }),
                HasSubstr("lies outside"))
        << length;
}

TEST_F(HostilePack, LabelsSizesAndCodingsOutOfRangeAreRefused) {
  for (const int label : {-1, 2, 1 << 30})
    EXPECT_THAT(read_changed([&](PackIndex& index) { index.val[0].label = label; }),
                HasSubstr("expected 0 to 1"));
  for (const std::uint32_t width : {0u, 32'769u, ~0u})
    EXPECT_THAT(read_changed([&](PackIndex& index) { index.val[0].width = width; }), HasSubstr("a side"));
  EXPECT_THAT(read_changed([](PackIndex& index) { index.val[0].height = 2; }), HasSubstr("three a pixel"));
  EXPECT_THAT(read_changed([](PackIndex& index) { index.val[0].coding = images::EncodedImage::Coding{4}; }),
              HasSubstr("coding 4"));
  EXPECT_THAT(read_changed([](PackIndex& index) { index.classes.clear(); }), HasSubstr("0 classes"));
}

TEST_F(HostilePack, CountsThatDoNotFitAreRefused) {
  for (const std::size_t field : {0, 4, 8, 12})
    for (const unsigned char high : {0x01, 0x7f, 0xff}) {
      auto index = encode_index(small_index());
      index[field + 3] = static_cast<char>(high);
      EXPECT_NE(read(file_with(index)), "") << field;
    }
}

TEST_F(HostilePack, ADigestThatDoesNotFitIsRefused) {
  auto file = file_with(encode_index(small_index()));
  file[kPackHeader + 20] ^= 1;
  EXPECT_THAT(read(file), HasSubstr("SHA-256"));
  EXPECT_THAT(read("ABLDATB" + file.substr(7)), HasSubstr("does not begin as a packed file"));
  auto newer = file_with(encode_index(small_index()));
  newer[8] = 4;
  EXPECT_THAT(read(newer), HasSubstr("version is 4; expected 1 to 3"));
}

TEST_F(HostilePack, WhatWasPassedOverIsReadWholeOrRefused) {
  const auto index = encode_index(small_index());
  EXPECT_THAT(decode_pack(file_with(index)).passed_over, testing::ElementsAre("one file", "two classes"));
  EXPECT_THAT(decode_pack(file_with(index, "")).passed_over, testing::IsEmpty()) << "as of older files";
  for (const char* notes : {"x", "\xff\xff\xff\xff", "\x09\x01\x01\x01one"})
    EXPECT_THAT(read(file_with(index, notes)), HasSubstr("truncated")) << notes;
  auto file = file_with(index);
  file[kPackHeader + index.size() + 5] ^= 1;
  EXPECT_THAT(read(file), HasSubstr("passed over does not have the CRC-32"));
  for (const char size : {'\x01', '\xff'}) {
    file = file_with(index);
    file[106] = size;  // more than there is before the images
    EXPECT_THAT(read(file), HasSubstr("passed over does not have the CRC-32"));
  }
}

TEST_F(HostilePack, AnyMutationIsReadOrRefusedAndNothingOutsideIsTouched) {
  images::RandomStream random{11, images::Purpose::kSubset};
  const auto index = encode_index(small_index());
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    auto changed = index;
    for (int change = 0; change <= i % 3; ++change)
      changed[random.below(changed.size())] =
          static_cast<char>(i % 2 ? random.below(256) : 0xff * random.below(2));
    auto file = file_with(changed);
    if (i % 5 == 0) file[random.below(kPackHeader)] = static_cast<char>(random.below(256));
    refused += !read(file).empty();
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace abl::data
