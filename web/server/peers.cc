// SPDX-License-Identifier: Apache-2.0
#include "web/server/peers.h"

#include <algorithm>

namespace abl::web {

std::string peer_of(const net::ip::address& address) {
  if (address.is_v4()) return address.to_string();
  const net::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return net::ip::make_address_v4(net::ip::v4_mapped, v6).to_string();
  auto bytes = v6.to_bytes();
  if (!v6.is_loopback()) std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), 0);
  return net::ip::address_v6{bytes}.to_string();
}

Crowd::Guest::Guest(Crowd& crowd, Stream& stream)
    : crowd_{crowd},
      member_{crowd.members_.insert(crowd.members_.end(), {&stream, peer_of(stream.peer())})} {}

Crowd::Guest::~Guest() { crowd_.members_.erase(member_); }

void Crowd::Guest::change(Member::State state) {
  if (member_->state != Member::kClosed) member_->state = state;
  crowd_.members_.splice(crowd_.members_.end(), crowd_.members_, member_);
}

void Crowd::Guest::work() { change(Member::kWorking); }
void Crowd::Guest::read() { change(Member::kReading); }
void Crowd::Guest::rest() { change(Member::kIdle); }

std::size_t Crowd::count(const std::string* peer) const {
  return static_cast<std::size_t>(std::ranges::count_if(members_, [&](const Member& member) {
    return member.state != Member::kClosed && (!peer || member.peer == *peer);
  }));
}

bool Crowd::close_one(const std::string* peer) {
  for (const auto state : {Member::kNew, Member::kIdle, Member::kReading})
    for (Member& member : members_) {
      if (member.state != state || (peer && member.peer != *peer)) continue;
      member.state = Member::kClosed;
      member.stream->close();  // its coroutine ends by an error
      return true;
    }
  return false;
}

bool Crowd::make_room(const net::ip::address& address) {
  const std::string peer = peer_of(address);
  if (count(&peer) >= most_of_one_ && !close_one(&peer)) return false;
  return count(nullptr) < most_ || close_one(nullptr);
}

double& Rate::filled(const std::string& peer, Steady::time_point now) {
  const auto found = buckets_.find(peer);
  if (found != buckets_.end()) {
    Bucket& bucket = found->second;
    const std::chrono::duration<double> passed = now - bucket.at;
    bucket.level = std::min(at_once_, bucket.level + std::max(0.0, passed.count()) * a_second_);
    bucket.at = now;
    return bucket.level;
  }
  if (buckets_.size() >= kMostPeers)
    buckets_.erase(std::ranges::min_element(buckets_, {}, [](const auto& known) { return known.second.at; }));
  return buckets_.emplace(peer, Bucket{at_once_, now}).first->second.level;
}

bool Rate::take(const std::string& peer, Steady::time_point now) {
  double& level = filled(peer, now);
  if (level < 1) return false;
  level -= 1;
  return true;
}

}  // namespace abl::web
