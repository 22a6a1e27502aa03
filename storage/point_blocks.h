// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/buckets.h"
#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Long stretches of curves, kept beside their points (table `point_block`): a block covers the steps from a
/// multiple of its length, a power of two, with about 2,048 points in it, as its 64 parts and as its
/// quarters. Blocks are made of points behind which the metric has gone on; a point that comes late takes its
/// block away. Thread: the connection's.
class PointBlocks {
 public:
  static constexpr std::uint32_t kPoints =
      2048;  ///< of a block, at most, unless steps were left out of order
  explicit PointBlocks(Database& db) : db_{db} {}

  /// Makes the blocks that the metric's points have completed; so many at most, so that nobody waits long for
  /// a commit.
  void extend(RunId run, std::int64_t metric, int most = 64);
  /// The block of a step is no longer what its points are.
  void forget(RunId run, std::int64_t metric, std::uint32_t step);

  struct Parts {
    std::function<void(const CurvePoint&)> point;
    std::function<void(const Stretch&)> stretch;
  };
  /// All points of a range of steps, by ascending step: as stretches, each within one bucket of
  /// `bucket_steps` (a power of two), where blocks have such, and otherwise one by one. Throws:
  /// Error{kDataLoss}: a block is none.
  void read(RunId run, std::int64_t metric, StepRange range, std::uint32_t bucket_steps,
            const Parts& parts) const;
  /// How many of the points of a range stand in blocks that lie in it whole.
  std::uint64_t points(RunId run, std::int64_t metric, StepRange range) const;

 private:
  void read_points(RunId run, std::int64_t metric, StepRange range,
                   const std::function<void(const CurvePoint&)>& point) const;
  Database& db_;
};

/// Stretches by their places among the parts of a block, as bytes, little-endian: of each that has points its
/// place (uint32), points, those that are not finite, those that are kept (uint32 each), the sum of the
/// finite (double); of each that is kept its step (uint32), value (double) and time (int64).
std::string packed(const std::vector<Stretch>& parts);
/// The same, each with its place. Throws: Error{kDataLoss}: bytes that `packed` does not make.
struct PlacedStretch {
  std::uint32_t place = 0;
  Stretch stretch;
};
std::vector<PlacedStretch> unpacked(std::string_view bytes, std::uint32_t parts);

}  // namespace abl::storage
