// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.h"
#include "scheduler/change_feed.h"
#include "storage/writer.h"

namespace abl::scheduler {

/// Goes on with the sweeps that are being removed, step by step, each a job of the writer between those of
/// others. It begins with what an earlier start has left, and after each change of a sweep; what fails or has
/// to wait is tried again a second later.
class Remover {
 public:
  Remover(storage::Writer& writer, const Clock& clock, ChangeFeed& feed);
  /// Nothing more begins. The writer must outlive it, and what it has posted must not.
  ~Remover();

 private:
  struct State;
  std::shared_ptr<State> state_;
  ChangeFeed::Subscription subscription_;
};

}  // namespace abl::scheduler
