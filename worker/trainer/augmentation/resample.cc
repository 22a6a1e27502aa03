// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/resample.h"

#include <algorithm>
#include <cmath>
#include <span>

// The loops below are written for vectors of any length; the program takes the best that the machine has.
// They compute with integers, so that it changes no byte.
// (The thread sanitizer is not yet there when the choice is made.)
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ABL_FOR_EVERY_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ABL_FOR_EVERY_MACHINE
#endif

namespace abl::trainer {
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
      __builtin_shuffle(bytes, Bytes{}, Bytes{0, 16, 16, 16, 1, 16, 16, 16, 2, 16, 16, 16, 3, 16, 16, 16}));
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
    const Bytes bytes = __builtin_shuffle(reinterpret_cast<Bytes>(sum), Bytes{0, 4, 8, 12});
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
  // a thread makes one view after another: its rows of the new width, of the old height, are kept
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

}  // namespace abl::trainer
