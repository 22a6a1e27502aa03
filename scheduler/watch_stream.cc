// SPDX-License-Identifier: Apache-2.0
#include "scheduler/watch_stream.h"

#include <utility>

namespace abl::scheduler {

grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchStream::start(std::uint64_t since) {
  auto* reactor = keep();
  place_ = sweep_->resume(since);
  sweep_->add(std::static_pointer_cast<WatchStream>(shared_from_this()));
  woken();
  return reactor;
}

/// Whoever comes while another sends leaves it to that one to look once more.
void WatchStream::woken() {
  {
    const std::lock_guard lock{mutex_};
    again_ = true;
    if (std::exchange(sending_, true)) return;
  }
  for (;;) {
    {
      const std::lock_guard lock{mutex_};
      if (!std::exchange(again_, false)) {
        sending_ = false;
        return;
      }
    }
    send_next();
  }
}

void WatchStream::send_next() {
  if (unsent() > 0 || ended()) return;  // `on_sent` follows
  WatchedSweep::Next next = sweep_->next(place_);
  if (next.message) send(*std::move(next.message));
  if (next.end) finish(*std::move(next.end));
  if (next.wanted) hub_.request();
}

}  // namespace abl::scheduler
