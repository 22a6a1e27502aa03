// SPDX-License-Identifier: Apache-2.0
#include "images/pillow_transform.h"

#include <algorithm>
#include <cmath>
#include <span>

// The loops below are written for vectors of any length; the program takes the best that the machine has.
// They compute with integers, so that it changes no byte.
// (The thread sanitizer is not yet there when the choice is made.)
namespace abl::images {
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

}  // namespace abl::images

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ABL_FOR_EVERY_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ABL_FOR_EVERY_MACHINE
#endif

namespace abl::images {
namespace {

constexpr int kPrecision = 32 - 8 - 2;  // bits of a weight
constexpr int kHalf = 1 << (kPrecision - 1);

struct Filter {
  double support;
  double (*weight)(double);
};

constexpr Filter kBilinear{1, [](double x) { return std::max(0., 1 - std::abs(x)); }};

constexpr Filter kBicubic{2, [](double x) {
                            constexpr double a = -0.5;
                            x = std::abs(x);
                            if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
                            if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
                            return 0.;
                          }};

int fixed_point(double weight) {
  return static_cast<int>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kPrecision));
}

std::uint8_t clipped(int sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255)); }

using Lane [[gnu::vector_size(16)]] = int;  // the channels of a pixel, and one that is not used
using Bytes [[gnu::vector_size(16)]] = unsigned char;

/// A shuffle, for it is one instruction where a conversion of four bytes to four numbers is a dozen.
Lane pixel_at(const std::uint8_t* pixel) {
  Bytes bytes{};
  std::memcpy(&bytes, pixel, 4);  // one byte more than the pixel has
  return reinterpret_cast<Lane>(
      __builtin_shufflevector(bytes, Bytes{}, 0, 16, 16, 16, 1, 16, 16, 16, 2, 16, 16, 16, 3, 16, 16, 16));
}

/// `row` and `out` can be read and written a byte beyond their pixels; row's first pixel is the line's
/// `left`.
ABL_FOR_EVERY_MACHINE
void narrow(const std::uint8_t* row, int left, const Taps& taps, std::uint8_t* out) {
  const int* weights = taps.weights.data();
  const std::ptrdiff_t count = taps.count;
  for (const int first : taps.first) {
    const std::uint8_t* pixel = row + std::ptrdiff_t{3} * (first - left);
    Lane sum{kHalf, kHalf, kHalf};
    for (std::ptrdiff_t i = 0; i < count; ++i) sum += pixel_at(pixel + 3 * i) * weights[i];
    sum >>= kPrecision;
    sum = sum < 0 ? Lane{} : sum;
    sum = sum > 255 ? Lane{} + 255 : sum;
    const auto wide = reinterpret_cast<Bytes>(sum);
    const Bytes bytes = __builtin_shufflevector(wide, wide, 0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    std::memcpy(out, &bytes, 4);  // the byte too many belongs to the next pixel, written next
    out += 3;
    weights += count;
  }
}

constexpr std::size_t kBlock = 64;  // bytes whose sums stay in registers

/// One row of weighted rows: row i begins at `rows + i · pitch`.
ABL_FOR_EVERY_MACHINE
void blend(const std::uint8_t* rows, std::size_t pitch, std::span<const int> weights, std::uint8_t* out,
           std::size_t bytes) {
  std::size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
    int sums[kBlock];
    for (int& sum : sums) sum = kHalf;
    const std::uint8_t* row = rows + at;
    for (const int weight : weights) {
      for (std::size_t i = 0; i < kBlock; ++i) sums[i] += row[i] * weight;
      row += pitch;
    }
    for (std::size_t i = 0; i < kBlock; ++i) out[at + i] = clipped(sums[i]);
  }
  for (; at < bytes; ++at) {
    int sum = kHalf;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += rows[i * pitch + at] * weights[i];
    out[at] = clipped(sum);
  }
}

}  // namespace

Taps make_taps(const Stretch& stretch, int line, Interpolation interpolation) {
  const Filter& filter = interpolation == Interpolation::kBicubic ? kBicubic : kBilinear;
  const double scale = stretch.length / stretch.to, blur = std::max(1., scale);
  const double support = filter.support * blur;
  const auto centre = [&](int i) { return stretch.from + (stretch.first + i + 0.5) * scale; };
  const auto first = [&](int i) { return std::max(0, static_cast<int>(centre(i) - support + 0.5)); };
  const auto end = [&](int i) { return std::min(line, static_cast<int>(centre(i) + support + 0.5)); };
  Taps taps;
  taps.begin = first(0), taps.end = end(stretch.count - 1);
  for (int i = 0; i < stretch.count; ++i) taps.count = std::max(taps.count, end(i) - first(i));
  taps.weights.resize(static_cast<std::size_t>(stretch.count) * taps.count);
  std::vector<double> weights(static_cast<std::size_t>(taps.count));
  for (int i = 0; i < stretch.count; ++i) {
    const int from = first(i), count = end(i) - from;
    double sum = 0;
    for (int j = 0; j < count; ++j)
      sum += weights[j] = filter.weight((j + from - centre(i) + 0.5) * (1 / blur));
    taps.first.push_back(std::min(from, taps.end - taps.count));  // at the end, zeros in front
    int* out = &taps.weights[static_cast<std::size_t>(i) * taps.count + from - taps.first[i]];
    for (int j = 0; j < count; ++j) out[j] = fixed_point(sum != 0 ? weights[j] / sum : weights[j]);
  }
  return taps;
}

Image resample(const Image& image, int left, int top, const Taps& across, const Taps& down) {
  const int width = static_cast<int>(across.first.size()), height = static_cast<int>(down.first.size());
  const std::size_t bytes = std::size_t{3} * width;
  // a thread makes one image after another: its rows of the new width, of the old height, are kept
  thread_local std::vector<std::uint8_t> rows;
  rows.resize(bytes * (down.end - down.begin) + 1);
  for (int y = down.begin; y < down.end; ++y) {
    const std::uint8_t* row = image.row(y - top);
    std::vector<std::uint8_t> last;
    if (y - top == image.height - 1) {  // behind it there is no byte to read
      last.assign(row, row + image.row_bytes());
      last.push_back(0);
      row = last.data();
    }
    narrow(row, left, across, &rows[bytes * (y - down.begin)]);
  }
  Image out{width, height, std::vector<std::uint8_t>(bytes * height)};
  for (int y = 0; y < height; ++y) {
    const std::span weights{&down.weights[static_cast<std::size_t>(y) * down.count],
                            static_cast<std::size_t>(down.count)};
    blend(&rows[bytes * (down.first[y] - down.begin)], bytes, weights, out.row(y), bytes);
  }
  return out;
}

Image resize(const Image& image, int width, int height, Interpolation interpolation) {
  const auto taps = [&](int from, int to) {
    return make_taps({.length = static_cast<double>(from), .to = to, .count = to}, from, interpolation);
  };
  return resample(image, 0, 0, taps(image.width, width), taps(image.height, height));
}

namespace {

/// Which pixels of a line make up one of the shorter line, and with what weights.
struct Mean {
  int first = 0;
  std::vector<float> weights;
};

std::vector<Mean> means(int from, int to) {
  const double scale = 1.0 * from / to;
  std::vector<Mean> result;
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(std::ceil(centre - scale - 0.5)));
    const int last = std::min(from - 1, static_cast<int>(std::floor(centre + scale - 0.5)));
    Mean mean{.first = first};
    double sum = 0;
    for (int j = first; j <= last; ++j) sum += scale - std::abs(j + 0.5 - centre);
    for (int j = first; j <= last; ++j)
      mean.weights.push_back(static_cast<float>((scale - std::abs(j + 0.5 - centre)) / sum));
    result.push_back(std::move(mean));
  }
  return result;
}

}  // namespace

Image shrink(const Image& image, int width, int height) {
  const auto across = means(image.width, width), down = means(image.height, height);
  const auto row = std::size_t{3} * width;
  std::vector<float> narrow(row * image.height);  // [image.height, width, 3]
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y)
    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x)
      for (std::size_t i = 0; i < across[x].weights.size(); ++i)
        for (std::size_t channel = 0; channel < 3; ++channel)
          narrow[y * row + 3 * x + channel] +=
              across[x].weights[i] * image.pixels[3 * (y * image.width + across[x].first + i) + channel];

  Image out{width, height, std::vector<std::uint8_t>(row * height)};
  std::vector<float> line(row);
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    std::ranges::fill(line, 0.f);
    for (std::size_t i = 0; i < down[y].weights.size(); ++i)
      for (std::size_t x = 0; x < row; ++x)
        line[x] += down[y].weights[i] * narrow[(down[y].first + i) * row + x];
    for (std::size_t x = 0; x < row; ++x)
      out.pixels[y * row + x] = static_cast<std::uint8_t>(std::clamp(std::lround(line[x]), 0L, 255L));
  }
  return out;
}

}  // namespace abl::images
