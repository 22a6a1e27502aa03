// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.grpc.pb.h"
#include "scheduler/coordinator.h"
#include "scheduler/feed_stream.h"
#include "storage/types.h"
#include "views/table_cache.h"

namespace abl::scheduler {

/// A sweep's progress after each change until nothing of it waits or runs: every trial at first, then those
/// that are under way or changed.
class WatchStream final : public FeedStream<ablate::v1::SweepProgress> {
 public:
  WatchStream(storage::ReadPool& pool, ChangeFeed& feed, views::TableCache& tables,
              const Coordinator& coordinator, std::string sweep)
      : FeedStream{pool, feed}, tables_{tables}, coordinator_{coordinator}, sweep_{std::move(sweep)} {}

 private:
  bool concerns(const std::set<storage::Change>& changes) const override;
  bool look(storage::Database& db) override;
  ablate::v1::SweepDetail look_at_rows(storage::Database& db);

  views::TableCache& tables_;
  const Coordinator& coordinator_;  // says what is wrong with the store
  const std::string sweep_;
  // the first of the rows is looked at together with the sweep as such
  storage::SweepRecord record_;  // without its texts
  ablate::v1::SweepSummary summary_;
  std::uint32_t next_ = 0;  // row to look at
  std::size_t place_ = 0;   // of its first trial in the whole list
  bool over_ = false;
  std::vector<std::size_t> sent_;  // by place: a hash of each trial as last sent
};

}  // namespace abl::scheduler
