// SPDX-License-Identifier: Apache-2.0
#include "storage/worker_store.h"

#include "base/nearest_name.h"

namespace abl::storage {

void WorkerStore::upsert(const WorkerRecord& worker) {
  db_.prepared(R"sql(
      INSERT INTO worker (name, host, instance, version, slots_json, data_json, weights_json, result_version,
                          allows_commands, connected, last_heartbeat_ms, trouble)
      VALUES (:name, :host, :instance, :version, :slots, :data, :weights, :result_version, :allows_commands, :connected,
              :heartbeat, :trouble)
      ON CONFLICT (name) DO UPDATE SET host = :host, instance = :instance, version = :version, slots_json = :slots,
        data_json = :data, weights_json = :weights, result_version = :result_version, allows_commands = :allows_commands,
        connected = :connected, last_heartbeat_ms = :heartbeat, trouble = :trouble)sql")
      .bind(":name", worker.name)
      .bind(":host", worker.host)
      .bind(":instance", worker.instance)
      .bind(":version", worker.version)
      .bind(":slots", worker.slots_json)
      .bind(":data", worker.data_json)
      .bind(":weights", worker.weights_json)
      .bind(":result_version", worker.result_version)
      .bind(":allows_commands", worker.allows_commands)
      .bind(":connected", worker.connected)
      .bind(":heartbeat", worker.last_heartbeat)
      .bind(":trouble", worker.trouble)
      .run();
}

void WorkerStore::heartbeat(const std::string& name, Time now, const std::string& trouble) {
  db_.prepared("UPDATE worker SET last_heartbeat_ms = :now, trouble = :trouble WHERE name = :name")
      .bind(":now", now)
      .bind(":trouble", trouble)
      .bind(":name", name)
      .run();
}

void WorkerStore::set_connected(const std::string& name, bool connected) {
  db_.prepared("UPDATE worker SET connected = :connected WHERE name = :name")
      .bind(":connected", connected)
      .bind(":name", name)
      .run();
}

void WorkerStore::disconnect_all() { db_.prepared("UPDATE worker SET connected = 0").run(); }

void WorkerStore::set_drained(const std::string& name, const std::optional<std::string>& reason) {
  db_.prepared("UPDATE worker SET drained = :reason WHERE name = :name")
      .bind(":reason", reason)
      .bind(":name", name)
      .run();
  if (db_.changes() > 0) return;
  std::vector<std::string> names;
  for (const WorkerRecord& worker : list()) names.push_back(worker.name);
  throw Error{Code::kNotFound, "unknown worker '" + name + "'" +
                                   (names.empty() ? "; none has connected yet" : did_you_mean(name, names))};
}

std::optional<std::string> WorkerStore::drained(const std::string& name) const {
  const auto reason = db_.prepared("SELECT drained FROM worker WHERE name = :name")
                          .bind(":name", name)
                          .one([](const Statement& row) {
                            return row.is_null(0) ? std::nullopt : std::optional{row.text(0)};
                          });
  return reason.value_or(std::nullopt);
}

std::vector<WorkerRecord> WorkerStore::list() const {
  return db_
      .prepared(
          R"sql(SELECT name, host, instance, version, slots_json, data_json, weights_json, result_version, allows_commands,
                             connected, last_heartbeat_ms, trouble, drained FROM worker ORDER BY name)sql")
      .all([](const Statement& row) {
        return WorkerRecord{.name = row.text(0),
                            .host = row.text(1),
                            .instance = row.text(2),
                            .version = row.text(3),
                            .slots_json = row.text(4),
                            .data_json = row.text(5),
                            .weights_json = row.text(6),
                            .result_version = static_cast<int>(row.integer(7)),
                            .allows_commands = row.integer(8) != 0,
                            .connected = row.integer(9) != 0,
                            .last_heartbeat = row.time(10),
                            .trouble = row.text(11),
                            .drained = row.is_null(12) ? std::nullopt : std::optional{row.text(12)}};
      });
}

}  // namespace abl::storage
