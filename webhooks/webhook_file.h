// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace abl::webhooks {

/// What others are told of.
enum class Event {
  kSweepComplete,    ///< no trial of it waits or runs any more
  kRowFailed,        ///< a trial of the row failed for good, or is held
  kCellSignificant,  ///< a cell differs from its baseline's by the table's own corrected test
};
constexpr std::string_view name_of(Event event) {
  switch (event) {
    case Event::kSweepComplete:
      return "sweep-complete";
    case Event::kRowFailed:
      return "row-failed";
    case Event::kCellSignificant:
      return "cell-significant";
  }
  return {};
}

/// What is posted.
enum class Body {
  kJson,   ///< an object with everything (docs/webhooks.md)
  kSlack,  ///< {"text": "…"}, which Slack, Mattermost, Rocket.Chat and Discord's /slack address take
};
constexpr std::string_view name_of(Body body) {
  switch (body) {
    case Body::kJson:
      return "json";
    case Body::kSlack:
      return "slack";
  }
  return {};
}

/// Where a webhook is posted to. The target of an address at a chat service is a secret: it stands in no log.
struct Url {
  bool tls = true;
  std::string host;  ///< a name, or an IP address without brackets
  std::uint16_t port = 443;
  std::string target = "/";
};

struct Webhook {
  std::string name;
  Url url;
  std::set<Event> events;           ///< one at least
  std::vector<std::string> sweeps;  ///< patterns of their names, "msf-*"; empty: all
  Body body = Body::kJson;
  std::string secret;  ///< signs what is posted; empty: nothing does
  std::string
      ca;  ///< PEM of the authorities that its server's certificate is held against; empty: this machine's
  std::string dashboard;  ///< begins links, "https://head:8571"; empty: what the scheduler serves

  bool wants(Event event, std::string_view sweep) const;
};

/// Reads a webhook file, YAML; `file` is its name in messages. Secrets may stand in files of their own, which
/// are read here.
/// Throws: sweeps::SweepFileError with every problem, "file:line:column: webhooks.lab.url: …" a line.
std::vector<Webhook> read_webhook_file(const std::string& text, const std::string& file);

}  // namespace abl::webhooks
