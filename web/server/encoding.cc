// SPDX-License-Identifier: Apache-2.0
#include "web/server/encoding.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/gzip.h"
#include "base/sha256.h"

namespace abl::web {
namespace {

constexpr std::size_t kWorthIt = 1024;  // below it a packet is a packet
constexpr int kQuick = 1;               // a third larger than the best, ten times as quick
constexpr std::size_t kEtagDigits = 24;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Of "gzip;q=0.5" whether it may be sent. What is no number is taken for one above 0.
bool is_wanted(std::string_view parameters) {
  const auto q = parameters.find("q=");
  if (q == std::string_view::npos) return true;
  const auto value = trimmed(parameters.substr(q + 2));
  return value.find_first_not_of("0.") != std::string_view::npos || value.empty();
}

template <class Work>
void for_each_item(std::string_view list, Work work) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    work(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

/// Whether a list such as Accept-Encoding has the name with a weight above 0; nothing: it has no such name.
std::optional<bool> wanted_in(std::string_view list, std::string_view name) {
  std::optional<bool> wanted;
  for_each_item(list, [&](std::string_view item) {
    const auto semicolon = static_cast<std::size_t>(std::ranges::find(item, ';') - item.begin());
    if (trimmed(item.substr(0, semicolon)) == name) wanted = is_wanted(item.substr(semicolon));
  });
  return wanted;
}

/// Whether a client takes content in a coding.
bool takes(std::string_view accept, std::string_view coding, std::string_view old_name = {}) {
  if (const auto wanted = wanted_in(accept, coding)) return *wanted;
  if (const auto wanted = old_name.empty() ? std::nullopt : wanted_in(accept, old_name)) return *wanted;
  return wanted_in(accept, "*").value_or(false);
}

bool is_text(std::string_view type) {
  return type.starts_with("text/") || type.starts_with("application/json") || type == "application/yaml" ||
         type.starts_with("application/manifest+json") || type.starts_with("image/svg+xml");
}

bool is_worth_compressing(const Answer& answer) {
  return is_text(answer.type) && answer.body.size() >= kWorthIt;
}

bool sends_brotli(const Answer& answer, const Taken& taken) { return taken.brotli && !answer.brotli.empty(); }

/// Says that the same answer has another form. `coded`: that is the one to be sent.
void tell_of_compression(Answer& answer, bool coded) {
  for (auto& [name, value] : answer.headers)
    if (name == "ETag" && coded) value = "W/" + value;
  answer.headers.emplace_back("Vary", "Accept-Encoding");
}

/// Gives an answer its ETag and lets the browser keep it; or says that it has this one already (304).
void mark(Answer& answer, const Taken& taken) {
  if (answer.status != 200 || answer.body.empty()) return;
  auto etag = std::ranges::find(answer.headers, "ETag", &std::pair<std::string, std::string>::first);
  if (etag == answer.headers.end()) {
    answer.headers.emplace_back("ETag", "\"" + sha256_hex(answer.body).substr(0, kEtagDigits) + "\"");
    etag = std::prev(answer.headers.end());
    // kept by the browser alone, and asked for each time: what it may see is for this server to say
    if (answer.cache == "no-store") answer.cache = "private, no-cache";
  }
  if (taken.etags == "*" || taken.etags.find(etag->second) != std::string::npos) {
    if (is_worth_compressing(answer)) tell_of_compression(answer, taken.gzip || sends_brotli(answer, taken));
    answer.status = 304;
    answer.body.clear();
  }
}

void compress(Answer& answer, const Taken& taken) {
  if ((answer.status != 200 && answer.status != 226) || !is_worth_compressing(answer)) return;
  const bool brotli = sends_brotli(answer, taken);
  tell_of_compression(answer, taken.gzip || brotli);
  if (!taken.gzip && !brotli) return;
  answer.body = brotli ? std::string{answer.brotli} : gzip(answer.body, kQuick);
  answer.headers.emplace_back("Content-Encoding", brotli ? "br" : "gzip");
}

}  // namespace

Taken taken_by(std::string_view accept_encoding, std::string_view if_none_match, std::string_view a_im) {
  return {.gzip = takes(accept_encoding, "gzip", "x-gzip"),
          .brotli = takes(accept_encoding, "br"),
          .etags = std::string{if_none_match},
          .patch = wanted_in(a_im, "json-patch").value_or(false)};
}

std::vector<std::string_view> tags_in(std::string_view if_none_match) {
  std::vector<std::string_view> tags;
  for_each_item(if_none_match, [&](std::string_view tag) {
    tag = trimmed(tag);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (!tag.empty()) tags.push_back(tag);
  });
  return tags;
}

void encode(Answer& answer, const Taken& taken) {
  mark(answer, taken);
  compress(answer, taken);
}

void encode(Answer& answer, const Taken& taken, Deltas& deltas, const std::string& address) {
  mark(answer, taken);
  deltas.keep(address, answer);
  if (taken.patch) deltas.shorten(address, taken.etags, answer);
  compress(answer, taken);
}

}  // namespace abl::web
