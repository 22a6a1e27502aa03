// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/nodes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "worker/trainer/ranks/store_client.h"

namespace abl::ranks {
using namespace std::chrono_literals;
namespace {

constexpr auto kEvery = 200ms;
constexpr auto kReach = 10s;  // the store of the first machine
constexpr auto kToSay = 5s;   // a last word
constexpr const char* kConsequence = "consequence";

std::string own_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? valid_utf8(name.data()) : "?";
}

std::string key_of(int node, const char* what) { return fmt::format("node/{}/{}", node, what); }

std::string text_of(const StorePointer& store, const std::string& key) {
  const auto bytes = store->get(key);
  return valid_utf8(std::string{bytes.begin(), bytes.end()});
}

void put(const StorePointer& store, const std::string& key, const std::string& text) {
  store->set(key, std::vector<std::uint8_t>{text.begin(), text.end()});
}

std::string end_text(const NodeEnd& end) {
  auto document = nlohmann::json::parse(protocol::to_line(end.end));
  document[kConsequence] = end.consequence;
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Another machine's word, which may be anything.
NodeEnd read_end(const std::string& text) {
  NodeEnd read{.end = {.reason = "its end cannot be read"}};
  const auto document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    const auto event = document.is_object() ? protocol::parse_event(document) : std::nullopt;
    if (event && std::holds_alternative<protocol::End>(*event)) read.end = std::get<protocol::End>(*event);
    if (document.is_object() && document.contains(kConsequence))
      read.consequence = document[kConsequence].is_boolean() && document[kConsequence].get<bool>();
  } catch (const Error&) {
  }
  return read;
}

}  // namespace

struct Nodes::State {
  /// What is known of one of the others.
  struct Other {
    int node = 0;
    std::string name;  // empty: it has not come
    std::string beat;
    std::chrono::steady_clock::time_point heard = std::chrono::steady_clock::now();
    bool stops = false;
    std::optional<NodeEnd> end;
  };

  NodePlace place;
  StorePointer store;
  std::uint64_t beats = 0;  // of the watching thread alone

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::vector<Other> others;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now(),
                                        reached = std::chrono::steady_clock::now();
  std::string lost;  // why the store cannot be reached any more
  bool wants_stop = false, said_stop = false, over = false;
  std::optional<NodeEnd> own_end;
  bool said_end = false;

  std::string address_of(const Other& other) const {
    return other.name.empty() ? fmt::format("machine {} of {}", other.node + 1, place.nodes) : other.name;
  }
  /// Why a machine counts as gone; empty: it does not.
  std::string gone(const Other& other, std::chrono::steady_clock::time_point now) const {
    if (other.end) return {};
    if (other.name.empty())
      return now - begun > place.patience
                 ? fmt::format("{} has not come within {} s", address_of(other), place.patience / 1s)
                 : std::string{};
    return now - other.heard > place.silence
               ? fmt::format("nothing heard from {} for {} s", other.name, place.silence / 1s)
               : std::string{};
  }
};

/// One look: says what there is to say, hears what the others have said.
void Nodes::watch(const std::shared_ptr<State>& state) {
  const auto& place = state->place;
  const auto& store = state->store;
  std::vector<State::Other> others;
  for (;;) {
    bool stop = false;
    std::optional<NodeEnd> end;
    {
      std::unique_lock lock{state->mutex};
      if (state->over) return;
      others = state->others;
      stop = state->wants_stop && !state->said_stop;
      if (state->own_end && !state->said_end) end = state->own_end;
    }
    try {
      put(store, key_of(place.node, "beat"), std::to_string(++state->beats));
      if (stop) put(store, key_of(place.node, "stop"), "1");
      if (end) put(store, key_of(place.node, "end"), end_text(*end));
      for (auto& other : others) {
        if (other.name.empty() && store->check({key_of(other.node, "name")}))
          other.name = text_of(store, key_of(other.node, "name")),
          other.heard = std::chrono::steady_clock::now();
        if (other.name.empty() || other.end) continue;
        if (store->check({key_of(other.node, "beat")}))
          if (auto beat = text_of(store, key_of(other.node, "beat")); beat != other.beat)
            other.beat = std::move(beat), other.heard = std::chrono::steady_clock::now();
        if (!other.stops) other.stops = store->check({key_of(other.node, "stop")});
        if (store->check({key_of(other.node, "end")}))
          other.end = read_end(text_of(store, key_of(other.node, "end")));
      }
    } catch (const std::exception& error) {
      const std::scoped_lock lock{state->mutex};
      state->lost = "the connection to the first machine's trainer is lost";
      state->changed.notify_all();
      return;
    }
    std::unique_lock lock{state->mutex};
    state->others = others;
    state->reached = std::chrono::steady_clock::now();
    if (stop) state->said_stop = true;
    if (end) state->said_end = true;
    state->changed.notify_all();
    // what is to be said does not wait
    state->changed.wait_for(lock, kEvery, [&] {
      return state->over || (state->own_end && !state->said_end) || (state->wants_stop && !state->said_stop);
    });
  }
}

Nodes::Nodes(const NodePlace& place, const RendezvousServer& server)
    : place_{place}, state_{std::make_shared<State>()} {
  state_->place = place;
  state_->store = under_key(server.store().store, place.key);
  for (int node = 1; node < place.nodes; ++node) state_->others.push_back({.node = node});
  put(state_->store, key_of(0, "name"), own_name());
  std::thread{[state = state_] { watch(state); }}.detach();
}

Nodes::Nodes(const NodePlace& place) : place_{place}, state_{std::make_shared<State>()} {
  state_->place = place;
  const auto where = parse_rendezvous(place.join);
  try {
    state_->store = reach_store(where, place.key, kReach);
    if (!state_->store->check({key_of(0, "name")}))
      throw Error{Code::kFailedPrecondition,
                  fmt::format("another run's ranks meet at {}: this one's is over", place.join)};
    if (state_->store->add(key_of(place.node, "came"), 1) != 1)
      throw Error{Code::kFailedPrecondition, fmt::format("machine {} of {} has come to {} already",
                                                         place.node + 1, place.nodes, place.join)};
    state_->others.push_back({.node = 0, .name = text_of(state_->store, key_of(0, "name"))});
    put(state_->store, key_of(place.node, "name"), own_name());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string_view what = error.what();
    throw Error{Code::kUnavailable, fmt::format("the ranks of this run cannot be reached at {}: {}",
                                                place.join, what.substr(0, what.find('\n')))};
  }
  std::thread{[state = state_] { watch(state); }}.detach();
}

Nodes::~Nodes() {
  const std::scoped_lock lock{state_->mutex};
  state_->over = true;
  state_->changed.notify_all();
}

std::string Nodes::trouble() const {
  const std::scoped_lock lock{state_->mutex};
  const auto now = std::chrono::steady_clock::now();
  if (!state_->lost.empty()) return state_->lost;
  if (!first() && now - state_->reached > place_.silence)
    return fmt::format("nothing heard from {} for {} s", state_->address_of(state_->others.front()),
                       place_.silence / 1s);
  for (const auto& other : state_->others) {
    if (other.end && other.end->end.status == protocol::End::Status::kFailed)
      return fmt::format("the ranks on {} are gone", state_->address_of(other));
    if (auto why = state_->gone(other, now); !why.empty()) return why;
  }
  return {};
}

void Nodes::ask_to_stop() {
  const std::scoped_lock lock{state_->mutex};
  state_->wants_stop = true;
  state_->changed.notify_all();
}

std::string Nodes::asked_by() const {
  const std::scoped_lock lock{state_->mutex};
  for (const auto& other : state_->others)
    if (other.stops) return state_->address_of(other);
  return {};
}

void Nodes::say_end(const NodeEnd& end) {
  std::unique_lock lock{state_->mutex};
  state_->own_end = end;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kToSay, [&] { return state_->said_end || !state_->lost.empty(); });
}

void Nodes::await_ends(std::chrono::milliseconds patience) const {
  std::unique_lock lock{state_->mutex};
  state_->changed.wait_for(lock, patience, [&] {
    const auto now = std::chrono::steady_clock::now();
    return !state_->lost.empty() || std::ranges::all_of(state_->others, [&](const auto& other) {
      return other.end || other.name.empty() || !state_->gone(other, now).empty();
    });
  });
}

std::string Nodes::unheard() const {
  const std::scoped_lock lock{state_->mutex};
  for (const auto& other : state_->others)
    if (!other.end) return state_->address_of(other);
  return {};
}

std::optional<NodeEnd> Nodes::culprit() const {
  const std::scoped_lock lock{state_->mutex};
  for (const auto& other : state_->others) {
    if (!other.end || other.end->consequence || other.end->end.status != protocol::End::Status::kFailed)
      continue;
    NodeEnd end = *other.end;
    end.end.reason = fmt::format("on {}: {}", state_->address_of(other), end.end.reason);
    return end;
  }
  return std::nullopt;
}

}  // namespace abl::ranks
