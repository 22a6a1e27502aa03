// SPDX-License-Identifier: Apache-2.0
#include "data/embedded_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/formats.h"
#include "data/stored_source.h"
#include "images/random.h"

namespace abl::data {
namespace {

constexpr std::size_t kBytes = kEmbeddedSize * kEmbeddedSize * 3;
constexpr int kTrainImages = 40'000, kValImages = 2'000;  // where the config says "all"

/// The data sets that are drawn, by name.
struct Drawn {
  std::string_view name, fingerprint;
  int (*draw)(Split, std::uint64_t, std::span<std::uint8_t, kBytes>);
};
constexpr std::array kDrawn{Drawn{"shapes", kEmbeddedFingerprint, draw_embedded_image},
                            Drawn{"tinted-shapes", kTintedFingerprint, draw_tinted_image},
                            Drawn{"negative-shapes", kNegativeFingerprint, draw_negative_image}};

class DrawnSource final : public StoredSource {
 public:
  DrawnSource(const config::DataConfig& config, const Drawn& drawn, Split split, int count)
      : StoredSource{config, static_cast<std::size_t>(count)},
        pixels_(static_cast<std::size_t>(count)),
        labels_(static_cast<std::size_t>(count)) {
    for (std::size_t i = 0; i < pixels_.size(); ++i) labels_[i] = drawn.draw(split, i, pixels_[i]);
  }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(pixels_.size()); }
  int label(std::uint32_t index) const override { return labels_.at(index); }
  std::string name(std::uint32_t index) const override { return fmt::format("drawn image {}", index); }
  images::EncodedImage open(std::uint32_t index) const override {
    const auto& pixels = pixels_.at(index);
    return {.coding = images::EncodedImage::Coding::kPixels,
            .bytes = {reinterpret_cast<const char*>(pixels.data()), pixels.size()},
            .width = kEmbeddedSize,
            .height = kEmbeddedSize,
            .label = labels_[index]};
  }

 private:
  std::vector<std::array<std::uint8_t, kBytes>> pixels_;
  std::vector<int> labels_;
};

/// A few images over and over.
class NoiseSource final : public StoredSource {
 public:
  NoiseSource(const config::DataConfig& config, int count)
      : StoredSource{config, static_cast<std::size_t>(count)},
        size_{config.image_size},
        classes_{static_cast<std::uint32_t>(std::max(1, config.classes))},
        count_{static_cast<std::uint32_t>(count)} {
    images::RandomStream random{0, images::Purpose::kInitialisation};
    for (auto& pixels : pixels_) {
      pixels.resize(static_cast<std::size_t>(3 * size_) * static_cast<std::size_t>(size_));
      for (char& byte : pixels) byte = static_cast<char>(random.next());
    }
  }
  std::uint32_t size() const override { return count_; }
  int label(std::uint32_t index) const override { return static_cast<int>(index % classes_); }
  std::string name(std::uint32_t index) const override { return fmt::format("stand-in {}", index); }
  images::EncodedImage open(std::uint32_t index) const override {
    return {.coding = images::EncodedImage::Coding::kPixels,
            .bytes = pixels_.at(index % pixels_.size()),
            .width = size_,
            .height = size_,
            .label = label(index)};
  }

 private:
  const int size_;
  const std::uint32_t classes_, count_;
  std::array<std::string, 16> pixels_;
};

}  // namespace

DataSet stand_in(const config::DataConfig& config, int images) {
  DataSet data;
  data.train = std::make_shared<NoiseSource>(config, images);
  data.val = std::make_shared<NoiseSource>(config, images);
  data.format = "stand-ins";
  return data;
}

bool is_drawn(std::string_view name) { return std::ranges::find(kDrawn, name, &Drawn::name) != kDrawn.end(); }

DataSet open_drawn(const config::DataConfig& config) {
  const Drawn& drawn = *std::ranges::find(kDrawn, config.name, &Drawn::name);
  if (config.classes != kEmbeddedClasses)  // other sizes are made of them, as of any stored images
    throw Error{Code::kInvalidArgument,
                fmt::format("data: the embedded images have {} classes; the trial asks for {}",
                            kEmbeddedClasses, config.classes)};
  DataSet data;
  data.train = std::make_shared<DrawnSource>(config, drawn, Split::kTrain,
                                             config.train_images > 0 ? config.train_images : kTrainImages);
  data.val = std::make_shared<DrawnSource>(config, drawn, Split::kVal,
                                           config.held_out > 0     ? 0
                                           : config.val_images > 0 ? config.val_images
                                                                   : kValImages);
  data.fingerprint = drawn.fingerprint;
  data.classes.assign(kEmbeddedClassNames.begin(), kEmbeddedClassNames.end());
  data.format = "drawn images";
  return data;
}

namespace {

constexpr std::int64_t kVersion = 1;  // the number in kEmbeddedFingerprint
constexpr int kTile = 8, kTilesInRow = kEmbeddedSize / kTile, kTiles = kTilesInRow * kTilesInRow;
constexpr int kGlyph = 6, kMargin = (kTile - kGlyph) / 2;
constexpr int kFewestFilled = 3, kMostFilled = kTiles - kEmbeddedClasses;
constexpr int kTint = 30, kTints = 4;                 // a tint is the sum of so many, each -kTint … kTint
constexpr int kNoise = 12;                            // added to each byte: -kNoise … kNoise
constexpr int kDarkest = 220, kFullBrightness = 256;  // of a tile

using images::Colour;
constexpr Colour kBoard{40, 40, 40};
constexpr std::array<Colour, kEmbeddedClasses> kColours{{{230, 40, 40},
                                                         {245, 140, 20},
                                                         {240, 225, 40},
                                                         {130, 220, 40},
                                                         {20, 140, 60},
                                                         {40, 220, 220},
                                                         {40, 90, 240},
                                                         {140, 50, 200},
                                                         {245, 110, 200},
                                                         {235, 235, 235}}};

/// In the order of kEmbeddedClassNames; rows from the top.
using Glyph = std::array<std::string_view, kGlyph>;
constexpr std::array<Glyph, kEmbeddedClasses> kGlyphs{{
    {".####.", "######", "######", "######", "######", ".####."},
    {"######", "#....#", "#....#", "#....#", "#....#", "######"},
    {"..##..", "..##..", "######", "######", "..##..", "..##.."},
    {"##..##", "##..##", "..##..", "..##..", "##..##", "##..##"},
    {"......", "..##..", "..##..", ".####.", ".####.", "######"},
    {"######", "######", "##....", "##....", "##....", "##...."},
    {"##..##", "##..##", "##..##", "##..##", "##..##", "##..##"},
    {"######", "######", "......", "......", "######", "######"},
    {"##....", "##....", ".##...", "..##..", "...###", "....##"},
    {"######", "######", "..##..", "..##..", "..##..", "..##.."},
}};

/// What fills one tile: a shape in a colour, the colour alone, or nothing.
struct Tile {
  images::Colour colour = kBoard;
  const Glyph* glyph = nullptr;  ///< none: the whole tile has the colour

  const images::Colour& at(int row, int column) const {
    if (!glyph) return colour;
    const int y = row - kMargin, x = column - kMargin;
    const bool inside = y >= 0 && y < kGlyph && x >= 0 && x < kGlyph;
    return inside && (*glyph)[y][x] == '#' ? colour : kBoard;
  }
};

template <std::size_t kCount>
std::array<int, kCount> shuffled(images::RandomStream& random) {
  std::array<int, kCount> order;
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = kCount; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

/// Images 10b … 10b + 9 share one order of the classes.
int class_of(Split split, std::uint64_t index) {
  images::RandomStream random{kVersion,
                              images::Purpose::kEmbeddedClass,
                              {static_cast<std::uint64_t>(split), index / kEmbeddedClasses}};
  return shuffled<kEmbeddedClasses>(random)[index % kEmbeddedClasses];
}

std::array<Tile, kTiles> lay_out(int label, images::RandomStream& random) {
  const auto colour_of = shuffled<kEmbeddedClasses>(random);
  const auto place = shuffled<kTiles>(random);
  std::array<Tile, kTiles> tiles;
  for (int shape = 0; shape < kEmbeddedClasses; ++shape)
    tiles[place[shape]] = {.colour = kColours[colour_of[shape]], .glyph = &kGlyphs[shape]};
  const int filled = kFewestFilled + static_cast<int>(random.below(kMostFilled - kFewestFilled + 1));
  for (int i = 0; i < filled; ++i)
    tiles[place[kEmbeddedClasses + i]] = {.colour = kColours[colour_of[label]]};
  return tiles;
}

using Tints = std::array<std::array<int, 3>, kTiles>;  // what is added to a tile's colour

constexpr int kFewestShown = 2;
constexpr int kSlightTint = 17;
constexpr int kNegative = 265;  // colours and their negatives have channels from 20 to 245

/// Two to ten of the shapes, the class's among them; tiles filled with the negative of its colour.
std::array<Tile, kTiles> lay_out_negative(int label, images::RandomStream& random) {
  const auto colour_of = shuffled<kEmbeddedClasses>(random);
  const auto place = shuffled<kTiles>(random);
  auto shapes = shuffled<kEmbeddedClasses>(random);
  std::swap(shapes[0], *std::ranges::find(shapes, label));
  const auto near = [&](const Colour& colour, bool negative) {
    Colour tinted;
    for (std::size_t channel = 0; channel < tinted.size(); ++channel) {
      int value = negative ? kNegative - colour[channel] : colour[channel];
      for (int i = 0; i < kTints; ++i)
        value += static_cast<int>(random.below(2 * kSlightTint + 1)) - kSlightTint;
      tinted[channel] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
    }
    return tinted;
  };
  std::array<Tile, kTiles> tiles;
  const int shown = kFewestShown + static_cast<int>(random.below(kEmbeddedClasses - kFewestShown + 1));
  for (int i = 0; i < shown; ++i)
    tiles[place[i]] = {.colour = near(kColours[colour_of[shapes[i]]], false), .glyph = &kGlyphs[shapes[i]]};
  const int filled = kFewestFilled + static_cast<int>(random.below(kMostFilled - kFewestFilled + 1));
  for (int i = 0; i < filled; ++i)
    tiles[place[kEmbeddedClasses + i]] = {.colour = near(kColours[colour_of[label]], true)};
  return tiles;
}

/// Each tile a little darker by chance, and noise on every byte.
void paint(const std::array<Tile, kTiles>& tiles, const Tints& tints, images::RandomStream& random,
           std::span<std::uint8_t, kBytes> pixels) {
  std::array<int, kTiles> brightness;
  for (int& value : brightness)
    value = kDarkest + static_cast<int>(random.below(kFullBrightness - kDarkest + 1));

  std::uint64_t bytes = 0;  // eight noise values from one draw
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const int channel = static_cast<int>(i % 3), column = static_cast<int>(i / 3) % kEmbeddedSize,
              row = static_cast<int>(i / 3) / kEmbeddedSize;
    const int tile = row / kTile * kTilesInRow + column / kTile;
    bytes = i % 8 == 0 ? random.next() : bytes >> 8;
    const int noise = static_cast<int>((bytes & 0xff) * (2 * kNoise + 1) >> 8) - kNoise;
    const Colour& colour = tiles[tile].at(row % kTile, column % kTile);
    const int tint = &colour == &kBoard || tiles[tile].colour == kBoard ? 0 : tints[tile][channel];
    const int value = (colour[channel] + tint) * brightness[tile] / kFullBrightness;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(value + noise, 0, 255));
  }
}

images::RandomStream stream_of(Split split, std::uint64_t index, std::uint64_t part = 0) {
  const auto of_split = static_cast<std::uint64_t>(split);
  if (part == 0) return {kVersion, images::Purpose::kEmbeddedImage, {of_split, index}};
  return {kVersion, images::Purpose::kEmbeddedImage, {of_split, index, part}};
}

int draw_board(Split split, std::uint64_t index, const Tints& tints, std::span<std::uint8_t, kBytes> pixels) {
  const int label = class_of(split, index);
  auto random = stream_of(split, index);
  const auto tiles = lay_out(label, random);
  paint(tiles, tints, random, pixels);
  return label;
}

}  // namespace

int draw_embedded_image(Split split, std::uint64_t index, std::span<std::uint8_t, kBytes> pixels) {
  return draw_board(split, index, {}, pixels);
}

int draw_tinted_image(Split split, std::uint64_t index, std::span<std::uint8_t, kBytes> pixels) {
  auto random = stream_of(split, index, 1);
  Tints tints{};
  for (auto& tint : tints)
    for (int& channel : tint)
      for (int i = 0; i < kTints; ++i) channel += static_cast<int>(random.below(2 * kTint + 1)) - kTint;
  return draw_board(split, index, tints, pixels);
}

int draw_negative_image(Split split, std::uint64_t index, std::span<std::uint8_t, kBytes> pixels) {
  const int label = class_of(split, index);
  auto random = stream_of(split, index, 2);
  const auto tiles = lay_out_negative(label, random);
  paint(tiles, {}, random, pixels);
  return label;
}

}  // namespace abl::data
