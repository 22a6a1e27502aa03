// SPDX-License-Identifier: Apache-2.0
#include "webhooks/happening.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace abl::webhooks {
namespace {

using nlohmann::ordered_json;

/// RFC 3339, in UTC: "2026-11-24T11:13:00.250Z".
std::string timestamp(Time time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     std::chrono::duration_cast<Milliseconds>(time - seconds).count());
}

/// Slack takes three characters for its own; a name of a sweep or a message of a program is none of it.
std::string escaped(std::string_view text) {
  std::string escaped;
  for (const char letter : text) switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += letter;
    }
  return escaped;
}

/// To whole lines: some chats refuse more than 2000 characters.
std::string_view shortened(std::string_view text) {
  constexpr std::size_t kLongest = 1500;
  if (text.size() <= kLongest) return text;
  return text.substr(0, text.rfind('\n', kLongest));
}

/// What programs print need not be UTF-8; JSON is.
std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Message message(std::string event, std::string id, const Webhook& webhook, const std::string& text,
                const std::string& url, ordered_json json) {
  if (webhook.body == Body::kSlack) {
    std::string said = escaped(shortened(text));
    if (!url.empty()) said += fmt::format("\n<{}|Open in ablate>", url);
    json = {{"text", std::move(said)}};
  }
  return {.event = std::move(event), .id = std::move(id), .body = dumped(json)};
}

}  // namespace

Message message_of(const Happening& happening, const Webhook& webhook, std::string_view dashboard) {
  if (!webhook.dashboard.empty()) dashboard = webhook.dashboard;
  if (dashboard.ends_with('/')) dashboard.remove_suffix(1);
  const std::string url = dashboard.empty() ? std::string{} : fmt::format("{}{}", dashboard, happening.page);
  ordered_json json{{"event", name_of(happening.event)}, {"id", happening.id},
                    {"time", timestamp(happening.time)}, {"sweep", happening.sweep},
                    {"owner", happening.owner},          {"text", happening.text}};
  if (!url.empty()) json["url"] = url;
  json.update(happening.details);
  return message(std::string{name_of(happening.event)}, happening.id, webhook, happening.text, url,
                 std::move(json));
}

Message test_message(const Webhook& webhook, std::string_view dashboard) {
  if (!webhook.dashboard.empty()) dashboard = webhook.dashboard;
  const std::string text =
      fmt::format("ablate: a test of the webhook {}. Nothing has happened.", webhook.name);
  return message("test", "test", webhook, text, std::string{dashboard},
                 {{"event", "test"}, {"id", "test"}, {"text", text}});
}

}  // namespace abl::webhooks
