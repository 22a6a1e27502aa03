// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace abl::images {

/// What a random stream is for. Every stream belongs to a purpose and, where one is drawn, to a sample:
/// results do not depend on the number of threads, and a resumed run continues its streams by knowing its
/// step alone. Numbers are never reused.
enum class Purpose : std::uint64_t {
  kInitialisation = 1,
  kOrder = 2,
  kAugmentation = 3,
  kSubset = 4,
  kEmbeddedClass = 5,
  kEmbeddedImage = 6,
  kMixing = 7,
  kRank = 8,
  kHeldOut = 9,
  kScene = 10,
  kBoxes = 11
};

/// SplitMix64 from a key: small, of known quality, the same on every machine.
class RandomStream {
 public:
  /// `key`: whatever tells this stream from the others, e.g. epoch and sample.
  RandomStream(std::int64_t seed, Purpose purpose, std::initializer_list<std::uint64_t> key = {});

  std::uint64_t next();
  /// In [0, bound), without bias. `bound` > 0.
  std::uint64_t below(std::uint64_t bound);
  /// In [0, 1), with 53 bits.
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Standard normal, by Box and Muller: √(-2 ln u)·cos(2πv) of two uniform draws, u in (0, 1]. The sine that
  /// they also give is dropped: the stream has no state but its position.
  double normal();

 private:
  std::uint64_t state_;
};

/// The numbers 0 … n-1 in an order of the stream's.
std::vector<std::uint32_t> permutation(std::uint32_t n, RandomStream stream);

}  // namespace abl::images
