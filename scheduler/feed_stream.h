// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <utility>

#include "scheduler/change_feed.h"
#include "scheduler/server_stream.h"
#include "scheduler/status.h"
#include "storage/read_pool.h"

namespace abl::scheduler {

/// A stream that shows something stored, now and again after each change, until it is over. One look at a
/// time: changes during a look, or while the peer has not taken the last answer, lead to one more look
/// afterwards. What a look sends counts among the answers on their way until it has left.
template <class Response>
class FeedStream : public ServerStream<grpc::ServerWriteReactor<Response>, Response> {
 public:
  FeedStream(storage::ReadPool& pool, ChangeFeed& feed) : pool_{pool}, feed_{feed}, room_{pool} {}

  grpc::ServerWriteReactor<Response>* start() {
    auto* reactor = this->keep();
    // a weak hold: the subscription must not keep alive the stream that it belongs to
    subscription_ = feed_.subscribe([weak = std::weak_ptr{self()}](const std::set<storage::Change>& changes) {
      if (const auto stream = weak.lock(); stream && stream->concerns(changes)) stream->wake();
    });
    wake();
    return reactor;
  }

 protected:
  virtual bool concerns(const std::set<storage::Change>& changes) const = 0;
  /// Sends what there is to say. Returns: true when nothing can follow.
  /// Thread: the pool's, one call at a time.
  virtual bool look(storage::Database& db) = 0;
  void send(Response message) {
    bytes_ += message.ByteSizeLong();
    Stream::send(std::move(message));
  }
  /// Asks for one more look.
  void wake() {
    {
      const std::lock_guard lock{mutex_};
      pending_ = true;
    }
    look_if_due();
  }

 private:
  using Stream = ServerStream<grpc::ServerWriteReactor<Response>, Response>;

  std::shared_ptr<FeedStream> self() {
    return std::static_pointer_cast<FeedStream>(this->shared_from_this());
  }

  void look_if_due() {
    {
      const std::lock_guard lock{mutex_};
      if (!pending_ || looking_ || this->unsent() > 0 || this->ended()) return;
      pending_ = false;
      looking_ = true;
    }
    auto look = [stream = self()](storage::Database& db) {
      bool over = false;
      const grpc::Status status = status_of([&] {
        stream->bytes_ = 0;
        stream->room_.resize(storage::ReadPool::Room::kToBegin);  // all that was sent before has left
        over = stream->look(db);
        stream->room_.resize(stream->bytes_);
      });
      if (over || !status.ok()) stream->finish(status);
      {
        const std::lock_guard lock{stream->mutex_};
        stream->looking_ = false;
        stream->give_room_back();
      }
      stream->look_if_due();
    };
    pool_.post(std::move(look), stop_.get_token());
  }

  /// When all that a look has sent has left. Under `mutex_`.
  void give_room_back() {
    if (!looking_ && this->unsent() == 0) room_.resize(0);
  }
  void on_sent() final {
    {
      const std::lock_guard lock{mutex_};
      give_room_back();
    }
    look_if_due();
  }
  void OnCancel() final {
    stop_.request_stop();
    this->finish(grpc::Status::CANCELLED);
  }
  void on_closed() final { subscription_ = {}; }

  storage::ReadPool& pool_;
  ChangeFeed& feed_;
  storage::ReadPool::Room room_;  // of what is not taken yet: by one look at a time
  std::size_t bytes_ = 0;         // that the look has sent
  ChangeFeed::Subscription subscription_;
  std::stop_source stop_;  // of its queries: nobody reads any more
  std::mutex mutex_;
  bool looking_ = false, pending_ = false;
};

}  // namespace abl::scheduler
