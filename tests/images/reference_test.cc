// SPDX-License-Identifier: Apache-2.0
// Operations and policies against Pillow, torchvision and timm: see references.py.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "images/timm_mixing.h"
#include "images/torchvision.h"
#include "tests/images/fixtures.h"

namespace abl::images {
namespace {

/// Says how many bytes differ, by how much at most, and where the first does.
std::string difference(const Image& ours, const Image& expected, int bound) {
  if (ours.width != expected.width || ours.height != expected.height)
    return fmt::format("{}×{} pixels, expected {}×{}", ours.width, ours.height, expected.width,
                       expected.height);
  int count = 0, most = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < expected.pixels.size(); ++i) {
    const int apart = std::abs(ours.pixels[i] - expected.pixels[i]);
    if (apart > bound && count++ == 0) first = i;
    most = std::max(most, apart);
  }
  if (count == 0) return {};
  const auto pixel = static_cast<int>(first / 3);
  return fmt::format(
      "{} of {} bytes differ by more than {}, one by {}; the first: pixel ({}, {}), channel {}: {}, expected "
      "{}",
      count, expected.pixels.size(), bound, most, pixel % expected.width, pixel / expected.width, first % 3,
      ours.pixels[first], expected.pixels[first]);
}

TEST(ReferenceTest, EveryOperationAndPolicyMakesTheReferencesImage) {
  std::set<std::string> seen;
  for (const auto& test : fixtures().images) {
    seen.insert(test.operation);
    const Image& picture = fixtures().pictures.at(test.picture);
    EXPECT_EQ(difference(apply_named(test.operation, picture, test.arguments), test.expected, test.bound), "")
        << fmt::format("{} {} of {}", test.operation, fmt::join(test.arguments, " "), test.picture);
  }
  EXPECT_EQ(seen.size(), 32U) << "operations of references.py";
}

TEST(ReferenceTest, BlursOfTorchvisionDifferInFewBytes) {
  std::size_t bytes = 0, apart = 0;
  for (const auto& test : fixtures().images)
    if (test.operation == "gaussian_blur") {
      const Image ours = apply_named(test.operation, fixtures().pictures.at(test.picture), test.arguments);
      bytes += ours.pixels.size();
      for (std::size_t i = 0; i < ours.pixels.size(); ++i) apart += ours.pixels[i] != test.expected.pixels[i];
    }
  EXPECT_LE(apart * 1000, bytes) << apart << " of " << bytes;
}

std::vector<double> draw(const NumberCase& test) {
  RandomStream random{std::stoll(test.arguments.back()), Purpose::kAugmentation};
  const auto argument = [&](std::size_t i) { return std::stod(test.arguments.at(i)); };
  const int width = static_cast<int>(argument(0)), height = static_cast<int>(argument(1));
  const auto with_box = [](std::vector<double> numbers, const Rectangle& box) {
    for (const int side : {box.left, box.top, box.width, box.height}) numbers.push_back(side);
    return numbers;
  };
  if (test.policy == "resized_crop") {
    const ResizedCrop ranges{argument(2), argument(3), argument(4), argument(5)};
    return with_box({}, draw_resized_crop(width, height, ranges, random));
  }
  if (test.policy == "erasure") {
    const auto erasure = draw_erasure(width, height, {.probability = argument(2)}, random);
    if (!erasure || erasure->rectangle.width * erasure->rectangle.height == 0) return {0};
    auto numbers = with_box({1}, erasure->rectangle);
    numbers.push_back(static_cast<double>(erasure->noise_seed));
    return numbers;
  }
  const Mix mix = draw_mix(width, height, {argument(2), argument(3), argument(4), argument(5)}, random);
  return with_box({static_cast<double>(mix.kind), mix.lambda}, mix.box);
}

TEST(ReferenceTest, EveryPolicyDrawsTheReferencesNumbers) {
  for (const auto& test : fixtures().numbers) {
    const auto ours = draw(test);
    const auto name = fmt::format("{} {}: {}, expected {}", test.policy, fmt::join(test.arguments, " "),
                                  fmt::join(ours, " "), fmt::join(test.expected, " "));
    ASSERT_EQ(ours.size(), test.expected.size()) << name;
    // logarithms and powers need not have the same last bit in every C library
    for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], test.expected[i], 1e-12) << name;
  }
}

}  // namespace
}  // namespace abl::images
