// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace abl::scheduler {

/// What every stream that we serve shares: messages leave one after the other, the end is said once and after
/// them, and the object lives until gRPC is done with it and nobody else holds its handle. `Reactor` is a
/// ServerBidiReactor or ServerWriteReactor. To be made with std::make_shared and started with `keep()`.
/// Thread: `send`, `finish`, from any.
template <class Reactor, class Response>
class ServerStream : public Reactor, public std::enable_shared_from_this<ServerStream<Reactor, Response>> {
 public:
  /// Sends after what was sent before; nothing happens once the end was said.
  void send(Response message) {
    const std::lock_guard lock{mutex_};
    if (end_ || broken_) return;
    queue_.push_back(std::move(message));
    if (!std::exchange(writing_, true)) this->StartWrite(&queue_.front());
  }

  /// Ends the stream when what was sent before has left; the first call counts.
  void finish(grpc::Status status) {
    const std::lock_guard lock{mutex_};
    if (end_) return;
    end_ = std::move(status);
    if (!writing_) this->Finish(*end_);
  }

 protected:
  /// gRPC's hold on the object, from now until OnDone. Returns the reactor, for the method to return.
  Reactor* keep() {
    self_ = this->shared_from_this();
    return this;
  }
  bool ended() {
    const std::lock_guard lock{mutex_};
    return end_.has_value();
  }
  std::size_t unsent() {
    const std::lock_guard lock{mutex_};
    return queue_.size();
  }

  virtual void on_sent() {}  ///< a message has left
  /// Before the first of `waiting` leaves: may take the next ones into it. Under this stream's mutex.
  virtual void gather(std::deque<Response>& /*waiting*/) {}
  virtual void on_closed() {}  ///< the call is over: nothing follows

 private:
  void OnWriteDone(bool ok) final {
    {
      const std::lock_guard lock{mutex_};
      if (ok)
        queue_.pop_front();
      else
        queue_.clear(), broken_ = true;  // the peer is gone
      writing_ = !queue_.empty();
      if (writing_)
        gather(queue_), this->StartWrite(&queue_.front());
      else if (end_)
        this->Finish(*end_);
    }
    on_sent();
  }
  void OnDone() final {
    const auto self = std::move(self_);  // the last thing that gRPC does with it
    on_closed();
  }

  std::mutex mutex_;
  std::deque<Response> queue_;
  bool writing_ = false, broken_ = false;
  std::optional<grpc::Status> end_;
  std::shared_ptr<ServerStream> self_;
};

}  // namespace abl::scheduler
