// SPDX-License-Identifier: Apache-2.0
#include "images/random.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace abl::images {
namespace {

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

}  // namespace

RandomStream::RandomStream(std::int64_t seed, Purpose purpose, std::initializer_list<std::uint64_t> key)
    : state_{mix(static_cast<std::uint64_t>(seed) + kGolden)} {
  state_ = mix(state_ + kGolden * static_cast<std::uint64_t>(purpose));
  for (const auto part : key) state_ = mix(state_ + kGolden + part);
}

std::uint64_t RandomStream::next() { return mix(state_ += kGolden); }

std::uint64_t RandomStream::below(std::uint64_t bound) {
  const std::uint64_t unfair = -bound % bound;  // 2⁶⁴ mod bound: draws below it would favour small numbers
  for (;;)
    if (const auto draw = next(); draw >= unfair) return draw % bound;
}

double RandomStream::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double RandomStream::normal() {
  const double u = 1 - uniform(), v = uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

std::vector<std::uint32_t> permutation(std::uint32_t n, RandomStream stream) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[stream.below(i)]);
  return order;
}

}  // namespace abl::images
