// SPDX-License-Identifier: Apache-2.0
#include "data/formats.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/error.h"
#include "images/jpeg.h"
#include "tests/images/picture_files.h"

namespace abl::trainer {
namespace {

class ImageFolderTest : public testing::Test {
 protected:
  config::DataConfig config(int classes) {
    config::DataConfig config;
    config.name = "pictures", config.image_size = 16, config.classes = classes;
    return config;
  }
  void fill(const std::string& folder, int count, std::array<std::uint8_t, 3> colour) {
    for (int i = 0; i < count; ++i)
      images::write(folder_.path() / folder / fmt::format("{:03}.jpg", i), images::jpeg_of(16, 16, colour));
  }
  std::string refusal(const config::DataConfig& config) {
    try {
      data::open_image_folder(config, folder_.path());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  TemporaryFolder folder_;
};

TEST_F(ImageFolderTest, ReadsTrainAndTestFoldersWithLabelsInTheOrderOfTheNames) {
  fill("train/red", 3, {250, 0, 0});
  fill("train/blue", 2, {0, 0, 250});
  fill("test/red", 1, {250, 0, 0});
  fill("test/blue", 1, {0, 0, 250});
  const auto data = data::open_image_folder(config(2), folder_.path());
  EXPECT_EQ(data.classes, (std::vector<std::string>{"blue", "red"}));
  ASSERT_EQ(data.train->size(), 5u);
  ASSERT_EQ(data.val->size(), 2u);
  const auto first = data.train->load(0), last = data.train->load(4);
  EXPECT_EQ(first->label, 0);
  EXPECT_GT(first->image.pixels[2], 200) << "blue comes first";
  EXPECT_EQ(last->label, 1);
  EXPECT_GT(last->image.pixels[0], 200);
  EXPECT_EQ(data.train->load(4)->image.pixels, last->image.pixels) << "from memory it is the same";
}

TEST_F(ImageFolderTest, KeepsEveryFifthImageForValidationWhereThereIsNoSplit) {
  fill("a", 10, {1, 2, 3});
  fill("b", 7, {4, 5, 6});
  const auto data = data::open_image_folder(config(2), folder_.path());
  EXPECT_EQ(data.val->size(), 3u);
  EXPECT_EQ(data.train->size(), 14u);
}

TEST_F(ImageFolderTest, TakesAFixedSubsetAndTheSameFingerprint) {
  fill("a", 20, {1, 2, 3});
  fill("b", 20, {4, 5, 6});
  auto some = config(2);
  some.train_images = 10, some.val_images = 4;
  const auto whole = data::open_image_folder(config(2), folder_.path()),
             subset = data::open_image_folder(some, folder_.path());
  EXPECT_EQ(subset.train->size(), 10u);
  EXPECT_EQ(subset.val->size(), 4u);
  EXPECT_EQ(subset.fingerprint, whole.fingerprint) << "the fingerprint is the folder's, not the subset's";
}

TEST_F(ImageFolderTest, TheFingerprintChangesWithAFile) {
  fill("a", 6, {1, 2, 3});
  fill("b", 6, {4, 5, 6});
  const auto before = data::open_image_folder(config(2), folder_.path()).fingerprint;
  images::write(folder_.path() / "a/new.jpeg", images::jpeg_of(8, 8, {0, 0, 0}));
  EXPECT_NE(data::open_image_folder(config(2), folder_.path()).fingerprint, before);
}

TEST_F(ImageFolderTest, SaysWhatIsWrongWithAFolder) {
  EXPECT_NE(refusal(config(2)).find("has 0 class folders, the trial is for 2 classes"), std::string::npos)
      << refusal(config(2));
  fill("train/a", 2, {0, 0, 0});
  EXPECT_NE(refusal(config(1)).find("has a folder train but neither val nor test"), std::string::npos)
      << refusal(config(1));
  std::filesystem::create_directories(folder_.path() / "val/a");
  EXPECT_NE(refusal(config(1)).find("val/a holds no .jpg"), std::string::npos) << refusal(config(1));
  EXPECT_THROW(data::open_image_folder(config(1), folder_.path() / "nowhere"), Error);
}

TEST_F(ImageFolderTest, ADamagedImageIsFatalOrSkippedAsTheConfigSays) {
  fill("a", 10, {1, 2, 3});
  const auto whole = images::jpeg_of(64, 64, {9, 9, 9});
  images::write(folder_.path() / "a/000.jpg", whole.substr(0, whole.size() / 2));
  const auto fatal = data::open_image_folder(config(1), folder_.path());
  try {
    fatal.train->load(0);
    FAIL() << "a truncated picture was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_NE(std::string{error.what()}.find("a/000.jpg"), std::string::npos) << error.what();
  }
  auto lenient = config(1);
  lenient.damaged = config::Damaged::kSkip;
  const auto skipping = data::open_image_folder(lenient, folder_.path());
  testing::internal::CaptureStderr();
  EXPECT_FALSE(skipping.train->load(0));
  EXPECT_FALSE(skipping.train->load(0));
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("000.jpg"), std::string::npos) << "a skipped image is named";
  EXPECT_EQ(said.find("000.jpg", said.find("000.jpg") + 1), std::string::npos) << "once";
}

TEST(JpegTest, DecodesAtAReducedScaleDownToTheSideAskedFor) {
  const auto bytes = images::jpeg_of(256, 128, {10, 200, 30});
  const auto whole = images::decode_jpeg(bytes), reduced = images::decode_jpeg(bytes, 32);
  EXPECT_EQ(whole.width, 256);
  EXPECT_EQ(reduced.height, 32);
  EXPECT_EQ(reduced.width, 64);
  EXPECT_NEAR(reduced.pixels[1], 200, 3);
}

TEST(JpegTest, ADamagedPictureLeavesTheNextOneAlone) {
  const auto whole = images::jpeg_of(64, 64, {9, 9, 9});
  for (const std::size_t kept : {whole.size() / 4, whole.size() / 2, whole.size() - 20}) {
    EXPECT_THROW(images::decode_jpeg(whole.substr(0, kept)), Error) << kept << " bytes";
    EXPECT_EQ(images::decode_jpeg(whole).width, 64) << "after " << kept << " bytes of another";
  }
}

TEST(JpegTest, RefusesWhatIsNoPicture) {
  EXPECT_THROW(images::decode_jpeg(""), Error);
  EXPECT_THROW(images::decode_jpeg("not a jpeg at all"), Error);
}

}  // namespace
}  // namespace abl::trainer
