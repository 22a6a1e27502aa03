// SPDX-License-Identifier: Apache-2.0
// `command.metrics` of a sweep file: where the numbers of a program are that prints no JSON lines.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/nearest_name.h"
#include "base/pattern.h"
#include "protocol/metric_source.h"
#include "sweeps/command.h"

namespace abl::sweeps {
namespace {

using protocol::MetricSource;

constexpr std::size_t kMostSources = 32, kMostPatterns = 32;  // each is searched for in each line
constexpr std::size_t kLongestName = 200;

/// One `pattern`, or several.
const std::vector<Node>& items_of(const Node& node, std::vector<Node>& one) {
  if (node.kind == Node::Kind::kSequence) return node.items;
  one = {node};
  return one;
}

class SourceReader {
 public:
  SourceReader(YamlReader& reader, const Node& section, std::string field)
      : reader_{reader}, section_{section}, field_{std::move(field)} {}

  MetricSource read() {
    if (!reader_.is_mapping(section_, field_)) return {};
    const std::size_t problems = reader_.problems().size();
    reader_.allow_only(section_, field_, Part::kMetricSource);
    has_unknown_key_ = reader_.problems().size() > problems;
    std::vector<MetricSource::Kind> kinds;
    for (const auto kind : values_of<MetricSource::Kind>())
      if (section_.find(name_of(kind))) kinds.push_back(kind);
    if (kinds.empty() && has_unknown_key_) return {};  // it is what is lacking, misspelt
    if (kinds.size() != 1) {
      problem(section_, "", fmt::format("expected one of {}", any_of(names_of<MetricSource::Kind>())));
      return {};
    }
    source_.kind = kinds[0];
    const Node& where = *section_.find(name_of(source_.kind));
    if (source_.kind == MetricSource::Kind::kPattern)
      read_patterns(where);
    else
      read_path(where, name_of(source_.kind));
    read_names();
    if (const Node* step = section_.find("step"); step && source_.kind == MetricSource::Kind::kTensorboard)
      problem(*step, "step", "TensorBoard's event files say the step themselves; expected no step");
    else if (step)
      source_.step = text(*step, "step");
    if (source_.kind == MetricSource::Kind::kFile && source_.step == protocol::kLastStep)
      problem(*section_.find("step"), "step",
              "'last' is of patterns: a file is read at other times than the log; expected the column of the "
              "step, or 'count'");
    if (const Node* split = section_.find("split")) source_.split = name(*split, "split");
    read_choice("stream", source_.stream);
    read_choice("take", source_.take);
    if (source_.kind == MetricSource::Kind::kPattern && !wrong_pattern_) check_step();
    return source_;
  }

 private:
  void problem(const Node& node, std::string_view key, const std::string& message,
               const std::string& nearest = {}) {
    reader_.problems().add(node.place, key.empty() ? field_ : dotted(field_, key), message, nearest);
  }
  std::string text(const Node& node, std::string_view key) {
    return reader_.text(node, dotted(field_, key)).value_or("");
  }
  std::string name(const Node& node, std::string_view key) {
    const std::string written = text(node, key);
    const bool printed = std::ranges::none_of(written, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (node.kind == Node::Kind::kScalar && (written.empty() || written.size() > kLongestName || !printed))
      problem(node, key, fmt::format("expected a name of a metric, of at most {} characters", kLongestName));
    return written;
  }

  template <Named E>
  void read_choice(std::string_view key, E& value) {
    const Node* node = section_.find(key);
    if (!node) return;
    if (source_.kind != MetricSource::Kind::kPattern)
      return problem(*node, key, "is for a pattern; a file has one number for each cell");
    if (const auto chosen = reader_.choice(*node, dotted(field_, key), names_of<E>()))
      if (const auto known = value_named<E>(*chosen)) value = *known;
  }

  void read_patterns(const Node& node) {
    std::vector<Node> one;
    const std::vector<Node>& items = items_of(node, one);
    if (items.empty() || items.size() > kMostPatterns)
      problem(node, "pattern", fmt::format("expected one to {} regular expressions", kMostPatterns));
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string key = &items == &one ? "pattern" : fmt::format("pattern.{}", i + 1);
      const std::string written = text(items[i], key);
      const GroupPattern pattern{written};
      if (!pattern.problem().empty())
        problem(items[i], key,
                fmt::format("invalid pattern: {}; expected a regular expression of RE2", pattern.problem()));
      else if (pattern.groups().empty())
        problem(items[i], key,
                "no named group, so there is nothing to take; expected one, such as acc=(?<acc>[0-9.]+)");
      else
        groups_.insert(groups_.end(), pattern.groups().begin(), pattern.groups().end());
      wrong_pattern_ = wrong_pattern_ || !pattern.problem().empty() || pattern.groups().empty();
      source_.patterns.push_back(written);
    }
  }

  void read_path(const Node& node, std::string_view key) {
    source_.path = read_run_path(reader_, node, dotted(field_, key), "output/*/summary.csv");
    if (source_.path == protocol::kRunMetrics)
      problem(node, key,
              fmt::format("{} is written by the worker; expected another name", protocol::kRunMetrics));
  }

  void read_names() {
    const Node* names = section_.find("names");
    if (!names || !reader_.is_mapping(*names, dotted(field_, "names"))) return;
    for (const Node::Entry& entry : names->entries) {
      const std::string key = fmt::format("names.{}", entry.key);
      const bool known = source_.kind != MetricSource::Kind::kPattern ||
                         std::ranges::find(groups_, entry.key) != groups_.end();
      if (!known && !wrong_pattern_)
        reader_.problems().add(entry.place, dotted(field_, key),
                               fmt::format("no group is named '{}'; expected {}", entry.key, any_of(groups_)),
                               nearest_name(entry.key, groups_));
      source_.names[entry.key] = name(entry.value, key);
    }
  }

  /// A pattern without a step has that of the source's other patterns, and one of them has to say it.
  void check_step() {
    const auto has = [&](std::string_view group) {
      return std::ranges::find(groups_, group) != groups_.end();
    };
    const Node* step = section_.find("step");
    const bool word = source_.step == protocol::kCountedStep || source_.step == protocol::kLastStep;
    const auto usual = std::ranges::find_if(protocol::kStepNames, has);
    if (step && !word && !has(source_.step)) {
      problem(*step, "step",
              fmt::format("no group is named '{}'; expected {}, 'count' or 'last'", source_.step,
                          any_of(groups_)),
              nearest_name(source_.step, groups_));
    } else if (!step && usual == protocol::kStepNames.end() && has_unknown_key_) {
      return;  // perhaps it says the step
    } else if (!step && usual == protocol::kStepNames.end()) {
      problem(
          section_, "step",
          "missing: no group is named step or epoch; expected the group of the step, 'count' (each match is "
          "one step more) or 'last' (the step that was found last)");
    } else {
      const std::string named = step ? source_.step : std::string{*usual};
      if (std::ranges::all_of(groups_, [&](const std::string& group) { return group == named; }))
        problem(section_, "pattern",
                fmt::format("'{}' is the only group and names the step; expected a group for a number too",
                            named));
    }
  }

  YamlReader& reader_;
  const Node& section_;
  const std::string field_;
  MetricSource source_;
  std::vector<std::string> groups_;
  bool wrong_pattern_ = false, has_unknown_key_ = false;
};

/// Whether one of its patterns finds a step, rather than counting or taking another's.
bool finds_step(const MetricSource& source) {
  for (const std::string& text : source.patterns) {
    const GroupPattern pattern{text};
    const auto has = [&](std::string_view name) {
      return std::ranges::find(pattern.groups(), name) != pattern.groups().end();
    };
    if (source.step.empty() ? std::ranges::any_of(protocol::kStepNames, has) : has(source.step)) return true;
  }
  return false;
}

/// The step that was found last has to be found.
void check_last_step(YamlReader& reader, const Node& section, const std::vector<MetricSource>& sources) {
  const auto takes_last = [](const MetricSource& source) {
    return source.kind == MetricSource::Kind::kPattern && source.step == protocol::kLastStep;
  };
  if (std::ranges::any_of(sources, takes_last) && std::ranges::none_of(sources, finds_step))
    reader.problems().add(
        section.place, "command.metrics",
        "'step: last' needs another pattern that finds the step; expected one with a group such as "
        "(?<epoch>\\d+)");
}

/// What the patterns of a source find, by the names of the metrics.
std::vector<std::string> metrics_of(const MetricSource& source) {
  std::vector<std::string> metrics;
  for (const std::string& text : source.patterns) {
    const GroupPattern pattern{text};
    for (const std::string& group : pattern.groups()) metrics.push_back(protocol::metric_name(source, group));
  }
  return metrics;
}

}  // namespace

std::string read_run_path(YamlReader& reader, const Node& node, const std::string& field,
                          const std::string& example) {
  constexpr std::string_view kFolder = "{run_dir}/";
  std::string path = reader.text(node, field).value_or("");
  if (path.starts_with(kFolder)) path.erase(0, kFolder.size());
  while (path.ends_with('/')) path.pop_back();
  const bool up = path == ".." || path.starts_with("../") || path.ends_with("/..") ||
                  path.find("/../") != std::string::npos;
  if (node.kind == Node::Kind::kScalar &&
      (path.empty() || path.starts_with('/') || path.starts_with('~') || up ||
       path.find('\0') != std::string::npos || path.find('{') != std::string::npos))
    reader.problems().add(
        node.place, field,
        fmt::format(
            "expected a path in the run's folder, in which * and ? stand for parts of names, such as {}; "
            "the program writes there where argv has {{run_dir}}",
            example));
  return path;
}

std::vector<MetricSource> read_metric_sources(YamlReader& reader, const Node& section) {
  const std::string field = "command.metrics";
  std::vector<MetricSource> sources;
  if (section.kind != Node::Kind::kSequence) {
    sources.push_back(SourceReader{reader, section, field}.read());
    check_last_step(reader, section, sources);
    return sources;
  }
  if (section.items.empty() || section.items.size() > kMostSources)
    reader.problems().add(section.place, field, fmt::format("expected one to {} places", kMostSources));
  for (std::size_t i = 0; i < section.items.size(); ++i)
    sources.push_back(SourceReader{reader, section.items[i], fmt::format("{}.{}", field, i + 1)}.read());
  check_last_step(reader, section, sources);
  return sources;
}

void check_metric_columns(const Command& command, const TableSpec& table, const Node& columns,
                          Problems& problems) {
  std::vector<std::string> metrics;
  for (const MetricSource& source : command.metrics) {
    if (source.kind != MetricSource::Kind::kPattern) return;  // a file has what it has
    for (std::string& metric : metrics_of(source)) metrics.push_back(std::move(metric));
  }
  for (std::size_t i = 0; i < columns.items.size() && i < table.columns.size(); ++i) {
    const Node* metric = columns.items[i].find("metric");
    if (!metric || std::ranges::find(metrics, metric->text) != metrics.end()) continue;
    if (const std::string nearest = nearest_name(metric->text, metrics, 0.3); !nearest.empty())
      problems.add(metric->place, fmt::format("table.columns.{}.metric", table.columns[i].name),
                   fmt::format("no pattern of command.metrics finds '{}'", metric->text), nearest);
  }
}

}  // namespace abl::sweeps
