// SPDX-License-Identifier: Apache-2.0
// `tune:` of a sweep file, and the trials by which rows are tuned.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/nearest_name.h"
#include "config/data/data_sets.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "config/recipe/recipes.h"
#include "protocol/metrics.h"
#include "sweeps/canonical.h"
#include "sweeps/form.h"
#include "sweeps/sections.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

constexpr const char* kHeldOut = "data.held_out";

/// "seeds 100-101", "seed 7", "seeds 100, 103-105".
std::optional<std::vector<std::int64_t>> seeds_in(std::string_view text) {
  const auto skip = [&](std::string_view what) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const bool there = text.starts_with(what);
    if (there) text.remove_prefix(what.size());
    return there;
  };
  const auto number = [&]() -> std::optional<std::int64_t> {
    skip("");
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
  };
  if (!skip("seeds") && !skip("seed")) return std::nullopt;
  std::vector<std::int64_t> seeds;
  do {
    const auto first = number();
    const auto last = first && skip("-") ? number() : first;
    if (!last || *last < *first || *last - *first >= kMostSeeds) return std::nullopt;
    for (std::int64_t seed = *first; seed <= *last; ++seed) seeds.push_back(seed);
  } while (skip(","));
  skip("");
  if (!text.empty()) return std::nullopt;
  return seeds;
}

bool within(const std::string& key, const std::string& other) {
  return key == other || key.starts_with(other + ".") || other.starts_with(key + ".");
}

/// Of a key of the recipe or the data.
bool takes_whole_numbers(const std::string& key) {
  const auto is_whole = [&](std::string_view section, const auto& fields) {
    return std::ranges::any_of(fields, [&](const auto& known) {
      return known.kind() == config::Kind::kInteger && key == dotted(section, known.name);
    });
  };
  return is_whole("recipe", config::recipe_fields()) || is_whole("data", config::data_fields());
}

class TuneReader {
 public:
  TuneReader(YamlReader& reader, bool command, bool search)
      : reader_{reader}, command_{command}, search_{search} {}

  std::optional<Tune> read(const Node& section) {
    if (!reader_.is_mapping(section, field())) return std::nullopt;
    Node others = section;
    Tune tune;
    tune.search = search_;
    const Node ranges = search_ ? read_over(section, tune) : read_keys(section, others, tune);
    for (const TunedRange& range : tune.ranges)
      if (!command_ && range.kind == TunedRange::Kind::kReal && takes_whole_numbers(range.key))
        problem({range.line, range.column}, search_ ? "search.over." + range.key : field(range.key),
                "takes whole numbers; add integer: true");
    const char* points = search_ ? "trials" : "budget";
    if (const Node* budget = needed(others, section, points,
                                    search_ ? "how many points are tried" : "how many points each row gets"))
      tune.budget =
          static_cast<int>(reader_.whole_number(*budget, field(points), 1, kMostTrials).value_or(1));
    if (const Node* metric = needed(others, section, "metric", "such as val/loss"))
      read_metric(*metric, others.find("better"), tune);
    if (const Node* method = others.find("method"))
      if (const auto name = reader_.choice(*method, field("method"), names_of<Method>()))
        tune.method = *value_named<Method>(*name);
    if (const Node* halving = others.find("halving")) {
      tune.halving = read_halving(reader_, *halving, field("halving"), command_);
      if (!others.find("method")) tune.method = Method::kHalving;
      if (tune.method != Method::kHalving)
        problem(halving->place, field("halving"), "requires method: halving");
    } else if (tune.method == Method::kHalving && command_) {
      problem(others.find("method")->place, field("halving"),
              "missing; expected the parameter that is less at first, such as {key: params.epochs}");
    }
    if (tune.method == Method::kHalving)
      for (const Node::Entry& entry : ranges.entries)
        if (within(entry.key, tune.halving.key))
          problem(entry.place, field(entry.key), "successive halving sets it; it cannot be tuned as well");
    if (const Node* seed = others.find("seed"))
      tune.design_seed = static_cast<std::uint64_t>(
          reader_.whole_number(*seed, field("seed"), 0, 1'000'000'000).value_or(0));
    const char* seeds = search_ ? "seeds" : "on";
    if (const Node* on = others.find(seeds)) read_seeds(*on, field(seeds), tune);
    if (search_ && tune.seeds.empty()) tune.seeds = {0};  // nothing else is reported
    read_held_out(others.find("held_out"), section, tune);
    return tune;
  }

 private:
  std::string field(std::string_view key = {}) const {
    const std::string section = search_ ? "search" : "tune";
    return key.empty() ? section : dotted(section, key);
  }

  /// `over:` of a search: any key, for there are no rows to be compared.
  Node read_over(const Node& section, Tune& tune) {
    reader_.allow_only(section, "search", Part::kSearch);
    const Node* over =
        needed(section, section, "over",
               "keys with their ranges, such as {recipe.lr: {min: 1e-4, max: 1e-2, log: true}}");
    if (!over) return {};
    tune.ranges = read_ranges(reader_, *over, "search.over");
    for (const Node::Entry& entry : over->entries)
      if (command_ ? !entry.key.starts_with("params.")
                   : entry.key == kHeldOut || entry.key == "data.name" || entry.key == "seed")
        problem(entry.place, "search.over." + entry.key,
                command_
                    ? "expected a parameter of the command, such as params.lr"
                    : "it decides what points are judged by; expected a key of the model, the data or the "
                      "recipe");
    return *over;
  }

  /// The dotted keys of `tune:`, which are taken out of `others`.
  Node read_keys(const Node& section, Node& others, Tune& tune) {
    Node ranges = section;
    const auto is_range = [](const Node::Entry& entry) { return entry.key.find('.') != std::string::npos; };
    std::erase_if(ranges.entries, [&](const Node::Entry& entry) { return !is_range(entry); });
    std::erase_if(others.entries, is_range);
    reader_.allow_only(others, "tune", Part::kTune);
    if (ranges.entries.empty())
      problem(section.place, "tune",
              "no key is tuned; expected one with its range, such as recipe.lr: {min: 1e-4, max: 1e-2, "
              "log: true}");
    else
      tune.ranges = read_ranges(reader_, ranges, "tune");
    for (const Node::Entry& entry : ranges.entries)
      if (!entry.key.starts_with(command_ ? "params." : "recipe."))
        problem(entry.place, "tune." + entry.key,
                command_ ? "expected a parameter of the command, such as params.lr"
                         : "a row's model and data are what it is, not how it is trained; expected a key of "
                           "the recipe, such as recipe.lr");
    return ranges;
  }

  void problem(Place place, const std::string& field, const std::string& message,
               const std::string& nearest = {}) {
    reader_.problems().add(place, field, message, nearest);
  }

  const Node* needed(const Node& section, const Node& around, const char* key, const char* what) {
    const Node* node = section.find(key);
    if (!node) problem(around.place, field(key), fmt::format("missing; expected {}", what));
    return node;
  }

  void read_metric(const Node& node, const Node* better, Tune& tune) {
    tune.metric = reader_.text(node, field("metric")).value_or("");
    if (!command_) {
      std::vector<std::string> known;
      for (const protocol::Quantity& quantity : protocol::trainer_metrics())
        if (std::string name{quantity.name};
            name.starts_with("val/") && protocol::better_by_name(name) != protocol::Better::kNone)
          known.push_back(std::move(name));
      if (std::ranges::find(known, tune.metric) == known.end())
        return problem(
            node.place, field("metric"),
            fmt::format("'{}' is not measured on images held out; expected {}", tune.metric, any_of(known)),
            nearest_name(tune.metric, known));
    }
    tune.better = protocol::better_by_name(tune.metric);
    if (better)
      if (const auto name = reader_.choice(*better, field("better"), {"higher", "lower"}))
        tune.better = *value_named<protocol::Better>(*name);
    if (const auto known = protocol::better_by_name(tune.metric); !command_ && tune.better != known)
      problem(better->place, field("better"),
              fmt::format("of {} {} is better; the best point would be the worst: take it out", tune.metric,
                          name_of(known)));
    if (tune.better == protocol::Better::kNone && !better)
      problem(node.place, field("metric"),
              fmt::format("which way is '{}' better? add better: higher or better: lower", tune.metric));
  }

  void read_seeds(const Node& on, const std::string& field, Tune& tune) {
    if (on.kind == Node::Kind::kSequence) {
      for (const Node& item : on.items)
        if (const auto seed = reader_.whole_number(item, field, 0, 1'000'000'000))
          tune.seeds.push_back(*seed);
    } else if (const auto text = reader_.text(on, field)) {
      if (const auto seeds = seeds_in(*text))
        tune.seeds = *seeds;
      else
        problem(on.place, field,
                fmt::format("'{}': expected seeds, such as 'seeds 100-101' or [100, 101]", *text));
    }
    std::set<std::int64_t> seen;
    for (const std::int64_t seed : tune.seeds)
      if (!seen.insert(seed).second) problem(on.place, field, fmt::format("seed {} is listed twice", seed));
  }

  void read_held_out(const Node* held_out, const Node& section, Tune& tune) {
    if (!command_) {
      tune.held_out = "0.1";
      if (held_out) tune.held_out = reader_.text(*held_out, field("held_out")).value_or(tune.held_out);
      if (held_out && std::strtod(tune.held_out.c_str(), nullptr) <= 0)
        problem(held_out->place, field("held_out"),
                fmt::format("'{}' holds nothing out; expected a part of the training images below 1, such as "
                            "0.1, or how many of them",
                            tune.held_out));
      return;
    }
    if (!held_out && search_) return;  // its metric is what it says
    if (!held_out)
      return problem(section.place, field("held_out"),
                     "missing; a command holds images out of its training by itself: expected what its "
                     "tuning trials are told for that, such as {params.split: tune}");
    if (!reader_.is_mapping(*held_out, field("held_out"))) return;
    for (const Node::Entry& entry : held_out->entries)
      if (const auto value = reader_.text(entry.value, field("held_out." + entry.key))) {
        tune.told[entry.key] = *value;
        for (const TunedRange& range : tune.ranges)
          if (within(range.key, entry.key))
            problem(entry.place, field("held_out." + entry.key),
                    "it is tuned; it cannot say what is held out");
        if (tune.method == Method::kHalving && within(tune.halving.key, entry.key))
          problem(entry.place, field("held_out." + entry.key),
                  "successive halving sets it; it cannot say what is held out");
      }
    if (tune.told.empty())
      problem(held_out->place, field("held_out"), "empty; expected a parameter and its value");
  }

  YamlReader& reader_;
  const bool command_, search_;
};

/// What successive halving begins with less of.
double whole_of(const Row& row, const Tune& tune, bool command) {
  const json document = json::parse(row.config);
  if (!command) {
    json trial = document;
    trial["seed"] = 0;
    return config::read_trial_or_throw(trial).recipe.epochs;
  }
  const json params = document.value("params", json::object());
  const std::string name = tune.halving.key.substr(tune.halving.key.find('.') + 1);
  const json value = params.value(name, json{});
  return value.is_number() ? value.get<double>() : 0;
}

/// "lr 0.001, weight_decay 0.05"
std::string text_of(const Point& values) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : values)
    parts.push_back(fmt::format("{} {}", key.substr(key.rfind('.') + 1), value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Says which rows cannot be tuned. Returns: whether all can.
bool check_rows(const std::vector<DraftRow>& drafts, const Node& section, const Settings& shared,
                const SweepSpec& spec, Problems& problems) {
  const std::size_t before = problems.size();
  const Tune& tune = *spec.tune;
  if (shared.text_at(kHeldOut))
    problems.add(shared.origin(kHeldOut).place, "base." + std::string{kHeldOut},
                 tune.search ? "a search holds images out by search.held_out: take it out"
                             : "tuning holds images out by tune.held_out, and what is reported is trained on "
                               "all of train: take it out");
  for (const DraftRow& row : drafts) {
    if (!row.sources.empty())
      problems.add(row.sources.front().place, row.sources.front().field,
                   fmt::format("row {} takes the weights of other rows, which depend on their own tuning; "
                               "expected rows without 'from' and 'teacher' where there is 'tune'",
                               row.id));
    if (row.not_trained) continue;
    for (const Assignment& assignment : row.set)
      for (const auto& [key, value] : leaves({assignment})) {
        if (key == kHeldOut && !spec.command)
          problems.add(assignment.place, assignment.field,
                       "tuning holds images out by tune.held_out: take it out of the row");
        for (const TunedRange& range : tune.ranges)
          if (within(key, range.key))
            problems.add(assignment.place, assignment.field,
                         fmt::format("row {} sets {}, which is tuned; take it out of the row or out of tune",
                                     row.id, range.key));
      }
  }
  for (const std::int64_t seed : tune.seeds)
    if (std::ranges::find(spec.seeds, seed) != spec.seeds.end()) {
      problems.add(section.find("on") ? section.find("on")->place : section.place, "tune.on",
                   fmt::format("seed {} is one of the sweep's own; what is chosen must not be chosen on what "
                               "is reported: expected others, such as seeds 100-101",
                               seed));
      break;
    }
  return problems.size() == before;
}

/// A point that is told what its row is told anyway would be judged by what is reported.
void check_told(const std::vector<Row>& tried, const std::vector<Row>& best, const Node& section,
                const SweepSpec& spec, Problems& problems) {
  const Tune& tune = *spec.tune;
  if (!spec.command || tune.told.empty()) return;
  std::set<int> said;  // rows
  for (std::size_t i = 0; i < spec.candidates.size(); ++i)
    if (!tried[i].config.empty() && tried[i].config == best[i].config &&
        said.insert(spec.candidates[i].row).second)
      problems.add(section.find("held_out")->place, tune.search ? "search.held_out" : "tune.held_out",
                   fmt::format("row {} has this anyway: its points would be judged by what is reported; "
                               "expected what holds something out",
                               spec.rows[static_cast<std::size_t>(spec.candidates[i].row)].id));
}

}  // namespace

std::optional<Tune> read_tune(YamlReader& reader, const Node& section, bool command) {
  return TuneReader{reader, command, false}.read(section);
}

std::optional<Tune> read_search(YamlReader& reader, const Node& section, bool command) {
  return TuneReader{reader, command, true}.read(section);
}

void add_candidates(const std::vector<DraftRow>& drafts, const Node& section, const Settings& shared,
                    const Resolve& resolve, SweepSpec& spec, Problems& problems) {
  Tune& tune = *spec.tune;
  if (tune.seeds.empty()) {  // one that the sweep does not have
    std::int64_t seed = 100;
    while (std::ranges::find(spec.seeds, seed) != spec.seeds.end()) ++seed;
    tune.seeds = {seed};
  }
  if (!check_rows(drafts, section, shared, spec, problems) || !problems.empty()) return;
  const std::vector<Point> points =
      draw_points(tune.ranges, tune.method, static_cast<std::size_t>(tune.budget), tune.design_seed);
  std::deque<Node> values;  // that assignments point at
  const auto assign = [&](DraftRow& draft, const std::string& key, const std::string& value,
                          const std::string& field) {
    const Node* ranges = tune.search ? section.find("over") : &section;
    const Node::Entry* entry = ranges ? ranges->entry(key) : nullptr;
    const Place place = entry ? entry->place : section.place;
    values.push_back({.kind = Node::Kind::kScalar, .place = place, .text = value});
    draft.tuned.push_back({key, &values.back(), place, field});
  };
  const std::string field = tune.search ? "search" : "tune";
  std::map<std::size_t, std::vector<Rung>> tuned;  // row -> its rungs
  std::size_t trials = 0;
  for (std::size_t i = 0; i < spec.rows.size() && i < drafts.size(); ++i) {
    const Row& row = spec.rows[i];
    if (row.not_trained || row.config.empty()) continue;
    std::vector<Rung> rungs{{points.size(), ""}};
    if (tune.method == Method::kHalving) {
      const double whole = whole_of(row, tune, spec.command.has_value());
      if (whole <= 0)
        problems.add(section.place, field + ".halving",
                     fmt::format("row {} has no {}, which halving makes less", row.id, tune.halving.key));
      rungs = rungs_of(tune.halving, points.size(), whole);
      if (spec.command && whole == std::floor(whole))  // a program may take no half of one
        for (Rung& rung : rungs)
          rung.value = config::canonical_number(std::max(1.0, std::round(std::stod(rung.value))));
    }
    for (const Rung& rung : rungs) trials += rung.points * tune.seeds.size();
    tuned.emplace(i, std::move(rungs));
  }
  if (trials > static_cast<std::size_t>(kMostTrials))  // before there is a row for each
    return problems.add(section.place, field,
                        fmt::format("{} tuning trials; a sweep has at most {}", trials, kMostTrials));
  std::vector<DraftRow> tried, best;
  for (const auto& [i, rungs] : tuned) {
    Row& row = spec.rows[i];
    row.tuned = true;
    for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
      for (std::size_t point = 0; point < points.size(); ++point) {
        DraftRow draft = drafts[i];
        draft.id = fmt::format("{}.p{}{}", row.id, point, rung > 0 ? fmt::format(".r{}", rung) : "");
        draft.label = text_of(points[point]);
        if (rungs.size() > 1)
          draft.label += fmt::format(", {} {}", tune.halving.key.substr(tune.halving.key.rfind('.') + 1),
                                     rungs[rung].value);
        draft.group = row.label;
        draft.paper.clear();
        for (const auto& [key, value] : points[point])
          assign(draft, key, value, dotted(tune.search ? "search.over" : field, key));
        best.push_back(draft);
        if (rungs.size() > 1) assign(draft, tune.halving.key, rungs[rung].value, field + ".halving");
        if (!spec.command) assign(draft, kHeldOut, tune.held_out, field + ".held_out");
        for (const auto& [key, value] : tune.told) assign(draft, key, value, field + ".held_out." + key);
        tried.push_back(std::move(draft));
        spec.candidates.push_back({.row = static_cast<int>(i),
                                   .point = static_cast<int>(point),
                                   .rung = static_cast<int>(rung),
                                   .planned = point < rungs[rung].points,
                                   .values = points[point],
                                   .rung_value = rungs[rung].value,
                                   .tried = {},
                                   .best = {}});
      }
    }
  }
  std::vector<Row> tried_rows = resolve(tried), best_rows = resolve(best);
  check_told(tried_rows, best_rows, section, spec, problems);
  for (std::size_t i = 0; i < spec.candidates.size(); ++i) {
    spec.candidates[i].tried = std::move(tried_rows[i]);
    spec.candidates[i].best = std::move(best_rows[i]);
  }
}

std::string Tune::json() const {
  nlohmann::json document{{"budget", budget},
                          {"metric", metric},
                          {"better", name_of(better)},
                          {"method", name_of(method)},
                          {"seeds", seeds},
                          {"seed", design_seed},
                          {"ranges", nlohmann::json::array()}};
  for (const TunedRange& range : ranges) {
    nlohmann::json one{{"key", range.key}, {"text", range.text()}};
    if (range.kind == TunedRange::Kind::kChoices)
      one["choices"] = range.choices;
    else
      one.update({{"min", range.min}, {"max", range.max}});
    if (range.kind == TunedRange::Kind::kInteger) one["integer"] = true;
    if (range.log) one["log"] = true;
    document["ranges"].push_back(std::move(one));
  }
  if (method == Method::kHalving) {
    document["halving"] = {{"key", halving.key}, {"keep", halving.keep}};
    if (halving.first) document["halving"]["first"] = *halving.first;
  }
  if (!held_out.empty()) document["held_out"] = held_out;
  if (!told.empty()) document["told"] = told;
  if (search) document["search"] = true;
  return config::canonical_json(document);
}

SweepSpec tuning_sweep(const SweepSpec& spec) {
  const Tune& tune = *spec.tune;
  SweepSpec other = spec;
  other.tune.reset();
  other.candidates.clear();
  other.doubts.clear();
  other.probes.clear();  // of the rows at their best alone
  other.seeds_rule.reset();
  other.name = spec.name + ".tuning";
  other.seeds = tune.seeds;
  other.rows.clear();
  for (const Candidate& candidate : spec.candidates) {
    other.rows.push_back(candidate.tried);
    other.rows.back().tuned = candidate.rung > 0;  // claimed when its turn comes
  }
  other.table = {};
  other.table.scale = spec.table.scale;
  other.table.title = tune.search ? fmt::format("The points of {}", spec.name)
                                  : fmt::format("How the rows of {} are tuned", spec.name);
  for (const TunedRange& range : tune.ranges)
    other.table.columns.push_back(
        {.name = range.key, .heading = range.key, .kind = Column::Kind::kSetting, .source = range.key});
  Column metric{.name = "metric", .heading = tune.metric, .source = tune.metric, .better = tune.better};
  if (const protocol::Quantity* quantity = find(protocol::trainer_metrics(), tune.metric);
      quantity && !spec.command)
    metric.unit = quantity->unit;
  other.table.columns.push_back(std::move(metric));
  other.canonical = canonical_spec(other);
  return other;
}

}  // namespace abl::sweeps
