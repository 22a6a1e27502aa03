// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "scheduler/server_stream.h"
#include "scheduler/watch_hub.h"

namespace abl::scheduler {

/// One reader of a watched sweep, until nothing of it waits or runs. He takes the next message when the last
/// has left: if he stops, one message is on its way, and nothing waits for him.
class WatchStream final : public ServerStream<grpc::ServerWriteReactor<grpc::ByteBuffer>, grpc::ByteBuffer>,
                          public WatchedSweep::Reader {
 public:
  WatchStream(WatchHub& hub, const std::string& sweep) : hub_{hub}, sweep_{hub.open(sweep)} {}

  /// `since`: the number of the last message that he had, or 0.
  grpc::ServerWriteReactor<grpc::ByteBuffer>* start(std::uint64_t since);
  void woken() override;

 private:
  void send_next();
  void on_sent() override { woken(); }
  void OnCancel() override { finish(grpc::Status::CANCELLED); }

  WatchHub& hub_;
  const std::shared_ptr<WatchedSweep> sweep_;
  WatchPlace place_;  // of who sends, one at a time
  std::mutex mutex_;
  bool sending_ = false, again_ = false;
};

}  // namespace abl::scheduler
