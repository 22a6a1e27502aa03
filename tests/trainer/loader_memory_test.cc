// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "data/transform.h"
#include "tests/images/picture_files.h"
#include "worker/trainer/tasks/loader.h"

namespace abl::trainer {
namespace {

constexpr int kImages = 48, kBatch = 12, kThreads = 2;

/// Photographs that are too large to be kept decoded, of many sizes.
void write_images(const std::filesystem::path& root) {
  for (const char* split : {"train", "val"})
    for (int i = 0; i < kImages; ++i)
      images::write(root / split / "a" / fmt::format("{}.jpg", i),
                    images::jpeg_of(300 + 7 * i, 290 + 3 * i, {static_cast<std::uint8_t>(5 * i), 90, 40}));
}

config::DataConfig small_images() {
  config::DataConfig data;
  data.name = "pictures", data.image_size = 96, data.classes = 1;
  return data;
}

config::RecipeConfig much_augmented() {
  config::RecipeConfig recipe;
  recipe.crop = config::Crop::kResized, recipe.flip = 0.5, recipe.randaugment = "rand-m9-mstd0.5-inc1";
  recipe.random_erasing = 0.5, recipe.eval_crop_ratio = 0.87;
  return recipe;
}

/// Every image once, and each of `look` at what a batch is made of.
template <class Make>
void one_epoch(const Make& make) {
  tasks::Loader loader{
      0,
      kImages / kBatch,
      {.threads = kThreads,
       .ahead = kThreads + 2,
       .collation = {.replace_among = kImages, .image_size = small_images().image_size}},
      [&](std::int64_t number) {
        tasks::BatchPlan plan{.indices = std::vector<std::uint32_t>(kBatch), .prepare = make};
        std::iota(plan.indices.begin(), plan.indices.end(), static_cast<std::uint32_t>(number * kBatch));
        return plan;
      }};
  while (loader.next()) {
  }
}

double resident_mib() {
  long pages = 0, resident = 0;
  std::ifstream{"/proc/self/statm"} >> pages >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

std::ptrdiff_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks{"/proc/self/task"};
  return std::distance(begin(tasks), end(tasks));
}

/// The exit code says how it went: the process has nothing else to tell.
[[noreturn]] void twenty_epochs(const std::filesystem::path& root) {
  at::set_num_threads(1);
  const auto data = data::open_data(small_images(), root.string());
  const auto recipe = much_augmented();
  const data::Augmentation augmentation{recipe, small_images()};
  double settled = 0, most = 0;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    one_epoch([&](std::uint32_t index, std::size_t) {
      images::RandomStream random{0, images::Purpose::kAugmentation, {epoch, index}};
      return augmentation(*data.train, index, random);
    });
    one_epoch([&](std::uint32_t index, std::size_t) {
      return data::centre_of(*data.val, index, recipe, small_images().image_size);
    });
    if (epoch < 5)
      settled = std::max(settled, resident_mib());
    else
      most = std::max(most, resident_mib());
  }
  std::cerr << fmt::format("{:.1f} MiB in the first five epochs, {:.1f} MiB in the others\n", settled, most);
  // a byte of each decoded pixel that is not given back would be 400 MiB, of each view 35 MiB
  std::_Exit(most <= settled + 12 ? 0 : 1);
}

/// Opens no more threads than it was told to, whatever LibTorch may use for the products.
[[noreturn]] void one_epoch_beside_four_threads(const std::filesystem::path& root) {
  at::set_num_threads(4);
  const auto data = data::open_data(small_images(), root.string());
  const auto recipe = much_augmented();
  const data::Augmentation augmentation{recipe, small_images()};
  const auto before = threads_of_this_process();
  std::atomic<std::ptrdiff_t> most = 0;
  one_epoch([&](std::uint32_t index, std::size_t) {
    images::RandomStream random{0, images::Purpose::kAugmentation, {0, index}};
    auto prepared = augmentation(*data.train, index, random);
    const auto now = threads_of_this_process();
    for (auto seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    return prepared;
  });
  std::cerr << fmt::format("{} threads before, at most {} with the loader's\n", before, most.load());
  std::_Exit(most <= before + kThreads ? 0 : 1);
}

class LoaderMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, begun anew
    folder_.take_in_those_of_death_tests();
    write_images(folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(LoaderMemoryTest, TheResidentSizeDoesNotGrowOverTwentyEpochs) {
  EXPECT_EXIT(twenty_epochs(folder_.path()), testing::ExitedWithCode(0), "");
}

TEST_F(LoaderMemoryTest, PreparingImagesUsesTheLoadersThreadsAlone) {
  EXPECT_EXIT(one_epoch_beside_four_threads(folder_.path()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace abl::trainer
