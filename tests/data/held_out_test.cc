// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "data/pack.h"
#include "tests/data/data_folder.h"

namespace abl::data {
namespace {

using testing::HasSubstr;

class HeldOut : public DataFolder {
 protected:
  /// Classes of 10, 30 and 7 images to train on, and an image of each beside them that nobody may read.
  void fill() const {
    int grey = 0;
    for (const auto& [name, count] : {std::pair{"a", 10}, std::pair{"b", 30}, std::pair{"c", 7}}) {
      for (int i = 0; i < count; ++i)
        put(fmt::format("set/train/{}/{:02}.png.jpg", name, i),
            images::jpeg_of(8, 8, {static_cast<std::uint8_t>(++grey), 0, 0}));
      put(fmt::format("set/val/{}/0.jpg", name), "no image at all");
    }
  }
  static config::DataConfig holding(double held_out, int classes = 3) {
    auto config = wants(classes);
    config.image_size = 8, config.held_out = held_out;
    return config;
  }
  DataSet hold(double held_out) const { return open_data(holding(held_out), path("set").string()); }
  static std::vector<std::string> names(const ImageSource& source) {
    std::vector<std::string> all;
    for (std::uint32_t i = 0; i < source.size(); ++i) all.push_back(source.name(i));
    return all;
  }
  static std::map<int, int> of_each_class(const ImageSource& source) {
    std::map<int, int> counts;
    for (std::uint32_t i = 0; i < source.size(); ++i) ++counts[source.label(i)];
    return counts;
  }
  std::string refusal(double held_out) const {
    try {
      hold(held_out);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(HeldOut, EveryTrainingImageIsTrainedOnOrEvaluatedAndNoOtherIs) {
  fill();
  const auto whole = open_data(holding(0), path("set").string());
  const auto held = hold(0.2);
  EXPECT_EQ(held.val->size(), 9u) << "a fifth of 47";
  EXPECT_EQ(held.train->size(), 38u);
  const auto train = names(*held.train), val = names(*held.val);
  std::multiset<std::string> both(train.begin(), train.end());
  both.insert(val.begin(), val.end());
  const auto all = names(*whole.train);
  EXPECT_EQ(both, std::multiset<std::string>(all.begin(), all.end()));
  EXPECT_TRUE(std::ranges::is_sorted(train)) << "in the order of the whole";
  EXPECT_EQ(held.fingerprint, whole.fingerprint) << "the data are the same";
  for (std::uint32_t i = 0; i < held.val->size(); ++i)
    EXPECT_TRUE(held.val->load(i)) << "images of the other split, which are none, are not read";
}

TEST_F(HeldOut, EachClassGivesItsShareAndKeepsAnImage) {
  fill();
  EXPECT_EQ(of_each_class(*hold(0.2).val), (std::map<int, int>{{0, 2}, {1, 6}, {2, 1}}))
      << "of 1.9, 5.7 and 1.3";
  EXPECT_EQ(of_each_class(*hold(10).val), (std::map<int, int>{{0, 2}, {1, 6}, {2, 2}})) << "2.1, 6.4 and 1.5";
  EXPECT_EQ(of_each_class(*hold(44).train), (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(hold(0.0001).val->size(), 1u);
}

TEST_F(HeldOut, MoreImagesThanCanBeSparedAreRefused) {
  fill();
  EXPECT_EQ(
      refusal(45),
      "data.held_out: 45 of 47 images to train on leave less than one for each class; expected at most 44");
  EXPECT_THAT(refusal(0.99), HasSubstr("data.held_out: 0.99 (47) of 47 images"));
  EXPECT_EQ(refusal(44), "");
}

TEST_F(HeldOut, APackedFileHoldsOutTheSameImages) {
  fill();
  for (const char* name : {"a", "b", "c"}) put_picture(fmt::format("set/val/{}/0.jpg", name));
  pack(open(3, "set"), {.output = path("set.abldata"), .threads = 2});
  const auto folder = hold(0.3), packed = open_data(holding(0.3), path("set.abldata").string());
  ASSERT_EQ(packed.val->size(), folder.val->size());
  for (std::uint32_t i = 0; i < folder.val->size(); ++i)
    EXPECT_EQ(packed.val->load(i)->image.pixels, folder.val->load(i)->image.pixels) << i;
  EXPECT_EQ(labels(*packed.train), labels(*folder.train));
}

TEST_F(HeldOut, RecordsHoldOutTheirOwnImages) {
  for (int batch = 1; batch <= 5; ++batch) {
    std::string bytes;
    for (int label = 0; label < 10; ++label)
      bytes +=
          std::string(1, static_cast<char>(label)) + std::string(3072, static_cast<char>(10 * batch + label));
    put(fmt::format("data_batch_{}.bin", batch), bytes);
  }
  put("test_batch.bin", std::string(1, '\x07') + std::string(3072, '\xff'));
  const auto data = open_data(holding(0.4, 10), path().string());
  EXPECT_EQ(data.train->size(), 30u);
  EXPECT_EQ(
      of_each_class(*data.val),
      (std::map<int, int>{{0, 2}, {1, 2}, {2, 2}, {3, 2}, {4, 2}, {5, 2}, {6, 2}, {7, 2}, {8, 2}, {9, 2}}));
  for (std::uint32_t i = 0; i < data.val->size(); ++i) EXPECT_NE(data.val->load(i)->image.pixels[0], 0xff);
}

TEST_F(HeldOut, DrawnImagesAreHeldOutOfAsManyAsAreAskedFor) {
  config::DataConfig shapes;
  shapes.name = "shapes", shapes.image_size = 32, shapes.classes = 10, shapes.train_images = 200;
  const auto whole = open_data(shapes, "");
  shapes.held_out = 0.25;
  const auto held = open_data(shapes, "");
  EXPECT_EQ(held.train->size(), 150u);
  EXPECT_EQ(held.val->size(), 50u);
  for (const auto& [label, count] : of_each_class(*held.val)) EXPECT_EQ(count, 5) << label;
  const auto once = names(*held.val), again = names(*open_data(shapes, "").val);
  EXPECT_EQ(once, again);
  shapes.train_images = 100, shapes.held_out = 20;
  EXPECT_EQ(open_data(shapes, "").train->size(), 80u);
}

}  // namespace
}  // namespace abl::data
