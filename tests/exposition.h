// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace abl::test {

/// What Prometheus would read from its text format 0.0.4, by name with labels as written:
/// `ablate_slots{state="busy"}`. Stricter than Prometheus: what `promtool check metrics` complains of is an
/// error here too.
/// Throws: std::runtime_error naming the line.
inline std::map<std::string, double> parse_exposition(const std::string& text) {
  static const std::regex kSample{
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+))re"};
  static const std::regex kHeader{R"re(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))re"};
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;
  std::set<std::string> helps, closed;
  std::string family, type;
  std::map<std::string, std::pair<double, double>>
      buckets;  // of a histogram's labels: its last bound and count
  const auto fail = [](const std::string& line, const std::string& why) {
    throw std::runtime_error{fmt::format("{}: {}", why, line)};
  };
  if (!text.empty() && text.back() != '\n') fail(text.substr(text.rfind('\n') + 1), "no line end");
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kHeader)) {
      const std::string name = match[2];
      if (match[1] == "HELP") {
        if (!helps.insert(name).second) fail(line, "a second HELP");
        continue;
      }
      if (!helps.contains(name)) fail(line, "no HELP");
      if (!types.emplace(name, match[3]).second) fail(line, "a second TYPE");
      family = name;
      type = match[3];
      if (type != "counter" && type != "gauge" && type != "histogram") fail(line, "unknown type");
      if ((type == "counter") != name.ends_with("_total")) fail(line, "_total is for counters, and for all");
      for (const char* suffix : {"_sum", "_count", "_bucket"})
        if (name.ends_with(suffix)) fail(line, "a reserved suffix");
      continue;
    }
    if (!std::regex_match(line, match, kSample)) fail(line, "not a sample");
    const std::string name = match[1];
    std::string labels = match[3];
    std::optional<double> bound;
    static const std::regex kBound{R"re(,?le="([^"]*)")re"};
    if (std::smatch le; type == "histogram" && std::regex_search(labels, le, kBound)) {
      bound = le[1] == "+Inf" ? INFINITY : std::stod(le[1]);
      labels = le.prefix().str() + le.suffix().str();
    }
    const std::string of = type != "histogram"      ? family
                           : bound                  ? family + "_bucket"
                           : name.ends_with("_sum") ? family + "_sum"
                                                    : family + "_count";
    if (name != of) fail(line, "not of the family " + family);
    const double value = match[4] == "NaN" ? NAN : std::stod(match[4]);
    if (type != "gauge" && !(value >= 0)) fail(line, "not a count");
    if (!samples.emplace(line.substr(0, line.rfind(' ')), value).second) fail(line, "a second time");
    if (bound) {
      auto [known, fresh] = buckets.emplace(family + labels, std::pair{*bound, value});
      if (!fresh && (known->second.first >= *bound || known->second.second > value))
        fail(line, "buckets out of order");
      known->second = {*bound, value};
    } else if (name.ends_with("_count") && type == "histogram") {
      const auto known = buckets.find(family + labels);
      if (known == buckets.end() || known->second != std::pair<double, double>{INFINITY, value})
        fail(line, "not as many as in the bucket +Inf");
    }
  }
  return samples;
}

}  // namespace abl::test
