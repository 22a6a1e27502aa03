// SPDX-License-Identifier: Apache-2.0
#include "webhooks/webhook_file.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/file.h"
#include "sweeps/yaml_reader.h"

namespace abl::webhooks {
namespace {

namespace fs = std::filesystem;
using sweeps::dotted;
using sweeps::Node;

constexpr std::size_t kMostWebhooks = 32, kMostPatterns = 64, kLongest = 4096;

bool is_loopback(const std::string& host) {
  boost::system::error_code is_name;
  const auto address = boost::asio::ip::make_address(host, is_name);
  return is_name ? host == "localhost" : address.is_loopback();
}

/// Nothing: it is no address.
std::optional<Url> parse_url(std::string_view text) {
  Url url;
  if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
    url.tls = false;
    url.port = 80;
  } else {
    return std::nullopt;
  }
  const auto target = text.find_first_of("/?");
  std::string_view place = text.substr(0, target);
  if (target != std::string_view::npos)
    url.target = (text[target] == '?' ? "/" : "") + std::string{text.substr(target, text.find('#') - target)};
  const bool plain =
      std::ranges::all_of(url.target, [](char letter) { return letter > ' ' && letter < 127; });
  if (!plain) return std::nullopt;
  const bool bracketed = place.starts_with('[');
  const auto end = bracketed ? place.find(']') : place.find(':');
  if (bracketed && end == std::string_view::npos) return std::nullopt;
  url.host = place.substr(bracketed ? 1 : 0, bracketed ? end - 1 : end);
  place = end == std::string_view::npos ? std::string_view{} : place.substr(end + (bracketed ? 1 : 0));
  if (place.starts_with(':')) {
    place.remove_prefix(1);
    const auto [last, error] = std::from_chars(place.data(), place.data() + place.size(), url.port);
    if (error != std::errc{} || last != place.data() + place.size() || url.port == 0) return std::nullopt;
  } else if (!place.empty()) {
    return std::nullopt;
  }
  const auto of_host = [&](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || (bracketed && letter == ':');
  };
  if (url.host.empty() || !std::ranges::all_of(url.host, of_host)) return std::nullopt;
  return url;
}

/// Whether others than its owner and group can read or change a file; false where it is not there.
bool is_open(const fs::path& file) {
  std::error_code absent;
  const auto others = fs::perms::others_read | fs::perms::others_write;
  return fs::exists(file, absent) && (fs::status(file, absent).permissions() & others) != fs::perms::none;
}

class WebhookReader {
 public:
  WebhookReader(sweeps::Problems& problems, fs::path file)
      : problems_{problems}, yaml_{problems}, file_{std::move(file)} {}

  std::vector<Webhook> read(const Node& root) {
    std::vector<Webhook> webhooks;
    if (!yaml_.is_mapping(root, "")) return webhooks;
    yaml_.allow_only(root, "", {"dashboard", "webhooks"});
    std::string dashboard;
    if (const Node* node = root.find("dashboard")) {
      dashboard = text(*node, "dashboard");
      while (dashboard.ends_with('/')) dashboard.pop_back();
      if (!parse_url(dashboard))
        problems_.add(node->place, "dashboard", "expected an address, such as https://head:8571");
    }
    const Node* list = yaml_.required(root, "", "webhooks", "a mapping of names to webhooks");
    if (!list || !yaml_.is_mapping(*list, "webhooks")) return webhooks;
    if (list->entries.empty()) problems_.add(list->place, "webhooks", "expected at least one webhook");
    if (list->entries.size() > kMostWebhooks)
      problems_.add(list->place, "webhooks", fmt::format("expected at most {} webhooks", kMostWebhooks));
    for (const Node::Entry& entry : list->entries) {
      webhooks.push_back(webhook(entry));
      webhooks.back().dashboard = dashboard;
    }
    return webhooks;
  }

 private:
  Webhook webhook(const Node::Entry& entry) {
    Webhook webhook{.name = entry.key};
    const std::string field = dotted("webhooks", entry.key);
    const bool fits =
        !entry.key.empty() && entry.key.size() <= 40 && std::ranges::all_of(entry.key, [](char letter) {
          return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
                 letter == '_';
        });
    if (!fits)
      problems_.add(entry.place, field, "invalid name; expected at most 40 of a-z, 0-9, '-' and '_'");
    const Node& node = entry.value;
    if (node.kind != Node::Kind::kMapping) {  // perhaps the address itself, which may be a secret
      problems_.add(node.place, field, "expected a mapping, with url or url_file");
      return webhook;
    }
    yaml_.allow_only(node, field,
                     {"url", "url_file", "events", "sweeps", "body", "secret", "secret_file", "ca_file"});
    const auto at = [&](const char* key) { return dotted(field, key); };
    if (const auto url = secret(node, field, "url", "url_file"))
      read_url(*url, webhook.url);
    else if (!node.find("url") && !node.find("url_file"))
      problems_.add(node.place, at("url"), "missing; expected url or url_file: where it is posted to");
    if (const Node* events = node.find("events"))
      read_events(*events, at("events"), webhook.events);
    else
      for (const Event event : values_of<Event>()) webhook.events.insert(event);
    if (const Node* sweeps = node.find("sweeps")) read_patterns(*sweeps, at("sweeps"), webhook.sweeps);
    if (const Node* body = node.find("body"))
      if (const auto name = yaml_.choice(*body, at("body"), names_of<Body>()))
        webhook.body = value_named<Body>(*name).value();
    if (const Node* here = node.find("secret"); here && is_open(file_))
      problems_.add(here->place, at("secret"),
                    "others can read or change this file: chmod 600 it, or use secret_file");
    if (const auto signs = secret(node, field, "secret", "secret_file")) {
      webhook.secret = signs->text;
      if (webhook.secret.size() < 16)
        problems_.add(signs->place, signs->field, "expected 16 characters at least");
    }
    if (const Node* ca = node.find("ca_file")) {
      webhook.ca = content(*ca, at("ca_file"));
      if (!webhook.ca.empty() && webhook.ca.find("-----BEGIN CERTIFICATE-----") == std::string::npos)
        problems_.add(ca->place, at("ca_file"), "no certificate in it; expected PEM");
    }
    return webhook;
  }

  struct Secret {
    std::string text, field;
    sweeps::Place place;
  };

  /// As it stands under `key`, or in the file that stands under `file_key`.
  std::optional<Secret> secret(const Node& mapping, const std::string& field, const char* key,
                               const char* file_key) {
    const Node *here = mapping.find(key), *elsewhere = mapping.find(file_key);
    if (here && elsewhere)
      problems_.add(elsewhere->place, dotted(field, file_key),
                    fmt::format("expected one of {} and {}", key, file_key));
    if (here) return Secret{text(*here, dotted(field, key)), dotted(field, key), here->place};
    if (!elsewhere) return std::nullopt;
    Secret read{content(*elsewhere, dotted(field, file_key), /*secret=*/true), dotted(field, file_key),
                elsewhere->place};
    while (!read.text.empty() && (read.text.back() == '\n' || read.text.back() == '\r')) read.text.pop_back();
    if (read.text.empty()) return std::nullopt;  // that was said
    return read;
  }

  /// What is wrong with it is said without it: it may be a secret.
  void read_url(const Secret& url, Url& into) {
    const auto parsed = parse_url(url.text);
    if (!parsed)
      problems_.add(url.place, url.field,
                    "invalid address; expected https://HOST/PATH, without a user name and spaces");
    else if (!parsed->tls && !is_loopback(parsed->host))
      problems_.add(
          url.place, url.field,
          fmt::format("expected https; http goes to this machine alone, not to '{}'", parsed->host));
    else
      into = *parsed;
  }

  void read_events(const Node& node, const std::string& field, std::set<Event>& into) {
    if (!yaml_.is_sequence(node, field)) return;
    for (const Node& item : node.items)
      if (const auto name = yaml_.choice(item, field, names_of<Event>()))
        into.insert(value_named<Event>(*name).value());
    if (node.items.empty()) problems_.add(node.place, field, "expected at least one event");
  }

  void read_patterns(const Node& node, const std::string& field, std::vector<std::string>& into) {
    if (!yaml_.is_sequence(node, field)) return;
    if (node.items.empty() || node.items.size() > kMostPatterns)
      problems_.add(node.place, field,
                    fmt::format("expected 1 to {} patterns, such as msf-*", kMostPatterns));
    for (const Node& item : node.items) into.push_back(text(item, field));
  }

  std::string text(const Node& node, const std::string& field) {
    const auto read = yaml_.plain_text(node, field);
    if (read && read->size() > kLongest)
      problems_.add(node.place, field, fmt::format("expected at most {} characters", kLongest));
    return read.value_or("");
  }

  /// Of a file beside this one, or of an absolute path.
  std::string content(const Node& node, const std::string& field, bool secret = false) {
    const std::string name = text(node, field);
    if (name.empty()) return {};
    const fs::path file = file_.parent_path() / name;
    if (std::error_code unknown; secret && !fs::exists(file, unknown)) {  // it may be the secret itself
      problems_.add(node.place, field, "no such file; expected the name of one that holds it");
      return {};
    }
    if (secret && is_open(file))
      problems_.add(node.place, field,
                    fmt::format("others can read or change {}: chmod 600 it", file.string()));
    try {
      std::string text = read_file(file);
      if (text.empty() || text.size() > (1 << 20))
        problems_.add(node.place, field, fmt::format("{}: expected 1 byte to 1 MiB", file.string()));
      return text;
    } catch (const Error& error) {
      problems_.add(node.place, field, error.what());
      return {};
    }
  }

  sweeps::Problems& problems_;
  sweeps::YamlReader yaml_;
  fs::path file_;  // paths in it begin at its folder
};

}  // namespace

bool Webhook::wants(Event event, std::string_view sweep) const {
  if (!events.contains(event)) return false;
  const std::string name{sweep};
  return sweeps.empty() || std::ranges::any_of(sweeps, [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
}

std::vector<Webhook> read_webhook_file(const std::string& text, const std::string& file) {
  sweeps::Problems problems{file};
  const Node root = sweeps::load_yaml(text, file, problems);
  auto webhooks = WebhookReader{problems, fs::absolute(file)}.read(root);
  problems.throw_if_any();
  return webhooks;
}

}  // namespace abl::webhooks
