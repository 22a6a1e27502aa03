// SPDX-License-Identifier: Apache-2.0
#include "sweeps/canonical.h"

#include <nlohmann/json.hpp>

#include "config/canonical_json.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

json column_json(const Column& column) {
  constexpr const char* kKinds[] = {"metric", "count", "setting"};
  return {{"name", column.name},
          {"heading", column.heading},
          {kKinds[static_cast<int>(column.kind)], column.source},
          {"take", column.take},
          {"unit", column.unit},
          {"better", column.better},
          {"digits", column.digits.value_or(2)}};
}

}  // namespace

std::string canonical_spec(const SweepSpec& spec) {
  json rows = json::object(), order = json::array(), columns = json::array();
  for (const Row& row : spec.rows) {
    json one = json::parse(row.config);
    one.erase("folder");  // one for all rows: said once below
    one["label"] = row.label;
    if (!row.paper.empty()) one["paper"] = row.paper;
    rows[row.id] = std::move(one);
    order.push_back(row.id);
  }
  for (const Column& column : spec.table.columns) columns.push_back(column_json(column));
  json document{{"name", spec.name},
                {"rows", std::move(rows)},
                {"row_order", std::move(order)},
                {"seeds", spec.seeds},
                {"table",
                 {{"baseline", spec.table.baseline},
                  {"paper_heading", spec.table.paper_heading},
                  {"columns", columns}}},
                {"gpus", spec.gpus},
                {"max_retries", spec.max_retries},
                {"data", spec.data}};
  if (spec.command) document["reuse"] = spec.command->reuse;
  if (spec.command && !spec.command->folder.empty()) document["folder"] = spec.command->folder;
  return config::canonical_json(document);
}

}  // namespace abl::sweeps
