// SPDX-License-Identifier: Apache-2.0
#include "sweeps/canonical.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

#include "config/json.h"
#include "protocol/checkpoint_files.h"
#include "sweeps/attributes.h"
#include "sweeps/problems.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

json column_json(const Column& column) {
  json document{{"name", column.name}, {std::string{name_of(column.kind)}, column.source}};
  add_attributes(column, column_attributes(), document);
  return document;
}

json table_json(const TableSpec& table) {
  json document{{"columns", json::array()}};
  for (const Column& column : table.columns) document["columns"].push_back(column_json(column));
  add_attributes(table, table_attributes(), document);
  if (!table.baselines.empty()) document["baselines"] = table.baselines;
  if (!table.scale.empty()) document["scale"] = table.scale;
  if (!table.notes.empty()) document["notes"] = table.notes;
  if (table.pivot) {
    document["pivot"] = {{"by", table.pivot->by}, {"columns", table.pivot->columns}};
    if (!table.pivot->with.empty()) document["pivot"]["with"] = table.pivot->with;
  }
  if (!table.show.empty()) document["show"] = table.show;
  return document;
}

}  // namespace

std::string canonical_spec(const SweepSpec& spec) {
  json rows = json::object(), order = json::array();
  for (const Row& row : spec.rows) {
    json one = row.config.empty() ? json::object() : json::parse(row.config);
    one.erase("folder");  // one for all rows: said once below
    one["label"] = row.label;
    if (!row.paper.empty()) one["paper"] = row.paper;
    for (const auto& [column, mark] : row.marks) {
      one["marks"][column]["mark"] = name_of(mark.mark);
      if (!mark.why.empty()) one["marks"][column]["why"] = mark.why;
    }
    if (!row.group.empty()) one["group"] = row.group;
    if (row.not_trained)
      one["not_trained"] = {{"kind", name_of(*row.not_trained)}, {"why", row.not_trained_why}};
    if (!row.sweep.empty()) one["sweep"] = row.sweep;
    rows[row.id] = std::move(one);
    order.push_back(row.id);
  }
  json document{{"name", spec.name},
                {"rows", std::move(rows)},
                {"row_order", std::move(order)},
                {"seeds", spec.seeds},
                {"table", table_json(spec.table)},
                {"gpus", spec.gpus},
                {"max_retries", spec.max_retries},
                {"data", spec.data}};
  if (spec.seeds_rule) document["seeds_rule"] = json::parse(spec.seeds_rule->json());
  if (spec.tune) document["tune"] = json::parse(spec.tune->json());
  if (spec.pack) document["pack"] = true;
  if (spec.split.least_gpus > 0) document["gpus_min"] = spec.split.least_gpus;
  if (spec.split.most_nodes > 0) document["nodes"] = {spec.split.least_nodes, spec.split.most_nodes};
  if (!spec.where.empty()) document["where"] = spec.where;
  if (spec.limits.any())
    document["limits"] = {{"time_s", spec.limits.time.count()}, {"stall_s", spec.limits.stall.count()}};
  if (spec.limits.log > 0) document["limits"]["log_bytes"] = spec.limits.log;
  if (spec.limits.nan_fails) document["limits"]["nan"] = "fail";
  if (!spec.retry_on.empty()) document["retry_on"] = json::parse(protocol::to_text(spec.retry_on));
  for (const auto& probe : spec.probes) document["probes"].push_back(protocol::to_json(probe));
  if (spec.command) document["reuse"] = spec.command->reuse;
  if (spec.command && !spec.command->folder.empty()) document["folder"] = spec.command->folder;
  return config::canonical_json(document);
}

namespace {

using nlohmann::json;

constexpr std::size_t kMostLines = 20;

/// Dotted path -> value of every leaf. Lists of columns go by name, other lists are leaves.
void flatten(const json& value, const std::string& path, std::map<std::string, std::string>& leaves) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) flatten(item, dotted(path, key), leaves);
  } else if (path == "table.columns") {
    for (const json& column : value) flatten(column, dotted(path, column["name"].get<std::string>()), leaves);
  } else {
    leaves[path] = config::plain_text(value);
  }
}

std::map<std::string, std::string> leaves_of(const json& spec) {
  std::map<std::string, std::string> leaves;
  flatten(spec, "", leaves);
  return leaves;
}

/// Takes rows and columns that one side lacks out of the other, with one line for each instead of one for
/// each of its keys.
void take_out_missing(json& here, json& stored, std::vector<std::string>& lines) {
  const auto take = [&lines](json& from, const json& other, const char* side) {
    std::set<std::string> missing;
    for (const auto& [id, row] : from["rows"].items()) {
      if (!other["rows"].contains(id)) missing.insert(id);
    }
    for (const std::string& id : missing) {
      from["rows"].erase(id);
      lines.push_back(fmt::format("rows.{}: only {}", id, side));
    }
    return missing.size();
  };
  const std::size_t taken = take(here, stored, "here") + take(stored, here, "in the store");
  if (taken > 0) {  // the order differs for that reason alone
    here.erase("row_order");
    stored.erase("row_order");
  }
}

}  // namespace

std::vector<std::string> difference(const std::string& canonical_here, const std::string& canonical_stored) {
  std::vector<std::string> lines;
  json here = json::parse(canonical_here), stored = json::parse(canonical_stored);
  take_out_missing(here, stored, lines);
  const auto here_leaves = leaves_of(here), stored_leaves = leaves_of(stored);
  std::set<std::string> paths;
  for (const auto& [path, value] : here_leaves) paths.insert(path);
  for (const auto& [path, value] : stored_leaves) paths.insert(path);
  const auto shown = [](const std::map<std::string, std::string>& leaves,
                        const std::string& path) -> std::string {
    const auto found = leaves.find(path);
    if (found == leaves.end())  // canonical documents leave defaults out
      return path == "folder" ? "{run_dir}" : "the default";
    return found->second.empty() ? "nothing" : found->second;
  };
  for (const std::string& path : paths) {
    const std::string ours = shown(here_leaves, path), theirs = shown(stored_leaves, path);
    if (ours != theirs && protocol::names_trial(ours) && protocol::names_trial(theirs))
      lines.push_back(fmt::format("{}: the weights of another trial here than in the store", path));
    else if (ours != theirs)
      lines.push_back(fmt::format("{}: {} here, {} in the store", path, ours, theirs));
  }
  if (lines.size() > kMostLines) {
    const std::size_t more = lines.size() - kMostLines;
    lines.resize(kMostLines);
    lines.push_back(fmt::format("and {} more difference{}", more, more == 1 ? "" : "s"));
  }
  return lines;
}

}  // namespace abl::sweeps
