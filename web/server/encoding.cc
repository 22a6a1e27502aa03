// SPDX-License-Identifier: Apache-2.0
#include "web/server/encoding.h"

#include <algorithm>
#include <charconv>

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

bool takes_gzip(std::string_view accept) {
  bool any = false, named = false, wanted = false;
  for_each_item(accept, [&](std::string_view item) {
    const auto semicolon = std::min(item.find(';'), item.size());
    const auto coding = trimmed(item.substr(0, semicolon));
    const bool is = is_wanted(item.substr(semicolon));
    if (coding == "gzip" || coding == "x-gzip") named = true, wanted = is;
    if (coding == "*") any = is;
  });
  return named ? wanted : any;
}

/// Whether a list such as A-IM's has the name with a weight above 0.
bool is_listed(std::string_view name, std::string_view list) {
  bool listed = false;
  for_each_item(list, [&](std::string_view item) {
    const auto semicolon = std::min(item.find(';'), item.size());
    if (trimmed(item.substr(0, semicolon)) == name) listed = is_wanted(item.substr(semicolon));
  });
  return listed;
}

bool is_text(std::string_view type) {
  return type.starts_with("text/") || type.starts_with("application/json") ||
         type.starts_with("application/manifest+json") || type.starts_with("image/svg+xml");
}

bool is_worth_compressing(const Answer& answer) {
  return is_text(answer.type) && answer.body.size() >= kWorthIt;
}

/// Says that the same answer has another form.
void tell_of_compression(Answer& answer, const Taken& taken) {
  for (auto& [name, value] : answer.headers)
    if (name == "ETag" && taken.gzip) value = "W/" + value;
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
    if (is_worth_compressing(answer)) tell_of_compression(answer, taken);
    answer.status = 304;
    answer.body.clear();
  }
}

void compress(Answer& answer, const Taken& taken) {
  if ((answer.status != 200 && answer.status != 226) || !is_worth_compressing(answer)) return;
  tell_of_compression(answer, taken);
  if (!taken.gzip) return;
  answer.body = gzip(answer.body, kQuick);
  answer.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace

Taken taken_by(std::string_view accept_encoding, std::string_view if_none_match, std::string_view a_im) {
  return {.gzip = takes_gzip(accept_encoding),
          .etags = std::string{if_none_match},
          .patch = is_listed("json-patch", a_im)};
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
