// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.grpc.pb.h"
#include "scheduler/coordinator.h"
#include "scheduler/feed_stream.h"

namespace abl::scheduler {

/// A sweep's progress after each change until nothing of it waits or runs: every trial at first, then those
/// that are under way or changed.
class WatchStream final : public FeedStream<ablate::v1::SweepProgress> {
 public:
  WatchStream(ReadPool& pool, ChangeFeed& feed, const Coordinator& coordinator, std::string sweep)
      : FeedStream{pool, feed}, coordinator_{coordinator}, sweep_{std::move(sweep)} {}

 private:
  bool concerns(const std::set<Change>& changes) const override;
  bool look(storage::Database& db) override;

  const Coordinator& coordinator_;  // says what is wrong with the store
  const std::string sweep_;
  std::uint32_t next_ = 0;         // row to look at
  std::size_t place_ = 0;          // of its first trial in the whole list
  bool over_ = false;              // when the first row was looked at
  std::vector<std::size_t> sent_;  // by place: a hash of each trial as last sent
};

}  // namespace abl::scheduler
