// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/affine.h"

#include <algorithm>
#include <cmath>

namespace abl::trainer {
namespace {

/// The image's point that a column and a row of the output show. Sums in one order, so that each is rounded
/// alike.
struct Points {
  const AffineMap& map;
  double x(int column, int row) const { return map[0] * (column + 0.5) + map[1] * (row + 0.5) + map[2]; }
  double y(int column, int row) const { return map[3] * (column + 0.5) + map[4] * (row + 0.5) + map[5]; }
};

/// `Count` neighbouring pixels along one axis, the first at `first`, and how far the point lies from the
/// second (of two: from the first) of them towards the next.
template <int Count>
struct Neighbours {
  Neighbours(double point, int size) {
    const double from_middle = point - 0.5;  // >= -0.5
    const int pixel = from_middle < 0 ? -1 : static_cast<int>(from_middle);
    part = from_middle - pixel;
    for (int i = 0; i < Count; ++i) at[i] = std::clamp(pixel + i - (Count / 2 - 1), 0, size - 1);
  }
  std::array<int, Count> at;
  double part;
};

struct Bilinear {
  static constexpr int kNeighbours = 2;
  template <class Number>
  static double between(const std::array<Number, 2>& v, double part) {
    return v[0] + (v[1] - v[0]) * part;
  }
};

struct Bicubic {
  static constexpr int kNeighbours = 4;
  template <class Number>
  static double between(const std::array<Number, 4>& v, double part) {
    const double slope = -v[0] + v[2], square = 2 * (v[0] - v[1]) + v[2] - v[3],
                 cube = -v[0] + v[1] - v[2] + v[3];
    return v[1] + part * (slope + part * (square + part * cube));
  }
};

template <class Kernel>
void interpolate(const Image& image, double x, double y, std::uint8_t* to) {
  constexpr int kCount = Kernel::kNeighbours;
  const Neighbours<kCount> columns{x, image.width}, rows{y, image.height};
  std::array<const std::uint8_t*, kCount> from;
  for (int i = 0; i < kCount; ++i) from[i] = image.row(rows.at[i]);
  for (int c = 0; c < 3; ++c) {
    std::array<double, kCount> along;
    for (int i = 0; i < kCount; ++i) {
      std::array<int, kCount> values;
      for (int j = 0; j < kCount; ++j) values[j] = from[i][3 * columns.at[j] + c];
      along[i] = Kernel::between(values, columns.part);
    }
    to[c] = static_cast<std::uint8_t>(std::clamp(Kernel::between(along, rows.part), 0.0, 255.0));
  }
}

// From here on `out` begins as an image of the fill colour: what lies outside is passed over.

template <class Kernel>
void interpolated(const Image& image, const AffineMap& map, Image& out) {
  const Points points{map};
  for (int row = 0; row < out.height; ++row) {
    std::uint8_t* to = out.row(row);
    for (int column = 0; column < out.width; ++column, to += 3)
      if (const double x = points.x(column, row), y = points.y(column, row);
          x >= 0 && x < image.width && y >= 0 && y < image.height)
        interpolate<Kernel>(image, x, y, to);
  }
}

/// Where the pixels of a line come from when neighbours in it are `step` apart; -1 for outside. Steps add up,
/// as Pillow has them.
std::vector<int> line(double first, double step, int count, int size) {
  std::vector<int> from(static_cast<std::size_t>(count));
  for (int& at : from) {
    at = first >= 0 && first < size ? static_cast<int>(first) : -1;
    first += step;
  }
  return from;
}

/// Rows stay rows: each pixel by its column and its row apart.
void nearest_upright(const Image& image, const AffineMap& map, Image& out) {
  const auto columns = line(map[2] + map[0] * 0.5, map[0], out.width, image.width);
  const auto rows = line(map[5] + map[4] * 0.5, map[4], out.height, image.height);
  const auto is_inside = [](int at) { return at >= 0; };
  const auto first = std::find_if(columns.begin(), columns.end(), is_inside);
  const auto last = std::find_if_not(first, columns.end(), is_inside);
  if (first == last) return;
  const auto left = std::ptrdiff_t{3} * (first - columns.begin());
  const bool moved_only = *(last - 1) - *first == last - 1 - first;  // a column each
  for (int y = 0; y < out.height; ++y) {
    if (rows[y] < 0) continue;
    const std::uint8_t* from = image.row(rows[y]);
    std::uint8_t* to = out.row(y) + left;
    if (moved_only)
      std::memcpy(to, from + std::ptrdiff_t{3} * *first, static_cast<std::size_t>(3 * (last - first)));
    else
      for (auto column = first; column != last; ++column, to += 3)
        copy_pixel(from + std::ptrdiff_t{3} * *column, to);
  }
}

/// In whole numbers with 16 bits of fraction.
void nearest_turned(const Image& image, const AffineMap& map, Image& out) {
  const auto fixed = [](double v) { return static_cast<std::int64_t>(std::floor(v * 65'536 + 0.5)); };
  const std::int64_t right_x = fixed(map[0]), right_y = fixed(map[3]), down_x = fixed(map[1]),
                     down_y = fixed(map[4]);
  std::int64_t left = fixed(map[2] + map[0] * 0.5 + map[1] * 0.5),
               top = fixed(map[5] + map[3] * 0.5 + map[4] * 0.5);
  for (int row = 0; row < out.height; ++row, left += down_x, top += down_y) {
    std::uint8_t* to = out.row(row);
    std::int64_t x = left, y = top;
    for (int column = 0; column < out.width; ++column, to += 3, x += right_x, y += right_y)
      if (const std::int64_t from = x >> 16, line = y >> 16;
          from >= 0 && from < image.width && line >= 0 && line < image.height)
        copy_pixel(image.row(static_cast<int>(line)) + 3 * from, to);
  }
}

/// Do 16 bits of whole number, with a sign, hold all points?
bool fits(const AffineMap& map, int width, int height) {
  const auto small = [](double value) { return std::abs(value) < 32'768; };
  for (const int x : {0, width})
    for (const int y : {0, height})
      if (!small(x * map[0] + y * map[1] + map[2]) || !small(x * map[3] + y * map[4] + map[5])) return false;
  return true;
}

/// Points too far away for `nearest_turned`.
void nearest_anywhere(const Image& image, const AffineMap& map, Image& out) {
  double left = map[2] + map[1] * 0.5 + map[0] * 0.5, top = map[5] + map[4] * 0.5 + map[3] * 0.5;
  for (int row = 0; row < out.height; ++row, left += map[1], top += map[4]) {
    std::uint8_t* to = out.row(row);
    double x = left, y = top;
    for (int column = 0; column < out.width; ++column, to += 3, x += map[0], y += map[3])
      if (x >= 0 && x < image.width && y >= 0 && y < image.height)
        copy_pixel(image.row(static_cast<int>(y)) + std::ptrdiff_t{3} * static_cast<int>(x), to);
  }
}

void nearest(const Image& image, const AffineMap& map, Image& out) {
  if (map[1] == 0 && map[3] == 0)
    nearest_upright(image, map, out);
  else if (fits(map, out.width, out.height))
    nearest_turned(image, map, out);
  else
    nearest_anywhere(image, map, out);
}

}  // namespace

Image affine(const Image& image, const AffineMap& map, const Sampling& sampling) {
  Image out = filled(image.width, image.height, sampling.fill);
  switch (sampling.interpolation) {
    case Interpolation::kNearest:
      nearest(image, map, out);
      break;
    case Interpolation::kBilinear:
      interpolated<Bilinear>(image, map, out);
      break;
    case Interpolation::kBicubic:
      interpolated<Bicubic>(image, map, out);
      break;
  }
  return out;
}

}  // namespace abl::trainer
