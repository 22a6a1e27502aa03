// SPDX-License-Identifier: Apache-2.0
#include "tests/data/data_folder.h"

namespace abl::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Three planes: the red one counts through its bytes, the others are one value each.
std::string planes(int side) {
  std::string bytes;
  for (int i = 0; i < side * side; ++i) bytes.push_back(static_cast<char>(i % 251));
  return bytes + std::string(static_cast<std::size_t>(side * side), '\x11') +
         std::string(static_cast<std::size_t>(side * side), '\x22');
}

std::string records(const std::vector<std::string>& labels) {
  std::string bytes;
  for (const auto& label : labels) bytes += label + planes(32);
  return bytes;
}

std::string byte(int value) { return std::string(1, static_cast<char>(value)); }

class BinaryFiles : public DataFolder {
 protected:
  void fill_cifar10() const {
    for (int batch = 1; batch <= 5; ++batch)
      put(fmt::format("data_batch_{}.bin", batch), records({byte(batch), byte(9)}));
    put("test_batch.bin", records({byte(7)}));
  }
  void fill_stl10() const {
    put("train_X.bin", planes(96) + planes(96));
    put("train_y.bin", byte(1) + byte(10));
    put("test_X.bin", planes(96));
    put("test_y.bin", byte(5));
  }
};

TEST_F(BinaryFiles, Cifar10IsPlanesOfRows) {
  fill_cifar10();
  put("batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const auto data = open(10);
  EXPECT_EQ(data.format, "CIFAR-10 (binary)");
  EXPECT_EQ(labels(*data.train), (std::vector<int>{1, 9, 2, 9, 3, 9, 4, 9, 5, 9}));
  EXPECT_EQ(labels(*data.val), std::vector<int>{7});
  EXPECT_EQ(data.classes[9], "truck");
  const auto image = data.train->load(3)->image;
  ASSERT_EQ(image.width, 32);
  const std::size_t at = 3 * (5 * 32 + 7);  // row 5, column 7
  EXPECT_EQ(image.pixels[at], (5 * 32 + 7) % 251);
  EXPECT_EQ(image.pixels[at + 1], 0x11);
  EXPECT_EQ(image.pixels[at + 2], 0x22);
  const auto view = data.train->decode(3, [](int width, int height) {
    EXPECT_EQ(width, 32);
    EXPECT_EQ(height, 32);
    return images::Wanted{.region = {.left = 7, .top = 5, .width = 2, .height = 3}, .width = 1, .height = 1};
  });
  EXPECT_EQ(view->image.pixels[0], (5 * 32 + 7) % 251);
  EXPECT_EQ(view->image.height, 3);
  EXPECT_EQ(view->label, 9);
}

TEST_F(BinaryFiles, Cifar100UsesTheFineLabel) {
  put("train.bin", records({byte(19) + byte(99), byte(0) + byte(3)}));
  put("test.bin", records({byte(4) + byte(50)}));
  const auto data = open(100);
  EXPECT_EQ(labels(*data.train), (std::vector<int>{99, 3}));
  EXPECT_EQ(labels(*data.val), std::vector<int>{50});
  EXPECT_EQ(data.classes[17], "17") << "without fine_label_names.txt a class is called by its number";
}

TEST_F(BinaryFiles, Stl10IsPlanesOfColumnsWithLabelsFromOne) {
  fill_stl10();
  const auto data = open(10);
  EXPECT_EQ(labels(*data.train), (std::vector<int>{0, 9}));
  EXPECT_EQ(labels(*data.val), std::vector<int>{4});
  const auto image = data.train->load(1)->image;
  EXPECT_EQ(image.pixels[3 * (5 * 96 + 7)], (7 * 96 + 5) % 251) << "row 5, column 7";
}

TEST_F(BinaryFiles, TheFingerprintIsOfTheContent) {
  fill_cifar10();
  const auto before = open().fingerprint;
  auto config = wants();
  config.train_images = 3;
  EXPECT_EQ(open_stored(config, path()).fingerprint, before) << "whatever is used of it";
  EXPECT_EQ(open_stored(config, path()).train->size(), 3u);
  auto other = records({byte(1), byte(9)});
  other[100] ^= 1;
  put("data_batch_1.bin", other);
  EXPECT_NE(open().fingerprint, before);
}

TEST_F(BinaryFiles, ATruncatedFileIsNamedWithWhatWasExpected) {
  fill_cifar10();
  put("data_batch_3.bin", records({byte(1), byte(9)}).substr(0, 5000));
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("data_batch_3.bin has 5000 bytes"), HasSubstr("a multiple of 3073")));
  put("data_batch_3.bin", records({byte(1)}));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("data_batch_3.bin has 1 records"), HasSubstr("truncated")));
  put("data_batch_3.bin", "");
  EXPECT_THAT(refusal(), HasSubstr("data_batch_3.bin has 0 bytes"));
  std::filesystem::remove(path("data_batch_3.bin"));
  EXPECT_THAT(refusal(), HasSubstr("data_batch_3.bin is missing"));
}

TEST_F(BinaryFiles, ALabelOutOfRangeIsNamed) {
  fill_cifar10();
  put("test_batch.bin", records({byte(2), byte(10)}));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("test_batch.bin, record 1 has label 10"), HasSubstr("0 to 9")));
}

TEST_F(BinaryFiles, Stl10LabelsMustMatchTheImages) {
  fill_stl10();
  put("train_y.bin", byte(1));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("train_y.bin has 1 labels"), HasSubstr("expected 2")));
  put("train_y.bin", byte(1) + byte(0));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is label 0"), HasSubstr("1 to 10")));
}

TEST_F(BinaryFiles, AnotherNumberOfClassesIsRefused) {
  fill_cifar10();
  EXPECT_THAT(refusal(100),
              AllOf(HasSubstr("CIFAR-10 (binary) with 10 classes"), HasSubstr("the trial is for 100")));
  put("batches.meta.txt", "airplane\nbird\n");
  EXPECT_THAT(refusal(10), AllOf(HasSubstr("batches.meta.txt has 2 lines"), HasSubstr("10 classes")));
}

TEST_F(BinaryFiles, AnotherNumberOfClassesIsRefusedInEveryFormat) {
  put("train.bin", records({byte(19) + byte(99)})), put("test.bin", records({byte(4) + byte(50)}));
  EXPECT_THAT(refusal(10),
              AllOf(HasSubstr("CIFAR-100 (binary) with 100 classes"), HasSubstr("the trial is for 10")));
  std::filesystem::remove(path("train.bin")), std::filesystem::remove(path("test.bin"));
  fill_stl10();
  EXPECT_THAT(refusal(100),
              AllOf(HasSubstr("STL-10 (binary) with 10 classes"), HasSubstr("the trial is for 100")));
}

}  // namespace
}  // namespace abl::data
