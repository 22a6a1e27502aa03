// SPDX-License-Identifier: Apache-2.0
#include "images/masks/polygons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "images/masks/overlap.h"

namespace abl::images {
namespace {

constexpr int kScale = 5;  // steps of the walk in a pixel

struct Point {
  int x = 0, y = 0;
};

/// To the nearest, but halves and negative numbers towards zero as a C cast does: pixels depend on it.
int rounded(double value) { return static_cast<int>(value + 0.5); }

/// Calls `at(point)` for every step from `from` to `to`, both among them.
template <class At>
void walk(Point from, Point to, const At& at) {
  const int across = std::abs(to.x - from.x), down = std::abs(to.y - from.y);
  const bool flat = across >= down;
  // positions are computed from the lower end whichever way the walk goes, so that both ways give the same
  const bool backwards = flat ? from.x > to.x : from.y > to.y;
  if (backwards) std::swap(from, to);
  const int steps = flat ? across : down;
  const double slope = steps == 0 ? 0
                       : flat     ? static_cast<double>(to.y - from.y) / across
                                  : static_cast<double>(to.x - from.x) / down;
  for (int i = 0; i <= steps; ++i) {
    const int t = backwards ? steps - i : i;
    at(flat ? Point{from.x + t, rounded(from.y + slope * t)}
            : Point{rounded(from.x + slope * t), from.y + t});
  }
}

/// Where the walk goes from one column to another, each as the number of the pixel, down the columns, from
/// which on inside and outside are exchanged.
class Crossings {
 public:
  Crossings(int width, int height) : width_{width}, height_{height} {}

  void step(Point to) {
    if (has_last_ && to.x != last_.x) add(to);
    last_ = to, has_last_ = true;
  }

  Mask mask() && {
    std::ranges::sort(at_);
    MaskWriter writer{width_, height_};
    std::uint64_t from = 0;
    bool inside = false;
    for (const std::uint64_t at : at_) {
      writer.add(inside, at - from);
      from = at, inside = !inside;
    }
    if (inside) writer.add(true, std::numeric_limits<std::uint32_t>::max());  // to the end of the picture
    return std::move(writer).finish();
  }

 private:
  void add(Point to) {
    const int left = to.x < last_.x ? to.x : to.x - 1;
    const double x = (left + 0.5) / kScale - 0.5;
    if (std::floor(x) != x || x < 0 || x > width_ - 1) return;
    const double y = (std::min(to.y, last_.y) + 0.5) / kScale - 0.5;
    const double row = std::ceil(std::clamp(y, 0.0, static_cast<double>(height_)));
    at_.push_back(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(height_) +
                  static_cast<std::uint64_t>(row));
  }

  const int width_, height_;
  std::vector<std::uint64_t> at_;
  Point last_;
  bool has_last_ = false;
};

}  // namespace

void expect_polygon(std::span<const double> polygon) {
  if (polygon.size() % 2 != 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("odd number of polygon coordinates ({}); expected x and y for each corner",
                            polygon.size())};
  if (polygon.size() < 6)
    throw Error{Code::kInvalidArgument, fmt::format("polygon with {} corner{}; expected at least 3",
                                                    polygon.size() / 2, polygon.size() == 2 ? "" : "s")};
  for (const double value : polygon)
    if (!(std::abs(value) <= kFarthestCorner))
      throw Error{
          Code::kInvalidArgument,
          fmt::format("polygon coordinate {} is out of range; expected at most {:.0f} pixels from the image",
                      value, kFarthestCorner)};
}

Mask mask_of_polygon(std::span<const double> polygon, int width, int height) {
  expect_polygon(polygon);
  std::vector<Point> corners;
  for (std::size_t i = 0; i < polygon.size(); i += 2)
    corners.push_back({rounded(kScale * polygon[i]), rounded(kScale * polygon[i + 1])});
  std::int64_t length = 0;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const Point from = corners[i], to = corners[(i + 1) % corners.size()];
    length += std::max(std::abs(from.x - to.x), std::abs(from.y - to.y));
  }
  if (length > kScale * kLongestBoundary)
    throw Error{Code::kInvalidArgument, fmt::format("polygon boundary of {} pixels; expected at most {}",
                                                    length / kScale, kLongestBoundary)};
  Crossings crossings{width, height};
  for (std::size_t i = 0; i < corners.size(); ++i)
    walk(corners[i], corners[(i + 1) % corners.size()], [&](Point point) { crossings.step(point); });
  return std::move(crossings).mask();
}

Mask mask_of_polygons(std::span<const Polygon> polygons, int width, int height) {
  std::vector<Mask> masks;
  for (const Polygon& polygon : polygons) masks.push_back(mask_of_polygon(polygon, width, height));
  if (masks.empty()) return filled_mask(width, height, 0, 0, 0, 0);
  return masks.size() == 1 ? std::move(masks.front()) : merged(masks, Merge::kUnion);
}

Box bounds(std::span<const Polygon> polygons) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  double left = kFar, top = kFar, right = -kFar, bottom = -kFar;
  for (const Polygon& polygon : polygons)
    for (std::size_t i = 0; i + 1 < polygon.size(); i += 2) {
      left = std::min(left, polygon[i]), right = std::max(right, polygon[i]);
      top = std::min(top, polygon[i + 1]), bottom = std::max(bottom, polygon[i + 1]);
    }
  return right < left ? Box{} : Box{left, top, right - left, bottom - top};
}

}  // namespace abl::images
