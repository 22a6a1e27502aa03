// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/address.hpp>

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <string>

#include "web/server/net.h"

namespace abl::web {

/// Whom an address counts as: of IPv6 its network, since a machine has a whole one to itself.
std::string peer_of(const net::ip::address& address);

/// The connections that there are. Where they are too many, in all or of one peer, one that is not at work
/// goes: first who has asked for nothing yet, the oldest first, then who has been idle for longest, then who
/// has been reading an answer for longest. So neither half-open connections, handshakes and requests that are
/// never finished, nor readers who stop keep anybody out.
/// Thread: the network thread.
class Crowd {
  struct Member {
    Stream* stream;
    std::string peer;
    enum State { kNew, kWorking, kReading, kIdle, kClosed } state = kNew;
  };

 public:
  Crowd(std::size_t most, std::size_t most_of_one) : most_{most}, most_of_one_{most_of_one} {}

  /// A connection, as long as this lives.
  class Guest {
   public:
    Guest(Crowd& crowd, Stream& stream);
    ~Guest();
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;
    void work();  ///< it has asked for something, all of it
    void read();  ///< its answer is on its way
    void rest();  ///< it has its answer

   private:
    void change(Member::State state);
    Crowd& crowd_;
    std::list<Member>::iterator member_;
  };

  /// Makes room for one more of this peer. False: all others are at work.
  bool make_room(const net::ip::address& peer);

 private:
  std::size_t count(const std::string* peer) const;
  bool close_one(const std::string* peer);

  const std::size_t most_, most_of_one_;
  std::list<Member> members_;  // who changed longest ago first
};

/// Event streams: each holds its connection for as long as its page is open, and is never idle.
/// Thread: the network thread.
class Streams {
 public:
  Streams(std::size_t most, std::size_t most_of_address, std::size_t most_of_one)
      : most_{most}, most_of_address_{most_of_address}, most_of_one_{most_of_one} {}

  /// Whose it is: a token, or nobody's, and where it comes from.
  struct Owner {
    std::string token, address;
  };
  /// Why this one gets none, in one line; empty: there is room.
  std::string why_not(const Owner& owner) const;
  /// Whether that is this owner's own doing, or there are too many in all.
  bool has_too_many(const Owner& owner) const;

  /// One of them, as long as this lives.
  class Place {
   public:
    Place(Streams& streams, Owner owner);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    Streams& streams_;
    const Owner owner_;
  };

 private:
  std::size_t of_one(const Owner& owner) const;
  std::size_t of_address(const Owner& owner) const;
  const std::size_t most_, most_of_address_, most_of_one_;
  std::size_t all_ = 0;
  std::map<std::string, std::size_t> tokens_, addresses_;  // of those that have some
};

/// How often each peer may do something: so many at once, and so many a second in the long run. Of more peers
/// than it remembers it forgets those that were quiet for longest.
/// Thread: the network thread.
class Rate {
 public:
  using Steady = std::chrono::steady_clock;
  Rate(double at_once, double a_second) : at_once_{at_once}, a_second_{a_second} {}

  /// Whether the peer may do it now; takes nothing.
  bool allows(const std::string& peer, Steady::time_point now) { return filled(peer, now) >= 1; }
  /// It does it. False: too often; nothing is taken.
  bool take(const std::string& peer, Steady::time_point now);

 private:
  struct Bucket {
    double level;
    Steady::time_point at;
  };
  double& filled(const std::string& peer, Steady::time_point now);

  static constexpr std::size_t kMostPeers = 4096;
  const double at_once_, a_second_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace abl::web
