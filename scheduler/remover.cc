// SPDX-License-Identifier: Apache-2.0
#include "scheduler/remover.h"

#include <atomic>
#include <exception>
#include <set>
#include <string>

#include "base/log.h"
#include "scheduler/status.h"
#include "storage/removal.h"

namespace abl::scheduler {

struct Remover::State : std::enable_shared_from_this<State> {
  using Step = storage::Removal::Step;

  State(storage::Writer& writer, const Clock& clock, ChangeFeed& feed)
      : writer{writer}, clock{clock}, feed{feed} {}

  void look(const std::set<storage::Change>& changes) {
    for (const storage::Change& change : changes)
      if (!change.sweep.empty() && change.run == 0) pending = true;
    if (pending) go_on();
  }

  void go_on() {
    if (stopped || posted.exchange(true)) return;
    pending = false;
    const auto step = std::make_shared<Step>(Step::kDone);
    writer.post([self = shared_from_this(),
                 step](storage::Database& db) { *step = storage::Removal{db}.step(self->clock.now()); },
                [self = shared_from_this(), step](std::exception_ptr error) { self->done(error, *step); });
  }

  void done(std::exception_ptr error, Step step) {
    posted = false;
    if (error && !failed) log_warning("cannot go on with removing a sweep: {}", message_of(error));
    failed = error != nullptr;
    if (error || step == Step::kWaits) {
      pending = true;
    } else if (step == Step::kMore) {
      removed = true;
      go_on();
    } else if (removed) {
      removed = false;
      log_info("every sweep that was to be removed is gone");
      feed.publish(storage::Change{});
    }
  }

  storage::Writer& writer;
  const Clock& clock;
  ChangeFeed& feed;
  std::atomic<bool> pending = true, posted = false, stopped = false;
  bool removed = false, failed = false;  // of the writer's thread
};

Remover::Remover(storage::Writer& writer, const Clock& clock, ChangeFeed& feed)
    : state_{std::make_shared<State>(writer, clock, feed)},
      subscription_{feed.subscribe(
          [state = state_](const std::set<storage::Change>& changes) { state->look(changes); })} {}

Remover::~Remover() { state_->stopped = true; }

}  // namespace abl::scheduler
