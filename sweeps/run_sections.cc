// SPDX-License-Identifier: Apache-2.0
// What a sweep file says of how its trials run: `resources`, `retry`, `limits`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/duration.h"
#include "base/nearest_name.h"
#include "base/pattern.h"
#include "sweeps/sections.h"

namespace abl::sweeps {
namespace {

constexpr std::size_t kMostRules = 100;  // patterns among them are searched for after each failure
using protocol::FailureClass, protocol::FailureKind;

/// What a misspelt kind of failure may have meant.
std::string nearest_kind(const std::string& written) {
  std::vector<std::string> known = names_of<FailureClass>();
  for (int signal = 1; signal < 32; ++signal)
    known.push_back(FailureKind{.by = FailureKind::By::kSignal, .number = signal}.text());
  return nearest_name(written, known, 0.3);
}

/// "resources", "exit 75", "signal SEGV" or "log PATTERN".
std::optional<FailureKind> read_kind(YamlReader& reader, const Node::Entry& entry, const std::string& field) {
  const auto problem = [&](const std::string& message, const std::string& nearest = {}) {
    reader.problems().add(entry.place, field, message, nearest);
    return std::nullopt;
  };
  const auto kind = FailureKind::read(entry.key);
  if (!kind)
    return problem(fmt::format("unknown kind of failure '{}'; expected {}, 'exit N' with N from 1 to 255, "
                               "'signal NAME' or 'log PATTERN'",
                               entry.key, fmt::join(names_of<FailureClass>(), ", ")),
                   nearest_kind(entry.key));
  if (kind->by == FailureKind::By::kLog && kind->pattern.empty())
    return problem("no pattern; expected 'log ' and a regular expression");
  if (kind->by == FailureKind::By::kLog)
    if (const std::string why = Pattern{kind->pattern}.problem(); !why.empty())
      return problem(fmt::format("invalid pattern: {}; expected a regular expression of RE2", why));
  if (kind->by == FailureKind::By::kClass && kind->of == FailureClass::kInfrastructure)
    return problem("a failure of the infrastructure fails no trial and has no limit; expected another kind");
  return kind;
}

/// `on: {resources: 1, "exit 75": infrastructure}`.
void read_retry_rules(YamlReader& reader, const Node& on, protocol::RetryRules& rules) {
  const std::string field = "retry.on";
  if (!reader.is_mapping(on, field)) return;
  if (on.entries.size() > kMostRules)
    return reader.problems().add(
        on.place, field,
        fmt::format("{} kinds of failures; expected at most {}", on.entries.size(), kMostRules));
  for (const Node::Entry& entry : on.entries) {
    const std::string its_field = dotted(field, entry.key);
    const auto kind = read_kind(reader, entry, its_field);
    protocol::RetryRule rule{.kind = kind.value_or(FailureKind{})};
    if (const auto of = value_named<FailureClass>(entry.value.text)) {
      rule.counts_as = of;
      if (kind && kind->by == FailureKind::By::kClass &&
          (kind->of == *of || kind->of == FailureClass::kTrial))
        reader.problems().add(entry.value.place, its_field,
                              fmt::format("'{}' cannot count as {}; expected a number of further attempts",
                                          entry.key, entry.value.text));
    } else if (const auto json = entry.value.json();
               json.is_number_integer() && json >= 0 && json <= kMostAttempts) {
      rule.attempts = json.get<int>();
    } else {
      reader.problems().add(
          entry.value.place, its_field,
          fmt::format("invalid value '{}'; expected a number of further attempts from 0 to {}, or as which "
                      "class it counts: {}",
                      entry.value.text, kMostAttempts, any_of(names_of<FailureClass>())),
          nearest_name(entry.value.text, names_of<FailureClass>()));
    }
    if (!kind) continue;
    if (std::ranges::find(rules, *kind, &protocol::RetryRule::kind) != rules.end())
      reader.problems().add(entry.place, its_field, fmt::format("'{}' is listed twice", kind->text()));
    rules.push_back(std::move(rule));
  }
}

/// "64MiB" in bytes; nothing for anything else.
std::optional<std::uint64_t> byte_size(const std::string& text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50, kLeast = 1 << 10;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  const int shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : 0;
  if ((shift == 0 && !unit.empty()) || number > kMost >> shift || number << shift < kLeast)
    return std::nullopt;
  return number << shift;
}

}  // namespace

void read_retry(YamlReader& reader, const Node& root, SweepSpec& spec) {
  const Node* node = root.find("retry");
  if (!node || !reader.is_mapping(*node, "retry")) return;
  reader.allow_only(*node, "retry", Part::kRetry);
  if (const Node* max = node->find("max"))
    spec.max_retries = static_cast<int>(reader.whole_number(*max, "retry.max", 0, kMostAttempts).value_or(0));
  if (const Node* on = node->find("on")) read_retry_rules(reader, *on, spec.retry_on);
}

namespace {

/// A number, or {min: 8, max: 16}: as many as there are, at least min.
struct Range {
  int least = 0, most = 0;
};

Range read_range(YamlReader& reader, const Node& node, const std::string& field, int lowest, int highest) {
  if (node.kind != Node::Kind::kMapping) {
    const int number = static_cast<int>(reader.whole_number(node, field, lowest, highest).value_or(0));
    return {number, number};
  }
  reader.allow_only(node, field, Part::kAmount);
  const auto read = [&](const char* key) {
    if (const Node* value = node.find(key))
      return static_cast<int>(reader.whole_number(*value, field + "." + key, 1, highest).value_or(0));
    reader.problems().add(node.place, field, fmt::format("expected {{min: …, max: …}}; {} is missing", key));
    return 0;
  };
  const Range range{.least = read("min"), .most = read("max")};
  if (range.most > 0 && range.least > range.most)
    reader.problems().add(node.place, field,
                          fmt::format("min {} is more than max {}", range.least, range.most));
  return range;
}

/// How many slots a trial needs, and of how many workers.
void read_slots(YamlReader& reader, const Node& resources, SweepSpec& spec) {
  const Node* gpus = resources.find("gpus");
  const Node* nodes = resources.find("nodes");
  if (gpus) {
    const Range range = read_range(reader, *gpus, "resources.gpus", 0, kMostGpus);
    spec.gpus = range.most;
    if (range.least < range.most) spec.split.least_gpus = range.least;
  }
  if (!nodes) return;
  const Range range = read_range(reader, *nodes, "resources.nodes", 1, kMostNodes);
  if (range.most == 0) return;
  if (spec.split.least_gpus > 0) {
    reader.problems().add(
        nodes->place, "resources.nodes",
        "expected with a range of GPUs: nothing; they come from as many workers as it takes");
    return;
  }
  if (spec.gpus % range.most != 0) {
    reader.problems().add(
        nodes->place, "resources.nodes",
        fmt::format("{} GPUs cannot be divided evenly among {} workers; expected a multiple "
                    "of {} GPUs",
                    spec.gpus, range.most, range.most));
    return;
  }
  spec.split.least_nodes = range.least, spec.split.most_nodes = range.most;
}

}  // namespace

void read_resources(YamlReader& reader, const Node& root, SweepSpec& spec) {
  const Node* node = root.find("resources");
  if (!node || !reader.is_mapping(*node, "resources")) return;
  reader.allow_only(*node, "resources", Part::kResources);
  read_slots(reader, *node, spec);
  if (const Node* pack = node->find("pack")) {
    spec.pack = reader.boolean(*pack, "resources.pack").value_or(false);
    if (spec.pack && spec.gpus > 1)
      reader.problems().add(
          pack->place, "resources.pack",
          fmt::format("trials of {} GPUs have them for themselves; expected gpus: 1", spec.gpus));
    else if (spec.pack && spec.split.most_nodes > 1)
      reader.problems().add(pack->place, "resources.pack",
                            "trials of several workers have their slots for themselves; expected no nodes");
  }
  const Node* where = node->find("where");
  if (!where || !reader.is_mapping(*where, "resources.where")) return;
  for (const auto& [label, place, value] : where->entries) {
    const std::string field = "resources.where." + label;
    const std::vector<Node> one{value};
    const std::vector<Node>& values = value.kind == Node::Kind::kSequence ? value.items : one;
    if (values.empty()) reader.problems().add(place, field, "an empty list; expected a value of the label");
    for (const Node& item : values) {
      if (item.kind != Node::Kind::kScalar || item.text.empty() || item.text == "!")
        reader.problems().add(
            item.place, field,
            "expected a value of the label, such as h100, or \"!node7\" (in quotes) for any other");
      else
        spec.where[label].push_back(item.text);
    }
  }
}

Limits read_limits(YamlReader& reader, const Node& root) {
  using std::chrono::seconds;
  constexpr seconds kMostTime{366 * 86'400};
  Limits limits;
  const Node* node = root.find("limits");
  if (!node || !reader.is_mapping(*node, "limits")) return limits;
  reader.allow_only(*node, "limits", Part::kLimits);
  if (const Node* value = node->find("log"))
    if (const auto text = reader.text(*value, "limits.log")) {
      if (const auto size = byte_size(*text))
        limits.log = *size;
      else
        reader.problems().add(
            value->place, "limits.log",
            fmt::format("invalid size '{}'; expected a whole number and KiB, MiB or GiB, such as 64MiB, from "
                        "1KiB",
                        *text));
    }
  if (const Node* value = node->find("nan"))
    limits.nan_fails = reader.choice(*value, "limits.nan", {"fail", "keep"}) == "fail";
  for (const auto& [key, limit] : {std::pair{"time", &limits.time}, std::pair{"stall", &limits.stall}}) {
    const Node* value = node->find(key);
    if (!value) continue;
    const auto text = reader.text(*value, dotted("limits", key));
    if (!text) continue;
    if (const auto read = parse_duration(*text); read && *read > seconds{0} && *read <= kMostTime)
      *limit = *read;
    else
      reader.problems().add(
          value->place, dotted("limits", key),
          fmt::format("invalid duration '{}'; expected a whole number and s, m, h, d or w, such as "
                      "90s, 10m or 2h",
                      *text));
  }
  return limits;
}

}  // namespace abl::sweeps
