// SPDX-License-Identifier: Apache-2.0
#include "web/server/deltas.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "web/server/encoding.h"

namespace abl::web {
namespace {

auto etag_of(const Answer& answer) {
  return std::ranges::find(answer.headers, "ETag", &std::pair<std::string, std::string>::first);
}

bool can_be_patched(const Answer& answer) {
  return answer.status == 200 && answer.type == "application/json" &&
         answer.body.size() <= Deltas::kLongest && etag_of(answer) != answer.headers.end();
}

/// From one to the other; nothing where one of them is not JSON.
std::optional<std::string> patch(const std::string& from, const std::string& to) {
  const auto old = nlohmann::json::parse(from, nullptr, false),
             now = nlohmann::json::parse(to, nullptr, false);
  if (old.is_discarded() || now.is_discarded()) return std::nullopt;
  return nlohmann::json::diff(old, now).dump();
}

}  // namespace

void Deltas::keep(const std::string& address, const Answer& answer) {
  if (!can_be_patched(answer)) return;
  const std::string& etag = etag_of(answer)->second;
  const std::lock_guard lock{mutex_};
  const auto kept = std::ranges::find_if(
      kept_, [&](const Kept& one) { return one.etag == etag && one.address == address; });
  if (kept != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, kept);
    return;
  }
  kept_.push_front({.address = address, .etag = etag, .body = answer.body});
  bytes_ += kept_.front().size();
  for (; bytes_ > most_bytes_ || kept_.size() > kMost; kept_.pop_back()) bytes_ -= kept_.back().size();
}

void Deltas::shorten(const std::string& address, std::string_view etags, Answer& answer) {
  if (!can_be_patched(answer)) return;
  std::string base, etag;
  for (const std::string_view had : tags_in(etags))
    if (base = find(address, had); !base.empty()) {
      etag = had;
      break;
    }
  if (base.empty()) return;
  auto changes = patch(base, answer.body);
  if (!changes || 2 * changes->size() > answer.body.size()) return;
  answer.status = 226;  // IM Used
  answer.type = "application/json-patch+json";
  answer.body = std::move(*changes);
  answer.cache = "no-store";  // useless to anyone without the base
  answer.headers.emplace_back("IM", "json-patch");
  answer.headers.emplace_back("Delta-Base", etag);
}

std::size_t Deltas::bytes() const {
  const std::lock_guard lock{mutex_};
  return bytes_;
}

/// Empty: not kept.
std::string Deltas::find(const std::string& address, std::string_view etag) {
  const std::lock_guard lock{mutex_};
  const auto kept = std::ranges::find_if(
      kept_, [&](const Kept& one) { return one.etag == etag && one.address == address; });
  return kept == kept_.end() ? std::string{} : kept->body;
}

}  // namespace abl::web
