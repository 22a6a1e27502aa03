// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "ablate/v1/sweeps.grpc.pb.h"
#include "scheduler/feed_stream.h"

namespace abl::scheduler {

/// A sweep's progress after each change until nothing of it waits or runs: every trial at first, then those
/// that are under way or changed.
class WatchStream final : public FeedStream<ablate::v1::SweepProgress> {
 public:
  WatchStream(ReadPool& pool, ChangeFeed& feed, std::string sweep)
      : FeedStream{pool, feed}, sweep_{std::move(sweep)} {}

 private:
  bool concerns(const std::set<Change>& changes) const override;
  bool look(storage::Database& db) override;

  const std::string sweep_;
  std::map<std::uint32_t, std::string> sent_;  // by place in the list: each trial as last sent
};

}  // namespace abl::scheduler
