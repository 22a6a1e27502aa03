// SPDX-License-Identifier: Apache-2.0
#include "storage/part_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace abl::storage {
namespace {

RunPart read_part(const Statement& row) {
  return {.run = static_cast<RunId>(row.integer(0)),
          .node = static_cast<int>(row.integer(1)),
          .worker = row.text(2),
          .host = row.text(3),
          .slots = nlohmann::json::parse(row.text(4)).get<std::vector<std::uint32_t>>()};
}

}  // namespace

void PartStore::add(const RunPart& part) {
  db_.prepared(
         "INSERT INTO run_part (run_id, node, worker, host, slots) VALUES (:run, :node, :worker, :host, "
         ":slots)")
      .bind(":run", part.run)
      .bind(":node", part.node)
      .bind(":worker", part.worker)
      .bind(":host", part.host)
      .bind(":slots", fmt::format("[{}]", fmt::join(part.slots, ",")))
      .run();
}

std::vector<RunPart> PartStore::of(RunId run) const {
  return db_
      .prepared("SELECT run_id, node, worker, host, slots FROM run_part WHERE run_id = :run ORDER BY node")
      .bind(":run", run)
      .all(read_part);
}

std::vector<RunPart> PartStore::under_way_on(const std::string& worker) const {
  // by the index of the few that are under way
  return db_
      .prepared(R"sql(SELECT p.run_id, p.node, p.worker, p.host, p.slots
                      FROM run INDEXED BY run_under_way CROSS JOIN run_part p ON p.run_id = run.id
                      WHERE run.state IN ('leased', 'running') AND p.worker = :worker ORDER BY p.run_id)sql")
      .bind(":worker", worker)
      .all(read_part);
}

void PartStore::meet(RunId run, const std::string& rendezvous) {
  db_.prepared("UPDATE run SET rendezvous = :rendezvous WHERE id = :run")
      .bind(":rendezvous", rendezvous)
      .bind(":run", run)
      .run();
}

std::string PartStore::rendezvous(RunId run) const {
  return db_.prepared("SELECT rendezvous FROM run WHERE id = :run")
      .bind(":run", run)
      .one([](const Statement& row) { return row.text(0); })
      .value_or("");
}

int PartStore::slots_of(RunId run) const {
  return static_cast<int>(db_.prepared(R"sql(SELECT json_array_length(slots)
                           + COALESCE((SELECT SUM(json_array_length(p.slots)) FROM run_part p WHERE p.run_id = run.id), 0)
                         FROM run WHERE id = :run)sql")
                              .bind(":run", run)
                              .one([](const Statement& row) { return row.integer(0); })
                              .value_or(0));
}

}  // namespace abl::storage
