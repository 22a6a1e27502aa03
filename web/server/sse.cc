// SPDX-License-Identifier: Apache-2.0
#include "web/server/sse.h"

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

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

std::string event(const storage::Change& change) {
  const nlohmann::ordered_json data{{"sweep", change.sweep}, {"run", change.run}};
  return fmt::format("event: change\ndata: {}\n\n",
                     data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// An event, not a comment: a page sees it, and knows from its absence that the server is frozen.
std::string heartbeat_event(std::chrono::milliseconds every, const std::string& trouble) {
  nlohmann::ordered_json data;
  data["every_ms"] = every.count();
  if (!trouble.empty()) data["trouble"] = trouble;
  return fmt::format("event: heartbeat\ndata: {}\n\n",
                     data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string signed_out_event(const std::string& why) {
  const nlohmann::ordered_json data{{"why", why}};
  return fmt::format("event: signed-out\ndata: {}\n\n",
                     data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

net::awaitable<void> write(Stream& stream, const std::string& text) {
  stream.expires_after(kWriteDeadline);
  co_await net::async_write(stream, net::buffer(text), net::use_awaitable);
}

}  // namespace

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
  for (Subscriber& subscriber : subscribers_) {
    subscriber.pending.insert(change);
    if (subscriber.pending.size() > kMostPending) subscriber.pending = {storage::Change{}};
    subscriber.wake.cancel();
  }
}

net::awaitable<void> Hub::stream_to(Stream& stream, std::string head, std::function<std::string()> why_over) {
  const auto self = subscribers_.emplace(subscribers_.end(), network_);
  const std::shared_ptr<void> unsubscribe{nullptr, [this, self](void*) { subscribers_.erase(self); }};
  head += "retry: 2000\n\n" +
          heartbeat_event(heartbeat_, trouble_);  // how long a browser waits before it connects again
  co_await write(stream, head);
  for (;;) {
    if (self->pending.empty() && !self->news) {
      boost::system::error_code ec;
      self->wake.expires_after(heartbeat_);
      co_await self->wake.async_wait(net::redirect_error(net::use_awaitable, ec));
    }
    if (const std::string why = why_over(); !why.empty()) {
      const std::string last = signed_out_event(why);
      co_await write(stream, last);
      co_return;
    }
    const std::set<storage::Change> changes = std::exchange(self->pending, {});
    // named, not a temporary of a co_await: GCC 12 destroys those of a conditional twice
    const bool news = std::exchange(self->news, false);
    std::string text;
    if (changes.empty() || news) text = heartbeat_event(heartbeat_, trouble_);
    for (const storage::Change& change : changes) text += event(change);
    co_await write(stream, text);
    if (changes.empty()) continue;
    net::steady_timer pause{network_, kPause};
    co_await pause.async_wait(net::use_awaitable);
  }
}

}  // namespace abl::web
