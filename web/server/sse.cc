// SPDX-License-Identifier: Apache-2.0
#include "web/server/sse.h"

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <nlohmann/json.hpp>
#include <random>

namespace abl::web {

Outbox::Entry::Entry(Outbox& outbox, Stream& stream, std::size_t bytes)
    : outbox_{outbox},
      parcel_{outbox.parcels_.insert(outbox.parcels_.end(), {&stream, bytes, Clock::now()})} {
  outbox_.bytes_ += bytes;
}

Outbox::Entry::~Entry() {
  outbox_.bytes_ -= parcel_->bytes;
  outbox_.parcels_.erase(parcel_);
}

void Outbox::Entry::note_progress() {
  parcel_->progress = Clock::now();
  outbox_.parcels_.splice(outbox_.parcels_.end(), outbox_.parcels_, parcel_);
}

bool Outbox::make_room(std::size_t bytes) {
  const Clock::time_point stalled = Clock::now() - kPatience;
  for (Parcel& parcel : parcels_) {
    if (bytes_ + bytes <= kMostBytes || parcel.progress > stalled) break;
    parcel.stream->close();  // its coroutine ends by an error
    bytes_ -= parcel.bytes;  // … and gives back nothing more
    parcel.bytes = 0;
  }
  return bytes_ + bytes <= kMostBytes;
}

namespace {

using namespace std::chrono_literals;

constexpr auto kWriteDeadline = 30s;
/// At most ten messages a second to a tab: what comes in between goes out together.
constexpr auto kPause = 100ms;
constexpr std::size_t kMostPending = 256;

/// `id`: where the reader stands who has this event; nothing: where he stood before.
std::string event(std::string_view name, const nlohmann::ordered_json& data, std::string_view id = {}) {
  return fmt::format("event: {}\ndata: {}\n{}{}\n", name,
                     data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                     id.empty() ? "" : "id: ", id.empty() ? "" : fmt::format("{}\n", id));
}

net::awaitable<void> write(Stream& stream, const std::string& text) {
  stream.expires_after(kWriteDeadline);
  co_await net::async_write(stream, net::buffer(text), net::use_awaitable);
}

}  // namespace

Changes::Changes() : process_{fmt::format("{:08x}", std::random_device{}())} {}

void Changes::add(const storage::Change& change) {
  if (const auto known = newest_.find(change); known != newest_.end()) {
    by_number_.erase(known->second);
    newest_.erase(known);
  }
  const auto at = by_number_.emplace_hint(by_number_.end(), ++last_, change);
  newest_.emplace(change, at);
  if (by_number_.size() <= kMost) return;
  const auto oldest = by_number_.begin();
  forgotten_ = oldest->first;
  newest_.erase(oldest->second);
  by_number_.erase(oldest);
}

std::string Changes::place() const { return fmt::format("{}-{}", process_, last_); }

std::set<storage::Change> Changes::since(std::string_view place) const {
  const std::string start = process_ + "-";
  std::uint64_t number = 0;
  const char* const end = place.data() + place.size();
  const bool is_ours =
      place.starts_with(start) &&
      std::from_chars(place.data() + start.size(), end, number) == std::from_chars_result{end, std::errc{}};
  if (!is_ours || number < forgotten_ || number > last_) return {storage::Change{}};
  std::set<storage::Change> missed;
  for (auto at = by_number_.upper_bound(number); at != by_number_.end(); ++at) missed.insert(at->second);
  return missed;
}

void Hub::publish(storage::Change change) {
  net::post(network_, [this, change = std::move(change)] { deliver(change); });
}

void Hub::set_trouble(std::string trouble) {
  net::post(network_, [this, trouble = std::move(trouble)] {
    if (trouble == trouble_) return;
    trouble_ = trouble;
    for (Subscriber& subscriber : subscribers_) {
      subscriber.news = true;
      subscriber.wake.cancel();
    }
  });
}

void Hub::look_who_is_there() {
  net::post(network_, [this] {
    for (Subscriber& subscriber : subscribers_) {
      subscriber.news = true;
      subscriber.wake.cancel();
    }
  });
}

void Hub::deliver(const storage::Change& change) {
  changes_.add(change);
  for (Subscriber& subscriber : subscribers_) {
    subscriber.pending.insert(change);
    if (subscriber.pending.size() > kMostPending) subscriber.pending = {storage::Change{}};
    subscriber.wake.cancel();
  }
}

std::string Hub::events_of(const std::set<storage::Change>& changes, bool with_heartbeat) const {
  std::string text;
  if (with_heartbeat || changes.empty()) {
    // an event, not a comment: a page sees it, and knows from its absence that the server is frozen
    nlohmann::ordered_json data{{"every_ms", heartbeat_.count()}};
    if (!trouble_.empty()) data["trouble"] = trouble_;
    text = event("heartbeat", data, changes.empty() ? changes_.place() : "");
  }
  // the last one alone has the place: who gets a part of them is told all of them again
  for (auto at = changes.begin(); at != changes.end(); ++at)
    text += event("change", {{"sweep", at->sweep}, {"run", at->run}},
                  std::next(at) == changes.end() ? changes_.place() : "");
  return text;
}

net::awaitable<void> Hub::stream_to(Stream& stream, std::string head, std::optional<std::string> after,
                                    std::function<std::string()> why_over) {
  const auto self = subscribers_.emplace(subscribers_.end(), network_);
  const std::shared_ptr<void> unsubscribe{nullptr, [this, self](void*) { subscribers_.erase(self); }};
  if (after) self->pending = changes_.since(*after);
  if (self->pending.size() > kMostPending) self->pending = {storage::Change{}};
  self->news = true;
  head += "retry: 2000\n\n";  // how long a browser waits before it connects again
  co_await write(stream, head);
  for (;;) {
    if (self->pending.empty() && !self->news) {
      boost::system::error_code ec;
      self->wake.expires_after(heartbeat_);
      co_await self->wake.async_wait(net::redirect_error(net::use_awaitable, ec));
    }
    if (const std::string why = why_over(); !why.empty()) {
      const std::string last = event("signed-out", {{"why", why}});
      co_await write(stream, last);
      co_return;
    }
    const std::set<storage::Change> changes = std::exchange(self->pending, {});
    // named, not a temporary of a co_await: GCC 12 destroys those of a conditional twice
    const bool news = std::exchange(self->news, false);
    const std::string text = events_of(changes, news);
    co_await write(stream, text);
    if (changes.empty()) continue;
    net::steady_timer pause{network_, kPause};
    co_await pause.async_wait(net::use_awaitable);
  }
}

}  // namespace abl::web
