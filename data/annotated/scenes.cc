// SPDX-License-Identifier: Apache-2.0
#include "data/annotated/scenes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "images/random.h"

namespace abl::data {
namespace {

using images::Colour;
using images::RandomStream;

constexpr std::int64_t kScenesVersion = 1;  // the number in kScenesFingerprint
constexpr int kFewestThings = 2;
constexpr int kTries = 12;                           // to find a place for a shape
constexpr int kLeastSeen = 2, kOfSeen = 5;           // what must be seen of each shape: two fifths
constexpr int kSceneNoise = 14;                      // added to each byte: -kSceneNoise … kSceneNoise
constexpr int kDarkGround = 20, kBrightGround = 90;  // channels of the ground's corners
constexpr int kBrightest = 245, kPlain = 60;  // of a shape's colour, and the least range of its channels

/// A quarter of a turn in steps of 1/16 of it, as cosines in 1024ths; sines are the same backwards.
constexpr int kUnit = 1024, kQuarter = 16, kTurn = 4 * kQuarter;
constexpr std::array<int, kQuarter + 1> kCosine{1024, 1019, 1004, 980, 946, 903, 851, 792, 724,
                                                650,  569,  483,  392, 297, 200, 100, 0};
int cosine(int step) {
  step %= kTurn;
  if (step > kTurn / 2) step = kTurn - step;
  return step <= kQuarter ? kCosine[static_cast<std::size_t>(step)]
                          : -kCosine[static_cast<std::size_t>(kTurn / 2 - step)];
}

int between(RandomStream& random, int low, int high) {
  return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

struct Shape {
  int category = 0;
  int x = 0, y = 0, radius = 0;  ///< of a circle around it. Units: half pixels
  int turn = 0;                  ///< steps
  Colour colour{};

  bool covers(int pixel_x, int pixel_y) const {
    const std::int64_t dx = 2 * pixel_x + 1 - x, dy = 2 * pixel_y + 1 - y;
    const std::int64_t cos = cosine(turn), sin = cosine(turn + 3 * kQuarter);
    return is_in(cos * dx + sin * dy, cos * dy - sin * dx, std::int64_t{radius} * kUnit);
  }

 private:
  /// `u`, `v`: from its centre, along its own axes; `r`: its radius. Units: half a pixel is kUnit.
  bool is_in(std::int64_t u, std::int64_t v, std::int64_t r) const {
    const std::int64_t across = std::abs(u), down = std::abs(v);
    const auto within = [&](std::int64_t of_100) {
      return 10'000 * (u * u + v * v) <= of_100 * of_100 * r * r;
    };
    switch (category) {
      case 0:  // disc
        return within(90);
      case 1:  // ring
        return within(100) && !within(58);
      case 2:  // square
        return 100 * std::max(across, down) <= 72 * r;
      case 3:  // bar
        return across <= r && 100 * down <= 28 * r;
      case 4:  // plus
        return std::max(across, down) <= r && 100 * std::min(across, down) <= 30 * r;
      case 5:  // triangle with equal sides: its corners are on the circle
        return 2 * v <= r && 1000 * across <= 577 * (v + r);
      default:  // hourglass
        return across <= down && 100 * down <= 78 * r;
    }
  }
};

/// A shape on the picture: which pixels it covers, and how many of them no later one covers.
class Board {
 public:
  explicit Board(int side) : side_{side}, top_(static_cast<std::size_t>(side) * side, kGround) {}

  /// False where too little would be seen of one below; nothing is placed then.
  bool place(const Shape& shape) {
    std::vector<std::size_t> pixels;
    std::vector<int> hidden(shapes_.size());
    const int left = std::max(0, (shape.x - shape.radius) / 2),
              right = std::min(side_, (shape.x + shape.radius) / 2 + 1);
    const int top = std::max(0, (shape.y - shape.radius) / 2),
              bottom = std::min(side_, (shape.y + shape.radius) / 2 + 1);
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x) {
        if (!shape.covers(x, y)) continue;
        pixels.push_back(static_cast<std::size_t>(y * side_ + x));
        if (const int below = top_[pixels.back()]; below != kGround)
          ++hidden[static_cast<std::size_t>(below)];
      }
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      if (kOfSeen * (seen_[i] - hidden[i]) < kLeastSeen * whole_[i]) return false;
    for (std::size_t i = 0; i < shapes_.size(); ++i) seen_[i] -= hidden[i];
    for (const std::size_t pixel : pixels) top_[pixel] = static_cast<int>(shapes_.size());
    shapes_.push_back(shape);
    whole_.push_back(static_cast<int>(pixels.size())), seen_.push_back(whole_.back());
    return true;
  }

  const std::vector<Shape>& shapes() const { return shapes_; }
  /// Null on the ground.
  const Shape* at(int x, int y) const {
    const int shape = top_[static_cast<std::size_t>(y * side_ + x)];
    return shape == kGround ? nullptr : &shapes_[static_cast<std::size_t>(shape)];
  }
  images::Mask seen_of(std::size_t shape) const {
    std::vector<std::uint8_t> pixels(top_.size());
    for (std::size_t i = 0; i < top_.size(); ++i) pixels[i] = top_[i] == static_cast<int>(shape);
    return images::mask_of_pixels(pixels, side_, side_);
  }

 private:
  static constexpr int kGround = -1;
  const int side_;
  std::vector<int> top_;  ///< [side, side]: the shape that is seen there
  std::vector<Shape> shapes_;
  std::vector<int> whole_, seen_;  ///< pixels of each
};

/// Any but greys: the ground is nearly grey.
Colour draw_colour(RandomStream& random) {
  Colour colour;
  do {
    for (auto& channel : colour) channel = static_cast<std::uint8_t>(between(random, 0, kBrightest));
  } while (std::ranges::max(colour) - std::ranges::min(colour) < kPlain ||
           std::ranges::max(colour) < kBrightGround + kPlain);
  return colour;
}

/// It lies in the picture with its whole circle.
Shape draw_shape(int side, RandomStream& random) {
  Shape shape{.category = between(random, 0, static_cast<int>(kSceneCategories.size()) - 1)};
  shape.radius = between(random, 2 * side / 12, 2 * side / 4);
  shape.x = between(random, shape.radius, 2 * side - shape.radius);
  shape.y = between(random, shape.radius, 2 * side - shape.radius);
  shape.turn = between(random, 0, kTurn - 1);
  shape.colour = draw_colour(random);
  return shape;
}

Board draw_board(int side, RandomStream& random) {
  Board board{side};
  const int things = between(random, kFewestThings, kMostThings);
  for (int i = 0; i < things; ++i)
    for (int tried = 0; tried < kTries && !board.place(draw_shape(side, random)); ++tried) {
    }
  return board;
}

/// The ground goes over from one colour to another, from corner to corner.
images::Image paint(const Board& board, int side, RandomStream& random) {
  Colour from, to;
  for (auto* colour : {&from, &to})
    for (auto& channel : *colour)
      channel = static_cast<std::uint8_t>(between(random, kDarkGround, kBrightGround));
  images::Image image = images::black(side, side);
  std::uint64_t bytes = 0;  // eight noise values from one draw
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const auto channel = i % 3;
    const int x = static_cast<int>(i / 3) % side, y = static_cast<int>(i / 3) / side;
    bytes = i % 8 == 0 ? random.next() : bytes >> 8;
    const int noise = static_cast<int>((bytes & 0xff) * (2 * kSceneNoise + 1) >> 8) - kSceneNoise;
    const Shape* shape = board.at(x, y);
    const int ground = (from[channel] * (2 * side - x - y) + to[channel] * (x + y)) / (2 * side);
    image.pixels[i] =
        static_cast<std::uint8_t>(std::clamp((shape ? shape->colour[channel] : ground) + noise, 0, 255));
  }
  return image;
}

void check(int side) {
  if (side < kSmallestScene || side > kLargestScene)
    throw Error{Code::kInvalidArgument, fmt::format("scene size {} is out of range; expected {} to {} pixels",
                                                    side, kSmallestScene, kLargestScene)};
}

class SceneSource final : public AnnotatedSource {
 public:
  SceneSource(Split split, std::uint32_t size, int side) : split_{split}, size_{size}, side_{side} {}

  std::uint32_t size() const override { return size_; }
  std::string name(std::uint32_t index) const override {
    return fmt::format("{} scene {}", name_of(split_), index);
  }
  Extent extent(std::uint32_t) const override { return {side_, side_}; }
  std::size_t instances(std::uint32_t index) const override {
    auto random = stream_of(split_, index, side_);
    return draw_board(side_, random).shapes().size();
  }
  images::Annotated read(std::uint32_t index) const override { return draw_scene(split_, index, side_); }

  static RandomStream stream_of(Split split, std::uint64_t index, int side) {
    return {kScenesVersion,
            images::Purpose::kScene,
            {static_cast<std::uint64_t>(split), index, static_cast<std::uint64_t>(side)}};
  }

 private:
  const Split split_;
  const std::uint32_t size_;
  const int side_;
};

}  // namespace

images::Annotated draw_scene(Split split, std::uint64_t index, int side) {
  check(side);
  auto random = SceneSource::stream_of(split, index, side);
  const Board board = draw_board(side, random);
  images::Annotated scene{
      .image = paint(board, side, random), .instances = {}, .labels = images::labelled(side, side, 0)};
  for (std::size_t i = 0; i < board.shapes().size(); ++i) {
    images::Instance thing{.category = board.shapes()[i].category, .box = {}, .mask = board.seen_of(i)};
    thing.box = images::bounds(thing.mask), thing.area = static_cast<double>(images::area(thing.mask));
    scene.instances.push_back(std::move(thing));
  }
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      if (const Shape* shape = board.at(x, y))
        scene.labels.row(y)[x] = static_cast<std::uint8_t>(1 + shape->category);
  return scene;
}

AnnotatedSet drawn_scenes(std::uint32_t train, std::uint32_t val, int side) {
  check(side);
  AnnotatedSet set{.train = std::make_shared<SceneSource>(Split::kTrain, train, side),
                   .val = std::make_shared<SceneSource>(Split::kVal, val, side),
                   .fingerprint = fmt::format("{}-{}", kScenesFingerprint, side),
                   .categories = {kSceneCategories.begin(), kSceneCategories.end()},
                   .labels = {"ground"},
                   .format = "drawn scenes",
                   .passed_over = {}};
  set.labels.insert(set.labels.end(), kSceneCategories.begin(), kSceneCategories.end());
  return set;
}

}  // namespace abl::data
