// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "data/check.h"
#include "data/image_source.h"
#include "data/pack.h"
#include "data/stored_source.h"
#include "tests/data/data_folder.h"
#include "tests/images/pictures.h"

namespace abl::data {
namespace {

using testing::HasSubstr;

/// A data set in a folder, whose training images are `first` and a whole one.
struct Format {
  std::string name;
  std::function<void(const std::filesystem::path& folder, const std::string& first, const std::string& whole)>
      put;
};

void put_inaturalist(const std::filesystem::path& folder, const std::string& first,
                     const std::string& whole) {
  images::write(folder / "images/1.jpg", first), images::write(folder / "images/2.jpg", whole);
  const auto json = [](const char* images, const char* annotations) {
    return fmt::format(R"({{"images":[{}],"annotations":[{}],"categories":[{{"id":3,"name":"owl"}}]}})",
                       images, annotations);
  };
  images::write(folder / "train2018.json",
                json(R"({"id":1,"file_name":"images/1.jpg"},{"id":2,"file_name":"images/2.jpg"})",
                     R"({"image_id":1,"category_id":3},{"image_id":2,"category_id":3})"));
  images::write(folder / "val2018.json",
                json(R"({"id":2,"file_name":"images/2.jpg"})", R"({"image_id":2,"category_id":3})"));
}

const Format kFormats[] = {
    {"folders",
     [](const auto& folder, const auto& first, const auto& whole) {
       images::write(folder / "train/a/1.jpg", first), images::write(folder / "train/a/2.jpg", whole);
       images::write(folder / "val/a/1.jpg", whole);
     }},
    {"folders_without_split",
     [](const auto& folder, const auto& first, const auto& whole) {
       images::write(folder / "a/1.jpg", first);
       for (const char* name : {"a/2.jpg", "a/3.jpg", "a/4.jpg", "a/5.jpg"})
         images::write(folder / name, whole);
     }},
    {"cars",
     [](const auto& folder, const auto& first, const auto& whole) {
       images::write(folder / "cars_train/1.jpg", first), images::write(folder / "cars_train/2.jpg", whole);
       images::write(folder / "cars_test/1.jpg", whole);
       images::write(folder / "anno_train.csv", "1.jpg,0,0,9,9,1\n2.jpg,0,0,9,9,1\n");
       images::write(folder / "anno_test.csv", "1.jpg,0,0,9,9,1\n");
     }},
    {"lists",
     [](const auto& folder, const auto& first, const auto& whole) {
       images::write(folder / "x/1.jpg", first), images::write(folder / "x/2.jpg", whole);
       images::write(folder / "train.txt", "x/1.jpg 0\nx/2.jpg 0\n"),
           images::write(folder / "val.txt", "x/2.jpg 0\n");
     }},
    {"inaturalist", put_inaturalist},
    {"packed", [](const auto& folder, const auto& first, const auto& whole) {
       images::write(folder / "train/a/1.jpg", first), images::write(folder / "train/a/2.jpg", whole);
       images::write(folder / "val/a/1.jpg", whole);
       config::DataConfig data;
       data.name = "test";
       pack(open_data(data, folder.string()), {.output = folder / "packed.abldata"});
     }}};

class Damage : public DataFolder, public testing::WithParamInterface<Format> {
 protected:
  DataSet set(const char* damaged) const {
    auto config = wants(1);
    config.damaged = *value_named<config::Damaged>(damaged), config.image_size = 16;
    return open_data(config, (GetParam().name == "packed" ? path("packed.abldata") : path()).string());
  }
  static images::Wanted top(int width, int) { return {.region = {.width = width, .height = 4}}; }
};

TEST_P(Damage, ATruncatedImageIsFoundAndNamedOrSkipped) {
  const auto whole = images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 90, 70);
  GetParam().put(path(), whole.substr(0, whole.size() / 2), whole);
  const auto fatal = set("fail");
  try {
    fatal.train->decode(0, top);
    FAIL() << "a truncated picture was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss);
    EXPECT_THAT(error.what(), HasSubstr(fatal.train->name(0)));
    EXPECT_THAT(error.what(), HasSubstr("Premature end of JPEG file"));
  }
  EXPECT_TRUE(fatal.train->decode(1, top)) << "the next one is whole";

  const auto lenient = set("skip");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(lenient.train->decode(0, top));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(lenient.train->name(0)));

  const auto checked = check_data(fatal, 2, false, [](std::uint64_t) {});
  ASSERT_EQ(checked.damaged.size(), 1u);
  EXPECT_EQ(checked.damaged[0].name, fatal.train->name(0));
}

TEST_P(Damage, ACheckSaysMeanAndDeviationOfWhatCanBeDecoded) {
  const auto whole = images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 90, 70);
  GetParam().put(path(), whole, whole);
  const auto data = set("fail");
  const auto image = decode_image(data.train->open(1));
  const auto split = check_data(data, 2, false, [](std::uint64_t) {}).splits.front();
  for (std::size_t channel = 0; channel < 3; ++channel) {
    double sum = 0, squares = 0;
    const auto pixels = static_cast<double>(image.pixels.size() / 3);
    for (std::size_t i = channel; i < image.pixels.size(); i += 3) {
      const double value = image.pixels[i] / 255.0;
      sum += value, squares += value * value;
    }
    EXPECT_NEAR(split.mean[channel], sum / pixels, 1e-9) << channel;
    EXPECT_NEAR(split.std[channel], std::sqrt(squares / pixels - sum / pixels * sum / pixels), 1e-9)
        << channel;
  }
}

TEST_P(Damage, BytesThatAreWrongInTheMiddleAreFound) {
  auto whole = images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 90, 70), broken = whole;
  broken[broken.size() / 2] = '\xff',
                         broken[broken.size() / 2 + 1] = '\xd3';  // a marker that has no place there
  GetParam().put(path(), broken, whole);
  const auto data = set("fail");
  EXPECT_EQ(check_data(data, 1, false, [](std::uint64_t) {}).damaged.size(), 1u);
  EXPECT_THROW(data.train->load(0), Error);
  EXPECT_TRUE(data.train->load(1));
}

INSTANTIATE_TEST_SUITE_P(Formats, Damage, testing::ValuesIn(kFormats),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace abl::data
