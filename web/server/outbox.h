// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <list>

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

}  // namespace abl::web
