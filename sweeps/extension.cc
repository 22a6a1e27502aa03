// SPDX-License-Identifier: Apache-2.0
#include "sweeps/extension.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "config/document/trial_document.h"
#include "config/json.h"
#include "config/task/task_section.h"
#include "sweeps/problems.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

/// Keys of a row that say how it is printed; the others are its configuration.
constexpr std::string_view kPrinted[] = {"label", "paper", "marks", "group", "not_trained"};

json configuration_of(json row) {
  for (const auto key : kPrinted) row.erase(std::string{key});
  return row;
}

/// "recipe.epochs: 10 here, 5 in the store", a part each.
void differences(const json& here, const json& stored, const std::string& path,
                 std::vector<std::string>& parts) {
  if (here == stored) return;
  if (here.is_object() && stored.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : here.items()) keys.insert(key);
    for (const auto& [key, value] : stored.items()) keys.insert(key);
    for (const std::string& key : keys)
      differences(here.value(key, json{}), stored.value(key, json{}), dotted(path, key), parts);
    return;
  }
  const auto shown = [](const json& value) -> std::string {
    if (value.is_null()) return "the default";
    std::string text = config::plain_text(value);
    return text.empty() ? "nothing" : text;
  };
  parts.push_back(fmt::format("{}: {} here, {} in the store", path, shown(here), shown(stored)));
}

std::string differences(const json& here, const json& stored, const std::string& path = "") {
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> parts;
  differences(here, stored, path, parts);
  const std::size_t more = parts.size() > kNamed ? parts.size() - kNamed : 0;
  parts.resize(parts.size() - more);
  return fmt::format("{}{}", fmt::join(parts, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
}

/// What to do with a file that cannot extend the sweep; results of commands are taken again where it says so.
std::string under_another_name(const json& here) {
  return std::string{"under another name"} +
         (here.value("reuse", true) ? ", where trials that are stored do not run again" : "");
}

/// "row a", "rows a, b and 3 more"
std::string rows_text(const std::vector<std::string>& ids) {
  constexpr std::size_t kNamed = 8;
  const std::size_t named = std::min(ids.size(), kNamed);
  return fmt::format("{} {}{}", ids.size() == 1 ? "row" : "rows",
                     fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                     ids.size() > named ? fmt::format(" and {} more", ids.size() - named) : "");
}

/// Whether a training of `stored` that has ended is the beginning of one of `here`: the learning rate at a
/// step is the same in both. With a warm-up it is not, which takes a share of all steps.
bool goes_on(json here, json stored) {
  const auto epochs = [](const json& row) {
    const auto recipe = row.find("recipe");
    return recipe == row.end() ? 0.0 : recipe->value("epochs", 0.0);
  };
  const double now = epochs(here), before = epochs(stored);
  if (!(now > before) || !(before > 0) || before != std::floor(before)) return false;
  json longer = stored;
  longer["recipe"]["epochs"] = here["recipe"]["epochs"];
  if (longer != here) return false;
  try {
    here["seed"] = 0;
    return config::begins_longer_ones(config::read_trial_or_throw(here));
  } catch (const Error&) {  // no document of the trainer
    return false;
  }
}

/// What becomes of the trials of a row whose configuration changed.
ReplacedRow replaced_row(const json& here, const json& stored) {
  ReplacedRow row{.why = differences(here, stored)};
  json other = stored;
  if (here.contains("version"))
    other["version"] = here["version"];
  else
    other.erase("version");
  if (here.contains("argv") && other == here) row.version = stored.value("version", "");
  row.longer = goes_on(here, stored);
  return row;
}

std::string what_follows(const ReplacedRow& row, const json& here, const json& stored) {
  if (row.version) return "its trials run again; the values of the older version are kept, and marked";
  if (row.longer)
    return "a constant learning rate: its trials go on from their last checkpoints; the shorter runs are "
           "kept";
  const auto epochs = [](const json& one) {
    return one.contains("recipe") ? one["recipe"].value("epochs", 0.0) : 0.0;
  };
  if (epochs(here) != epochs(stored))
    return "the learning rate follows another schedule from the first step on, so this is a new training: "
           "its trials run from the start; the old runs are kept";
  return "its trials run from the start; the old runs are kept";
}

void compare_rows(const SweepSpec& spec, const json& here, const json& stored, Growth& growth) {
  std::vector<std::string> fresh, gone, printed, untrained;
  std::map<std::string, std::vector<std::string>> replaced;  // what is said of it -> rows
  for (const Row& row : spec.rows) {
    const json& mine = here["rows"][row.id];
    if (!stored["rows"].contains(row.id)) {
      fresh.push_back(row.id);
      continue;
    }
    const json& theirs = stored["rows"][row.id];
    if (mine == theirs) continue;
    const json mine_configuration = configuration_of(mine), theirs_configuration = configuration_of(theirs);
    if (mine_configuration == theirs_configuration) {
      (mine.contains("not_trained") == theirs.contains("not_trained") ? printed : untrained)
          .push_back(row.id);
      continue;
    }
    ReplacedRow other = replaced_row(mine_configuration, theirs_configuration);
    replaced[other.why + ": " + what_follows(other, mine, theirs)].push_back(row.id);
    growth.replaced[row.id] = std::move(other);
  }
  for (bool found = true; std::exchange(found, false);)  // rows that take weights of such rows
    for (const Row& row : spec.rows)
      for (const RowSource& source : row.sources) {
        const std::string& from = spec.rows[static_cast<std::size_t>(source.row)].id;
        if (!growth.replaced.contains(from) || growth.replaced.contains(row.id) ||
            !stored["rows"].contains(row.id))
          continue;
        found = true;
        ReplacedRow other{.why = fmt::format("it takes weights of row {}, which is another", from)};
        replaced[other.why + ": its trials run from the start; the old runs are kept"].push_back(row.id);
        growth.replaced[row.id] = std::move(other);
      }
  for (const auto& [id, row] : stored["rows"].items())
    if (!here["rows"].contains(id)) gone.push_back(id);
  if (!fresh.empty()) growth.changes.push_back(rows_text(fresh) + ": new");
  for (const auto& [what, ids] : replaced) growth.changes.push_back(rows_text(ids) + ": " + what);
  if (!untrained.empty())
    growth.changes.push_back(rows_text(untrained) + ": not_trained, which was otherwise before");
  if (!printed.empty())
    growth.changes.push_back(rows_text(printed) + ": printed otherwise (label, group or paper's values)");
  if (fresh.empty() && gone.empty() && here.value("row_order", json{}) != stored.value("row_order", json{}))
    growth.changes.emplace_back("rows: in another order");
  if (!gone.empty())
    growth.refused.push_back(fmt::format(
        "{}: in the store and not in the file; an extension takes nothing out: put {} back, or submit "
        "the file {}",
        rows_text(gone), gone.size() == 1 ? "it" : "them", under_another_name(here)));
}

void compare_seeds(const json& here, const json& stored, Growth& growth) {
  const auto rule = [](const json& spec) { return spec.value("seeds_rule", json{}); };
  const auto as_text = [](const json& one) -> std::string {
    return one.is_null() ? "a fixed number"
                         : fmt::format("{} to {} until {}", one.at("min").get<int>(),
                                       one.at("max").get<int>(), one.at("until").get<std::string>());
  };
  if (rule(here) != rule(stored)) {
    growth.refused.push_back(
        fmt::format("seeds: {} here, {} in the store", as_text(rule(here)), as_text(rule(stored))) +
        "; how often results are looked at is declared before there are any, or p-values would not hold: "
        "submit the file " +
        under_another_name(here));
    return;
  }
  const auto seeds = [](const json& spec) {
    return spec.value("seeds", json::array()).get<std::vector<std::int64_t>>();
  };
  const auto mine = seeds(here), theirs = seeds(stored);
  const auto without = [](const std::vector<std::int64_t>& some, const std::vector<std::int64_t>& others) {
    std::vector<std::int64_t> left;
    for (const std::int64_t seed : some)
      if (std::ranges::find(others, seed) == others.end()) left.push_back(seed);
    return left;
  };
  const auto fresh = without(mine, theirs), gone = without(theirs, mine);
  const auto text = [](const std::vector<std::int64_t>& some) {
    return fmt::format("{} {}", some.size() == 1 ? "seed" : "seeds", fmt::join(some, ", "));
  };
  if (!fresh.empty()) growth.changes.push_back(text(fresh) + ": new");
  if (fresh.empty() && gone.empty() && mine != theirs) growth.changes.emplace_back("seeds: in another order");
  if (!gone.empty())
    growth.refused.push_back(text(gone) +
                             ": in the store and not in the file; an extension takes nothing out: put it "
                             "back, or submit the file " +
                             under_another_name(here));
}

/// A search may go on with more points: nothing is reported that was trained at the best of fewer.
bool searches_on(const json& here, json stored) {
  if (!here.is_object() || !stored.is_object() || !here.value("search", false) ||
      here.value("method", "") == "halving" || here.value("budget", 0) < stored.value("budget", 0))
    return false;
  stored["budget"] = here["budget"];
  return here == stored;
}

void compare_tuning(const json& here, const json& stored, Growth& growth) {
  const json mine = here.value("tune", json{}), theirs = stored.value("tune", json{});
  if (mine == theirs) return;
  if (searches_on(mine, theirs)) {
    growth.changes.push_back(
        fmt::format("search: {} points, {} in the store", mine["budget"].dump(), theirs["budget"].dump()));
    return;
  }
  growth.refused.push_back(
      differences(mine, theirs, "tune") +
      "; how rows are tuned is declared before there are results, and rows tuned in two ways cannot be "
      "compared: submit the file " +
      under_another_name(here));
}

void compare_table(const json& here, const json& stored, Growth& growth) {
  const json mine = here.value("table", json::object()), theirs = stored.value("table", json::object());
  if (mine == theirs) return;
  const auto compare = [](const json& table) { return table.value("compare", json{}); };
  if (compare(mine) != compare(theirs))
    growth.refused.push_back(
        differences(compare(mine), compare(theirs), "table.compare") +
        "; how rows are compared is declared before there are results: submit the file " +
        under_another_name(here));
  json rest = mine, others = theirs;
  for (json* table : {&rest, &others}) {
    table->erase("compare");
    json columns = json::object();
    for (json& column : (*table)["columns"]) columns[column.value("name", "")] = column;
    (*table)["columns"] = std::move(columns);
  }
  if (const std::string what = differences(rest, others, "table"); !what.empty())
    growth.changes.push_back(what + " (the table alone: nothing runs again)");
  else if (compare(mine) == compare(theirs))
    growth.changes.emplace_back("table.columns: in another order");
}

}  // namespace

Growth growth(const SweepSpec& spec, const std::string& canonical_stored) {
  Growth growth;
  const json here = json::parse(spec.canonical), stored = json::parse(canonical_stored);
  if (here == stored) return growth;
  compare_rows(spec, here, stored, growth);
  compare_seeds(here, stored, growth);
  compare_tuning(here, stored, growth);
  compare_table(here, stored, growth);
  const auto probes = [](const json& of) { return of.value("probes", json::array()); };
  if (probes(here) != probes(stored))
    growth.changes.push_back(fmt::format(
        "probes: {} (trials that have completed are probed by 'ablate probe {}')",
        differences(json{{"probes", probes(here)}}, json{{"probes", probes(stored)}}), spec.name));
  static constexpr std::string_view kResources[] = {"gpus",        "gpus_min", "nodes",  "pack", "where",
                                                    "max_retries", "retry_on", "limits", "reuse"};
  static constexpr std::string_view kCompared[] = {"name",       "rows", "row_order", "seeds",
                                                   "seeds_rule", "tune", "table",     "probes"};
  json wanted = json::object(), had = json::object(), rest = here, others = stored;
  for (const auto key : kCompared) rest.erase(std::string{key}), others.erase(std::string{key});
  for (const auto key : kResources) {
    const std::string name{key};
    if (rest.contains(name)) wanted[name] = rest[name];
    if (others.contains(name)) had[name] = others[name];
    rest.erase(name), others.erase(name);
  }
  if (wanted != had && here.contains("tune")) {
    growth.refused.push_back(
        differences(wanted, had) +
        ": tuned rows take them from their tuning trials, which have begun with others: submit the file " +
        under_another_name(here));
  } else if (wanted != had) {
    growth.resources = true;
    growth.changes.push_back(differences(wanted, had) + " (for trials that have not started)");
  }
  if (rest != others)
    growth.refused.push_back(differences(rest, others) +
                             ": no trial would be the same; submit the file under another name");
  return growth;
}

}  // namespace abl::sweeps
