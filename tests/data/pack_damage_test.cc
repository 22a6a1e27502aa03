// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/sha256.h"
#include "data/check.h"
#include "data/pack.h"
#include "data/pack_format.h"
#include "tests/data/data_folder.h"
#include "tests/images/pictures.h"

namespace abl::data {
namespace {

using testing::HasSubstr;

/// A packed file of which a test flips bytes that no format notices.
class DamagedPack : public DataFolder {
 protected:
  void SetUp() override {
    for (int image = 0; image < 4; ++image)
      put(fmt::format("set/train/a/{}.jpg", image),
          images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 60 + image, 50));
    put("set/val/a/1.jpg", images::jpeg_of({"444"}, 30, 30));
  }
  void make(PackOptions options) const {
    options.output = path("set.abldata");
    pack(open(0, "set"), options);
  }
  /// One byte in the middle of an image's pixels.
  void flip(const std::vector<std::uint32_t>& images) const {
    std::string file = read_file(path("set.abldata"));
    const auto index = decode_pack(file);
    for (const auto image : images) {
      const auto& entry = index.train[image];
      file[entry.offset + entry.length * 3 / 4] ^= 1;
    }
    put("set.abldata", file);
  }
  std::vector<DamagedImage> damaged() const {
    return check_data(open(1, "set.abldata"), 2, false, [](std::uint64_t) {}).damaged;
  }
  /// As the version before wrote it: no checksums.
  void make_of_version_1() const {
    std::string file = read_file(path("set.abldata"));
    auto index = decode_pack(file);
    for (auto* split : {&index.train, &index.val})
      for (auto& entry : *split) entry.crc = 0;
    const std::string text = encode_index(index);
    const auto payload = index.train[0].offset;
    const std::string header = encode_header(text, "", payload, file.size());
    file.replace(kPackHeader, text.size(), text);
    file.replace(0, header.size(), header);
    file[kPackMagic.size()] = 1;
    put("set.abldata", file);
  }
};

TEST_F(DamagedPack, EveryFlippedByteIsFound) {
  for (const bool raw : {false, true}) {
    make({.raw = raw});
    EXPECT_THAT(damaged(), testing::IsEmpty());
    flip({0, 2, 3});
    const auto found = damaged();
    ASSERT_EQ(found.size(), 3u) << (raw ? "pixels" : "JPEG files");
    EXPECT_THAT(found[1].name, HasSubstr("train image 2"));
    EXPECT_THAT(found[1].reason, HasSubstr("CRC-32"));
    std::filesystem::remove(path("set.abldata"));
  }
}

TEST_F(DamagedPack, TrainingEndsOrLeavesItOut) {
  make({.raw = true}), flip({1});
  auto config = wants(1);
  config.image_size = 8;
  try {
    open_stored(config, path("set.abldata")).train->load(1);
    FAIL() << "a damaged image was used";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_THAT(error.what(), HasSubstr("train image 1"));
  }
  config.damaged = config::Damaged::kSkip;
  const auto data = open_stored(config, path("set.abldata"));
  EXPECT_FALSE(data.train->load(1).has_value());
  EXPECT_TRUE(data.train->load(0).has_value());
}

TEST_F(DamagedPack, AFileOfTheVersionBeforeIsReadWithoutThem) {
  make({.raw = true}), make_of_version_1();
  const auto old = open(1, "set.abldata");
  EXPECT_EQ(old.format, "packed file of version 1, without checksums");
  EXPECT_EQ(old.fingerprint, open(1, "set").fingerprint + "+raw");
  EXPECT_EQ(old.train->load(2)->image.pixels, open(1, "set").train->load(2)->image.pixels);
  flip({0});
  EXPECT_THAT(damaged(), testing::IsEmpty()) << "which is what the checksums are for";
}

}  // namespace
}  // namespace abl::data
