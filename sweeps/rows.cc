// SPDX-License-Identifier: Apache-2.0
#include "sweeps/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/nearest_name.h"
#include "config/document/doubts.h"
#include "config/document/result_version.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "config/recipe/recipes.h"
#include "sweeps/command.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

std::vector<Assignment> read_set(YamlReader& reader, const Node& set, const std::string& field) {
  std::vector<Assignment> assignments;
  if (!reader.is_mapping(set, field)) return assignments;
  for (const Node::Entry& entry : set.entries) {
    const std::string path = dotted(field, entry.key);
    if (entry.key == "seed") {
      reader.problems().add(entry.place, path,
                            "a row has no seeds of its own; use the seeds: key of the file");
    } else {
      assignments.push_back({entry.key, &entry.value, entry.place, path});
    }
  }
  return assignments;
}

std::map<std::string, std::string> read_paper(YamlReader& reader, const Node& paper, const std::string& field,
                                              const std::vector<Column>& columns) {
  std::map<std::string, std::string> values;
  if (!reader.is_mapping(paper, field)) return values;
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  for (const Node::Entry& entry : paper.entries) {
    const std::string path = dotted(field, entry.key);
    if (std::ranges::find(names, entry.key) == names.end()) {
      reader.problems().add(entry.place, path, "the table has no such column; expected " + any_of(names),
                            nearest_name(entry.key, names));
    } else if (const auto value = reader.text(entry.value, path)) {
      values[entry.key] = *value;
    }
  }
  return values;
}

/// Problems of resolved documents. One whose cause stands in the base is told once when every row has it;
/// otherwise it names its rows.
class RowProblems {
 public:
  void add(const Origin& origin, const std::string& message, const std::string& nearest,
           const std::string& row) {
    const auto [found, is_new] =
        index_.try_emplace(fmt::format("{}\n{}", origin.field, message), found_.size());
    if (is_new) found_.push_back({origin, message, nearest, {}});
    found_[found->second].rows.push_back(row);
  }

  /// `say(origin, message, nearest)` for each.
  template <class Say>
  void report(std::size_t row_count, const Say& say) const {
    for (const auto& [origin, message, nearest, rows] : found_) {
      std::string where;
      if (origin.in_base && rows.size() < row_count) {
        where = fmt::format(" (in row {}{})", rows.front(),
                            rows.size() > 1 ? fmt::format(" and {} more", rows.size() - 1) : "");
      }
      say(origin, message + where, nearest);
    }
  }

 private:
  struct Found {
    Origin origin;
    std::string message, nearest;
    std::vector<std::string> rows;
  };
  std::vector<Found> found_;
  std::map<std::string, std::size_t> index_;
};

/// The text of a dotted key in a document with every key.
std::optional<std::string> text_in(const json& document, std::string key) {
  std::ranges::replace(key, '.', '/');
  const json::json_pointer pointer{"/" + key};
  if (!document.contains(pointer)) return {};
  return config::plain_text(document[pointer]);
}

/// The same for rows that take the same time: a step does as much whatever the learning rate, the weight
/// decay or a probability is.
std::string work_hash(json document) {
  if (const auto recipe = document.find("recipe"); recipe != document.end() && recipe->is_object())
    for (auto it = recipe->begin(); it != recipe->end();)
      it = it->is_number_float() && it.key() != "epochs" && it.key() != "eval_every" ? recipe->erase(it)
                                                                                     : std::next(it);
  return config::config_hash(config::canonical_json(document));
}

void resolve_trial(const Settings& settings, const std::vector<std::string>& columns, Row& row,
                   RowProblems& found, RowProblems& doubts) {
  std::vector<config::Problem> problems;
  const config::TrialConfig trial = config::read_trial(settings.document(), problems);
  const bool distils = problems.empty() && trial.recipe.distillation != config::Distillation::kNone;
  if (distils) row.teacher = config::canonical_model_text(config::read_teacher(trial, problems));
  for (const config::Problem& problem : problems)
    found.add(settings.origin(problem.path), problem.message, problem.nearest, row.id);
  if (!problems.empty()) return;
  for (const config::Problem& doubt : config::doubts_of(trial))
    doubts.add(settings.origin(doubt.path), doubt.message, {}, row.id);
  json document = config::canonical_document(trial);
  document.erase("seed");
  row.config = config::canonical_json(document);
  row.config_hash = config::config_hash(row.config);
  row.work_hash = work_hash(document);
  row.result_version = config::result_version(document);
  row.model = config::canonical_model_text(trial);
  row.batch = (trial.recipe.batch + trial.recipe.accumulate - 1) / trial.recipe.accumulate;
  row.more_weights = (trial.recipe.ema > 0 ? 1 : 0) + states_of(trial.recipe.optimiser) -
                     states_of(config::Optimiser::kAdamW);
  row.precision = trial.recipe.precision;
  row.weights = config::named_weights(trial.recipe);
  if (columns.empty()) return;
  const json full = config::full_document(trial);
  for (const std::string& key : columns) {
    auto text = settings.text_at(key);  // as written: layers, preset
    if (!text) text = text_in(full, key);
    if (text) row.set.try_emplace(key, *text);
  }
}

void resolve_command(const Settings& settings, const Settings& base, const Command& command,
                     const std::vector<std::string>& columns, Row& row, RowProblems& found) {
  for (const config::Problem& problem : unfillable(command, base, settings))
    found.add(settings.origin(problem.path), problem.message, {}, row.id);
  row.config =
      config::canonical_json(command_document(command, settings.document().value("params", json::object())));
  row.config_hash = config::config_hash(row.config);
  for (const std::string& key : columns) {
    if (const auto text = settings.text_at(key)) row.set.try_emplace(key, *text);
  }
}

/// What is wrong with a row's trial in what stands in `field`, or below it.
std::vector<Problem> problems_at(const std::string& field, const Settings& base, const DraftRow& row) {
  Settings own = base;
  Problems not_set{""};  // a key below what is no mapping: an error of another factor
  for (const Assignment& assignment : row.set) own.assign(assignment, not_set);
  std::vector<config::Problem> found;
  config::read_trial(own.document(), found);
  std::vector<Problem> problems;
  for (const config::Problem& problem : found) {
    const Origin origin = own.origin(problem.path);
    if (origin.field != field && !origin.field.starts_with(field + ".")) continue;
    problems.push_back({.file = {},
                        .place = origin.place,
                        .field = origin.field,
                        .message = problem.message,
                        .nearest = problem.nearest});
  }
  return problems;
}

}  // namespace

std::vector<DraftRow> read_rows(YamlReader& reader, const Node& rows, const std::vector<Column>& columns) {
  std::vector<DraftRow> drafts;
  if (!reader.is_sequence(rows, "rows")) return drafts;
  if (rows.items.empty()) reader.problems().add(rows.place, "rows", "no rows; expected at least one");
  for (std::size_t i = 0; i < rows.items.size(); ++i) {
    const Node& item = rows.items[i];
    std::string field = fmt::format("rows.{}", i + 1);
    if (!reader.is_mapping(item, field)) continue;
    DraftRow draft{.place = item.place};
    if (const Node* id = item.find("id")) {
      if (const auto text = reader.name(*id, field + ".id")) {
        draft.id = *text;
        draft.place = id->place;
        field = dotted("rows", draft.id);
      }
    } else {
      reader.problems().add(item.place, field + ".id",
                            "missing; expected a short name that no other row has");
    }
    reader.allow_only(item, field, {"id", "label", "set", "paper"});
    draft.label = draft.id;
    if (const Node* label = item.find("label"))
      draft.label = reader.text(*label, field + ".label").value_or(draft.id);
    if (const Node* set = item.find("set")) draft.set = read_set(reader, *set, field + ".set");
    if (const Node* paper = item.find("paper"))
      draft.paper = read_paper(reader, *paper, field + ".paper", columns);
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

void expect_unique_ids(const std::vector<DraftRow>& rows, const std::string& field, Problems& problems) {
  std::map<std::string, Place> first;
  for (const DraftRow& row : rows) {
    if (row.id.empty()) continue;
    const auto [found, is_new] = first.try_emplace(row.id, row.place);
    if (is_new) continue;
    problems.add(row.place, field,
                 fmt::format("duplicate row id '{}'; line {} has it already", row.id, found->second.line));
  }
}

std::vector<Row> resolve_rows(const std::vector<DraftRow>& drafts, const Settings& base,
                              const std::optional<Command>& command, const std::vector<std::string>& settings,
                              Problems& problems) {
  std::vector<Row> rows;
  RowProblems found, doubts;
  for (const DraftRow& draft : drafts) {
    Row row{.id = draft.id,
            .label = draft.label,
            .set = leaves(draft.set),
            .paper = draft.paper,
            .place = draft.place};
    Settings own = base;
    for (const Assignment& assignment : draft.set) {
      if (!command || expect_param(base, assignment, problems)) own.assign(assignment, problems);
    }
    if (command) {
      resolve_command(own, base, *command, settings, row, found);
    } else {
      resolve_trial(own, settings, row, found, doubts);
    }
    rows.push_back(std::move(row));
  }
  found.report(drafts.size(),
               [&](const Origin& origin, const std::string& message, const std::string& nearest) {
                 problems.add(origin.place, origin.field, message, nearest);
               });
  doubts.report(drafts.size(), [&](const Origin& origin, const std::string& message, const std::string&) {
    problems.doubt(origin.place, origin.field, message);
  });
  return rows;
}

void check_levels(const std::vector<LevelInRows>& levels, const Settings& base,
                  const std::optional<Command>& command, Problems& problems) {
  std::set<std::string> told;  // what is wrong with a key all of its levels have
  for (const auto& [field, first, last] : levels) {
    if (command) {
      for (const Assignment& assignment : first.set) expect_param(base, assignment, problems);
      continue;
    }
    const auto others = problems_at(field, base, last);
    for (const Problem& problem : problems_at(field, base, first))
      if (std::ranges::any_of(others, [&](const Problem& other) { return other.text() == problem.text(); }) &&
          told.insert(problem.field + problem.message).second)
        problems.add(problem.place, problem.field, problem.message, problem.nearest);
  }
}

void check_base(const Settings& base, Problems& problems) {
  std::vector<config::Problem> found;
  config::read_trial(base.document(), found);
  for (const config::Problem& problem : found) {
    if (!base.text_at(problem.path)) continue;  // what is missing may come from the rows
    const Origin origin = base.origin(problem.path);
    problems.add(origin.place, origin.field, problem.message, problem.nearest);
  }
}

}  // namespace abl::sweeps
