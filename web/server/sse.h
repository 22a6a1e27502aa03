// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <set>
#include <string>

#include "storage/change.h"
#include "web/server/net.h"

namespace abl::web {

/// The answers that are being sent, over all connections: together they hold no more than kMostBytes. Where a
/// new one finds no room, the connection that has not read for longest is closed, so that a stopped reader
/// costs nobody else anything. Thread: the network thread.
class Outbox {
  struct Parcel;

 public:
  static constexpr std::size_t kMostBytes = 64 << 20;
  /// A connection that read something within this time is not closed for another.
  static constexpr std::chrono::seconds kPatience{2};

  /// An answer that is being sent, as long as this lives.
  class Entry {
   public:
    Entry(Outbox& outbox, Stream& stream, std::size_t bytes);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    void note_progress();

   private:
    Outbox& outbox_;
    std::list<Parcel>::iterator parcel_;
  };

  /// Makes room for `bytes` more. False: there is none, all others are being read.
  bool make_room(std::size_t bytes);

 private:
  using Clock = std::chrono::steady_clock;
  struct Parcel {
    Stream* stream;
    std::size_t bytes;
    Clock::time_point progress;
  };
  std::list<Parcel> parcels_;  // the one that has not been read for longest first
  std::size_t bytes_ = 0;
};

/// Tells every open stream what changed. A slow reader costs nothing: changes that it has not been sent yet
/// are a set, and beyond a bound they become one "anything". Thread: the network thread, but for `publish`.
class Hub {
 public:
  /// `heartbeat`: so often a stream says that it lives, where nothing else does.
  Hub(net::any_io_executor network, std::chrono::milliseconds heartbeat)
      : network_{std::move(network)}, heartbeat_{heartbeat} {}

  /// Thread: any.
  void publish(storage::Change change);
  /// What is wrong with the store goes out with heartbeats, and at once where it is another. Thread: any.
  void set_trouble(std::string trouble);

  /// Readers who may not be there any more go. Thread: any.
  void look_who_is_there();

  std::size_t readers() const { return subscribers_.size(); }

  /// Answers with `head`, a heartbeat, then events, and a heartbeat wherever there are none for so long. Ends
  /// by an exception where the peer is gone, and when `why_over` says why it may hear no more, with an event
  /// that says so.
  net::awaitable<void> stream_to(Stream& stream, std::string head, std::function<std::string()> why_over);

 private:
  struct Subscriber {
    explicit Subscriber(const net::any_io_executor& network) : wake{network} {}
    std::set<storage::Change> pending;
    bool news = false;       ///< a heartbeat says something new
    net::steady_timer wake;  ///< cancelled when something is pending
  };
  void deliver(const storage::Change& change);

  net::any_io_executor network_;
  const std::chrono::milliseconds heartbeat_;
  std::list<Subscriber> subscribers_;
  std::string trouble_;
};

}  // namespace abl::web
