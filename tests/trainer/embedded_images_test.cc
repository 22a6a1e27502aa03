// SPDX-License-Identifier: Apache-2.0
#include "data/embedded_images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/sha256.h"

namespace abl::trainer {
namespace {

constexpr int kTile = 8, kTilesInRow = data::kEmbeddedSize / kTile, kTiles = kTilesInRow * kTilesInRow;

struct Drawn {
  std::array<std::uint8_t, data::kEmbeddedSize * data::kEmbeddedSize * 3> pixels;
  int label;

  int at(int tile, int pixel, int channel) const {
    const int y = tile / kTilesInRow * kTile + pixel / kTile, x = tile % kTilesInRow * kTile + pixel % kTile;
    return pixels[(y * data::kEmbeddedSize + x) * 3 + channel];
  }
  std::string bytes() const { return {pixels.begin(), pixels.end()}; }
};

Drawn draw(data::Split split, std::uint64_t index) {
  Drawn drawn;
  drawn.label = data::draw_embedded_image(split, index, drawn.pixels);
  return drawn;
}

std::string digest(data::Split split, std::uint64_t count) {
  Sha256 sum;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto drawn = draw(split, i);
    sum.update(drawn.bytes()).update(std::string(1, static_cast<char>(drawn.label)));
  }
  return sum.hex();
}

/// What can be seen of a tile: the pixels brighter than any empty one, and their mean colour.
struct Seen {
  std::array<double, kTile * kTile> lit{};
  std::array<double, 3> colour{};  // the brightest channel is 1
  int area = 0;
};

Seen look(const Drawn& drawn, int tile) {
  constexpr int kBrightestEmpty = 72;
  Seen seen;
  for (int pixel = 0; pixel < kTile * kTile; ++pixel) {
    const std::array<int, 3> rgb{drawn.at(tile, pixel, 0), drawn.at(tile, pixel, 1),
                                 drawn.at(tile, pixel, 2)};
    if (std::ranges::max(rgb) <= kBrightestEmpty) continue;
    seen.lit[pixel] = 1;
    ++seen.area;
    for (int channel = 0; channel < 3; ++channel) seen.colour[channel] += rgb[channel];
  }
  const double brightest = std::max(1.0, std::ranges::max(seen.colour));
  for (double& channel : seen.colour) channel /= brightest;
  return seen;
}

template <typename Array>
double distance(const Array& a, const Array& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/// The tile that the image asks for: the shape whose colour is nearest to that of the filled tiles.
Seen asked_tile(const Drawn& drawn) {
  constexpr int kFewestLitOfFilled = 52, kFewestLitOfShape = 5;
  std::vector<Seen> shapes;
  std::array<double, 3> asked{};
  int filled = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    const Seen seen = look(drawn, tile);
    if (seen.area >= kFewestLitOfFilled) {
      ++filled;
      for (int channel = 0; channel < 3; ++channel) asked[channel] += seen.colour[channel];
    } else if (seen.area >= kFewestLitOfShape) {
      shapes.push_back(seen);
    }
  }
  for (double& channel : asked) channel /= filled;
  return *std::ranges::min_element(shapes, {}, [&](const Seen& s) { return distance(s.colour, asked); });
}

/// How far a table of content × class is from independence: Pearson's statistic, in standard deviations.
/// Rows seen less often than 200 times are left out: they have too few counts for the approximation.
double dependence(const std::map<std::vector<int>, std::array<int, data::kEmbeddedClasses>>& table) {
  double statistic = 0;
  int freedom = 0;
  for (const auto& [content, counts] : table) {
    int total = 0;
    for (const int count : counts) total += count;
    if (total < 200) continue;
    const double expected = 1.0 * total / data::kEmbeddedClasses;
    for (const int count : counts) statistic += (count - expected) * (count - expected) / expected;
    freedom += data::kEmbeddedClasses - 1;
  }
  return (statistic - freedom) / std::sqrt(2.0 * freedom);
}

/// A coarse description of a tile: the level of each channel's mean, and whether centre and corner are lit.
std::vector<int> content_of(const Drawn& drawn, int tile) {
  const Seen seen = look(drawn, tile);
  std::vector<int> content;
  for (const double channel : seen.colour)
    content.push_back(seen.area < 5 ? -1 : static_cast<int>(channel * 4));
  content.push_back(seen.area / 13);
  content.push_back(seen.lit[3 * kTile + 3] > 0);
  content.push_back(seen.lit[1 * kTile + 1] > 0);
  return content;
}

TEST(EmbeddedImages, AreTheSameBytesOnEveryMachine) {
  EXPECT_EQ(data::kEmbeddedFingerprint, "shapes-1")
      << "pixels changed? raise the version and pin the new digests";
  EXPECT_EQ(digest(data::Split::kTrain, 50),
            "da14ad353929c4271fb5bf360c2b2ad6beac56216a852907bcefeb1f0db21932");
  EXPECT_EQ(digest(data::Split::kVal, 50),
            "25d728fe398d366acef20c1493c1d72aa810568edce3614eb5a7e2e34b459597");
}

TEST(EmbeddedImages, DoNotDependOnTheOrderInWhichTheyAreDrawn) {
  const auto first = draw(data::Split::kTrain, 7);
  draw(data::Split::kVal, 7);
  draw(data::Split::kTrain, 1'000'000'007);
  EXPECT_EQ(draw(data::Split::kTrain, 7).pixels, first.pixels);
}

TEST(TintedImages, AreTheEmbeddedOnesWithOtherColoursAndTheSameOnEveryMachine) {
  EXPECT_EQ(data::kTintedFingerprint, "tinted-shapes-1")
      << "pixels changed? raise the version, pin the digest";
  Sha256 sum;
  double off = 0;
  int lit = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const Drawn plain = draw(data::Split::kTrain, i);
    Drawn tinted;
    tinted.label = data::draw_tinted_image(data::Split::kTrain, i, tinted.pixels);
    sum.update(tinted.bytes());
    EXPECT_EQ(tinted.label, plain.label);
    for (int tile = 0; tile < kTiles; ++tile) {
      const bool empty = look(plain, tile).area == 0;
      for (int channel = 0; channel < 3; ++channel) {
        const int pixel = kTile * kTile / 2 + kTile / 2;  // of most shapes, and of every filled tile
        const int difference = tinted.at(tile, pixel, channel) - plain.at(tile, pixel, channel);
        EXPECT_TRUE(!empty || difference == 0) << "image " << i << ", tile " << tile;
        off += empty ? 0 : difference * difference;
        lit += empty ? 0 : 1;
      }
    }
  }
  EXPECT_NEAR(std::sqrt(off / lit), 25,
              8);  // less than drawn: 0 and 255 bound it, and some shapes are hollow
  EXPECT_EQ(sum.hex(), "809ada5683cf4e3202175492af446bf1453d62a100e1ed9e9d15a28fe3257740");
}

TEST(EmbeddedImages, EveryTenHaveTheTenClassesOnceEachInChangingOrder) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t block = 0; block < 100; ++block) {
    std::vector<int> order;
    for (std::uint64_t i = 0; i < data::kEmbeddedClasses; ++i)
      order.push_back(draw(data::Split::kVal, block * data::kEmbeddedClasses + i).label);
    EXPECT_EQ(std::set<int>(order.begin(), order.end()), (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 95u);
}

TEST(EmbeddedImages, NoImageComesTwiceWithinOrAcrossTheSplits) {
  std::set<std::string> seen;
  for (const data::Split split : {data::Split::kTrain, data::Split::kVal})
    for (std::uint64_t i = 0; i < 3000; ++i)
      EXPECT_TRUE(seen.insert(draw(split, i).bytes()).second) << "image " << i;
}

TEST(EmbeddedImages, TheShapeInTheColourOfTheFilledTilesIsTheClass) {
  std::array<std::array<double, kTile * kTile>, data::kEmbeddedClasses> mean{};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto drawn = draw(data::Split::kTrain, i);
    const Seen seen = asked_tile(drawn);
    for (int pixel = 0; pixel < kTile * kTile; ++pixel) mean[drawn.label][pixel] += seen.lit[pixel] / 100;
  }
  int correct = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto drawn = draw(data::Split::kVal, i);
    const Seen seen = asked_tile(drawn);
    const auto best =
        std::ranges::min_element(mean, {}, [&](const auto& m) { return distance(m, seen.lit); });
    correct += best - mean.begin() == drawn.label;
  }
  EXPECT_GE(correct, 950) << "of 1000, by a rule that looks at two tiles";
}

TEST(NegativeImages, TheShapeInTheNegativeOfTheFilledTilesIsTheClassAndTheyAreTheSameOnEveryMachine) {
  EXPECT_EQ(data::kNegativeFingerprint, "negative-shapes-1")
      << "pixels changed? raise the version, pin the digest";
  std::array<std::array<double, kTile * kTile>, data::kEmbeddedClasses> mean{};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto drawn = draw(data::Split::kTrain, i);
    const Seen seen = asked_tile(drawn);
    for (int pixel = 0; pixel < kTile * kTile; ++pixel) mean[drawn.label][pixel] += seen.lit[pixel] / 100;
  }
  Sha256 sum;
  int asked = 0, correct = 0, like = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    Drawn drawn;
    drawn.label = data::draw_negative_image(data::Split::kVal, i, drawn.pixels);
    if (i < 50) sum.update(drawn.bytes());
    EXPECT_EQ(drawn.label, draw(data::Split::kVal, i).label);
    const auto found = [&](double sign, double offset) {
      std::array<double, 3> filled{};
      std::vector<Seen> shapes;
      int fills = 0;
      for (int tile = 0; tile < kTiles; ++tile) {
        Seen seen = look(drawn, tile);
        for (int channel = 0; channel < 3; ++channel) {
          seen.colour[channel] = 0;
          for (int pixel = 0; pixel < kTile * kTile; ++pixel)
            seen.colour[channel] += seen.lit[pixel] * drawn.at(tile, pixel, channel) / std::max(1, seen.area);
        }
        if (seen.area >= 52) ++fills;
        for (int channel = 0; channel < 3 && seen.area >= 52; ++channel)
          filled[channel] += seen.colour[channel];
        if (seen.area >= 5 && seen.area < 52) shapes.push_back(seen);
      }
      if (fills == 0 || shapes.empty()) return -1;  // white's negative is as dark as the board
      for (double& channel : filled) channel = offset + sign * channel / fills;
      const auto nearest =
          std::ranges::min_element(shapes, {}, [&](const Seen& s) { return distance(s.colour, filled); });
      const auto shape =
          std::ranges::min_element(mean, {}, [&](const auto& m) { return distance(m, nearest->lit); });
      return static_cast<int>(shape - mean.begin());
    };
    if (found(1, 0) < 0) continue;
    ++asked;
    correct += found(-1, 250) == drawn.label;
    like += found(1, 0) == drawn.label;
  }
  EXPECT_GE(asked, 400);
  EXPECT_GE(correct, asked * 8 / 10) << "of " << asked << ", by a rule that looks for the negative";
  EXPECT_LE(like, asked / 4) << "by one that looks for what is alike";
  EXPECT_EQ(sum.hex(), "98de4639f0135463e3e7d6584dbf683e86d6110531de7b8bcd849352ff332e17");
}

TEST(EmbeddedImages, NoTileAloneTellsTheClass) {
  constexpr std::uint64_t kImages = 20'000;
  std::map<std::vector<int>, std::array<int, data::kEmbeddedClasses>> anywhere, placed;
  for (std::uint64_t i = 0; i < kImages; ++i) {
    const auto drawn = draw(data::Split::kTrain, i);
    for (int tile = 0; tile < kTiles; ++tile) {
      auto content = content_of(drawn, tile);
      ++anywhere[content][drawn.label];
      content.push_back(tile);
      ++placed[content][drawn.label];
    }
  }
  EXPECT_GT(anywhere.size(), 50u) << "the description of a tile is too coarse to show anything";
  EXPECT_LT(dependence(anywhere), 4.0);
  EXPECT_LT(dependence(placed), 4.0);
}

TEST(EmbeddedImages, TheMeasureOfDependenceSeesTheAskedTile) {
  std::map<std::vector<int>, std::array<int, data::kEmbeddedClasses>> asked;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const auto drawn = draw(data::Split::kTrain, i);
    const Seen seen = asked_tile(drawn);
    ++asked[{seen.area / 13, seen.lit[3 * kTile + 3] > 0, seen.lit[1 * kTile + 1] > 0}][drawn.label];
  }
  EXPECT_GT(dependence(asked), 100.0);
}

}  // namespace
}  // namespace abl::trainer
