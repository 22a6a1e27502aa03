// SPDX-License-Identifier: Apache-2.0
#include "web/server/peers.h"

#include <fmt/format.h>

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

namespace {

std::size_t count_of(const std::map<std::string, std::size_t>& counts, const std::string& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

void take_from(std::map<std::string, std::size_t>& counts, const std::string& key) {
  const auto found = counts.find(key);
  if (found != counts.end() && --found->second == 0) counts.erase(found);
}

}  // namespace

Streams::Place::Place(Streams& streams, Owner owner) : streams_{streams}, owner_{std::move(owner)} {
  ++streams_.all_;
  ++streams_.addresses_[owner_.address];
  if (!owner_.token.empty()) ++streams_.tokens_[owner_.token];
}

Streams::Place::~Place() {
  --streams_.all_;
  take_from(streams_.addresses_, owner_.address);
  take_from(streams_.tokens_, owner_.token);
}

std::size_t Streams::of_address(const Owner& owner) const { return count_of(addresses_, owner.address); }
std::size_t Streams::of_one(const Owner& owner) const {
  return owner.token.empty() ? of_address(owner) : count_of(tokens_, owner.token);
}

bool Streams::has_too_many(const Owner& owner) const {
  return of_one(owner) >= most_of_one_ || of_address(owner) >= most_of_address_;
}

std::string Streams::why_not(const Owner& owner) const {
  if (const std::size_t open = of_one(owner); open >= most_of_one_)
    return fmt::format("{} pages of this dashboard are open with {}, as many as may be: close some", open,
                       owner.token.empty() ? "this address" : "this token");
  if (const std::size_t open = of_address(owner); open >= most_of_address_)
    return fmt::format("{} pages of this dashboard are open at this address, as many as may be: close some",
                       open);
  if (all_ >= most_) return fmt::format("{} pages of this dashboard are open, as many as may be", all_);
  return {};
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
