// SPDX-License-Identifier: Apache-2.0
// `seeds: {min, max, until}` of a sweep file.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <regex>
#include <utility>

#include "base/nearest_name.h"
#include "sweeps/rows.h"

namespace abl::sweeps {
namespace {

/// "ci(acc) < 0.3" or "decided(acc)". False for another text.
bool read_until(const std::string& text, SeedRule& rule) {
  static const std::regex kInterval{
      R"(\s*ci\(\s*([A-Za-z0-9_.-]+)\s*\)\s*<\s*([0-9]{0,20}\.?[0-9]{1,20}(e[-+]?[0-9]{1,2})?)\s*)"};
  static const std::regex kDecided{R"(\s*decided\(\s*([A-Za-z0-9_.-]+)\s*\)\s*)"};
  constexpr std::size_t kLongest = 200;
  std::smatch part;
  if (text.size() > kLongest) return false;
  if (std::regex_match(text, part, kInterval)) {
    rule.until = SeedRule::Until::kInterval;
    rule.column = part[1];
    rule.bound = std::stod(part[2]);
    return rule.bound > 0;
  }
  if (!std::regex_match(text, part, kDecided)) return false;
  rule.until = SeedRule::Until::kDecided;
  rule.column = part[1];
  rule.bound = 0;
  return true;
}

}  // namespace

std::string SeedRule::text() const {
  return until == Until::kInterval ? fmt::format("ci({}) < {}", column, bound)
                                   : fmt::format("decided({})", column);
}

std::string SeedRule::json() const {
  return nlohmann::json{{"min", min}, {"max", max}, {"until", text()}}.dump();
}

SeedRule SeedRule::parse(const std::string& json) {
  SeedRule rule;
  const auto stored = nlohmann::json::parse(json);
  rule.min = stored.at("min").get<std::uint32_t>();
  rule.max = stored.at("max").get<std::uint32_t>();
  const auto until = stored.at("until").get<std::string>();
  if (!read_until(until, rule))
    throw Error{Code::kInvalidArgument, fmt::format("'{}' is no rule for seeds", until)};
  return rule;
}

std::optional<SeedRule> read_seed_rule(YamlReader& reader, const Node& node) {
  reader.allow_only(node, "seeds", Part::kSeedRule);
  SeedRule rule;
  const auto missing = [&](const char* key) {
    reader.problems().add(
        node.place, "seeds",
        fmt::format("{} is missing; expected {{min: 2, max: 8, until: \"ci(acc) < 0.3\"}}", key));
    return std::optional<std::int64_t>{};
  };
  const Node *min = node.find("min"), *max = node.find("max"), *until = node.find("until");
  const auto least = min ? reader.whole_number(*min, "seeds.min", 2, kMostSeeds) : missing("min");
  const auto most = max ? reader.whole_number(*max, "seeds.max", 2, kMostSeeds) : missing("max");
  if (!until) missing("until");
  if (least && most && *least > *most)
    reader.problems().add(max->place, "seeds.max", fmt::format("{} is below min, {}", *most, *least));
  const auto text = until ? reader.text(*until, "seeds.until") : std::nullopt;
  if (text && !read_until(*text, rule)) {
    reader.problems().add(
        until->place, "seeds.until",
        fmt::format("'{}': expected \"ci(COLUMN) < NUMBER\" or \"decided(COLUMN)\"", *text));
    return std::nullopt;
  }
  if (!least || !most || !text || *least > *most) return std::nullopt;
  rule.min = static_cast<std::uint32_t>(*least);
  rule.max = static_cast<std::uint32_t>(*most);
  return rule;
}

void check_seed_rule(const SeedRule& rule, const Node& node, const SweepSpec& spec, Problems& problems) {
  const Node* until = node.find("until");
  if (!until) return;
  std::vector<std::string> metrics;
  for (const Column& column : spec.table.columns)
    if (column.kind == Column::Kind::kMetric) metrics.push_back(column.name);
  if (std::ranges::find(metrics, rule.column) == metrics.end())
    problems.add(until->place, "seeds.until",
                 fmt::format("the table has no column '{}' of a metric", rule.column),
                 nearest_name(rule.column, metrics));
  for (const Row& row : spec.rows)
    if (!row.sources.empty())
      problems.add(until->place, "seeds",
                   fmt::format("row {} takes the weights of another row's seeds: give the seeds as a list or "
                               "a number",
                               row.id));
  if (rule.until == SeedRule::Until::kDecided &&
      std::ranges::all_of(spec.rows, [](const Row& row) { return row.baseline.empty(); }))
    problems.add(until->place, "seeds.until",
                 "decided(…) compares rows with the baseline, and table.baseline names none");
}

}  // namespace abl::sweeps
