// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

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

/// What changed last, each change with a number: a reader who was away is told what it missed, once for each
/// sweep and run, or "anything" where that is not known any more.
class Changes {
 public:
  static constexpr std::size_t kMost = 4096;

  Changes();
  void add(const storage::Change& change);
  /// Where a reader stands who has been told everything: "8f2c0d1a-17", which no other process says.
  std::string place() const;
  /// What a reader at `place` has not been told: a change without a sweep where that is not known.
  std::set<storage::Change> since(std::string_view place) const;

 private:
  using Numbers = std::map<std::uint64_t, storage::Change>;
  std::string process_;
  std::uint64_t last_ = 0;
  std::uint64_t forgotten_ = 0;  ///< up to this number, changes may be missing
  Numbers by_number_;
  std::map<storage::Change, Numbers::iterator> newest_;
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
  /// Where a reader stands who begins now: what changes later is behind it.
  std::string place() const { return changes_.place(); }

  /// Answers with `head`, a heartbeat, then events, and a heartbeat wherever there are none for so long. Ends
  /// by an exception where the peer is gone, and when `why_over` says why it may hear no more, with an event
  /// that says so. `after`: the id of the last event that the reader has had, where it has had one.
  net::awaitable<void> stream_to(Stream& stream, std::string head, std::optional<std::string> after,
                                 std::function<std::string()> why_over);

 private:
  struct Subscriber {
    explicit Subscriber(const net::any_io_executor& network) : wake{network} {}
    std::set<storage::Change> pending;
    bool news = false;       ///< a heartbeat says something new
    net::steady_timer wake;  ///< cancelled when something is pending
  };
  void deliver(const storage::Change& change);
  /// What a reader is sent who hears of `changes` and then stands where everybody does.
  std::string events_of(const std::set<storage::Change>& changes, bool with_heartbeat) const;

  net::any_io_executor network_;
  const std::chrono::milliseconds heartbeat_;
  Changes changes_;
  std::list<Subscriber> subscribers_;
  std::string trouble_;
};

}  // namespace abl::web
