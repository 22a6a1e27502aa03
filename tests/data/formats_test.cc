// SPDX-License-Identifier: Apache-2.0
#include "data/formats.h"

#include "tests/data/data_folder.h"

namespace abl::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Formats : public DataFolder {};

TEST_F(Formats, AnUnknownFolderIsRefusedWithWhatWasLookedFor) {
  put("readme.txt", "nothing");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr(path().string()), HasSubstr("data_batch_1.bin"), HasSubstr("train_X.bin"),
                    HasSubstr("train2018.json"), HasSubstr("anno_train.csv"), HasSubstr("CLASS")));
  EXPECT_THAT(refusal(0, "nowhere"), HasSubstr("data set 'test': no folder or packed file at "));
}

TEST_F(Formats, TheFolderOfAnArchiveIsSuggested) {
  put("cifar-10-batches-bin/data_batch_1.bin", "x");
  EXPECT_THAT(refusal(), HasSubstr("did you mean " + path("cifar-10-batches-bin").string() + "?"));
}

TEST_F(Formats, ImageFoldersAreRecognised) {
  for (const char* file : {"train/a/1.jpg", "train/b/1.JPEG", "val/a/1.jpg", "val/b/1.jpg"})
    put_picture(file);
  const auto data = open(2);
  EXPECT_EQ(data.format, "folders of images");
  EXPECT_EQ(data.train->size(), 2u);
  EXPECT_EQ(data.train->name(1), path("train/b/1.JPEG").string());
}

TEST_F(Formats, ListsBesideTrainAndValFoldersDoNotHideThem) {
  for (const char* file : {"train/a/1.jpg", "val/a/1.jpg"}) put_picture(file);
  put("train.txt", "x 0\n"), put("val.txt", "x 0\n");
  EXPECT_EQ(open().format, "folders of images");
}

TEST_F(Formats, ListsHideFoldersThatAreNoClasses) {
  put_picture("some/1.jpg"), put_picture("others/1.jpg");
  put("train.txt", "some/1.jpg 0\n"), put("val.txt", "others/1.jpg 0\n");
  EXPECT_EQ(open(1).format, "images listed in train.txt and val.txt");
}

TEST_F(Formats, AMissingSplitIsNamed) {
  put_picture("train/a/1.jpg");
  EXPECT_THAT(refusal(), HasSubstr("has a folder train but neither val nor test"));
}

TEST_F(Formats, NumberedFoldersAreMappedByNumberAndForValidationOnly) {
  for (int label = 0; label < 1000; ++label) put_picture(fmt::format("{}/x.jpeg", label));
  const auto data = open(1000);
  EXPECT_EQ(data.train->size(), 0u);
  ASSERT_EQ(data.val->size(), 1000u);
  EXPECT_EQ(data.val->label(10), 10) << "'10' sorts before '2', but is not class 2";
  EXPECT_THAT(data.val->name(10), HasSubstr("/10/x.jpeg"));
  EXPECT_EQ(data.classes[999], "999");
  EXPECT_THAT(refusal(10), AllOf(HasSubstr("ImageNet-V2"), HasSubstr("the trial is for 10 classes")));
  EXPECT_THROW(open_data(wants(1000), path().string()), Error) << "there is nothing to train on";
  EXPECT_EQ(open_data(wants(1000), path().string(), Needs::kVal).val->size(), 1000u);
}

TEST_F(Formats, ADamagedImageIsNamedWhetherItIsLoadedOrViewed) {
  for (const char* file : {"train/a/1.jpg", "val/a/1.jpg"}) put_picture(file);
  put("train/a/0.jpg", "no picture");
  const auto whole = [](int width, int height) {
    return images::Wanted{.region = {.width = width, .height = height}};
  };
  const auto fatal = open();
  for (const bool view : {false, true}) {
    try {
      view ? (void)fatal.train->decode(0, whole) : (void)fatal.train->load(0);
      FAIL() << "a damaged picture was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDataLoss);
      EXPECT_THAT(error.what(), HasSubstr("train/a/0.jpg"));
    }
  }
  auto lenient = wants();
  lenient.damaged = config::Damaged::kSkip;
  const auto skipping = open_stored(lenient, path());
  testing::internal::CaptureStderr();
  EXPECT_FALSE(skipping.train->decode(0, whole));
  EXPECT_FALSE(skipping.train->load(0));
  EXPECT_TRUE(skipping.train->decode(1, whole));
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_THAT(said, HasSubstr("train/a/0.jpg"));
}

}  // namespace
}  // namespace abl::data
