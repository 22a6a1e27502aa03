// SPDX-License-Identifier: Apache-2.0
#include "storage/worker_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/nearest_name.h"

namespace abl::storage {
namespace {

/// "gpu=h100 or a100", "host not node7".
std::string text_of(const std::string& label, const std::vector<std::string>& values) {
  std::vector<std::string> wanted, unwanted;
  for (const std::string& value : values)
    value.starts_with('!') ? unwanted.push_back(value.substr(1)) : wanted.push_back(value);
  std::string text = label;
  if (!wanted.empty()) text += "=" + any_of(wanted);
  if (!unwanted.empty()) text += " not " + any_of(unwanted);
  return text;
}

bool suits(const std::vector<std::string>& values, const std::string* label) {
  bool any = true;  // where nothing is said but what it may not be
  for (const std::string& value : values) {
    if (value.starts_with('!')) {
      if (label && *label == value.substr(1)) return false;
      continue;
    }
    if (label && *label == value) return true;
    any = false;
  }
  return any;
}

}  // namespace

bool suits(const Where& where, const Labels& labels) {
  return std::ranges::all_of(where, [&](const auto& asked) {
    const auto label = labels.find(asked.first);
    return suits(asked.second, label == labels.end() ? nullptr : &label->second);
  });
}

std::string why_nobody_suits(const Where& where, const std::vector<Labels>& workers) {
  if (std::ranges::any_of(workers, [&](const Labels& labels) { return suits(where, labels); })) return {};
  std::string all;
  for (const auto& [label, values] : where) all += (all.empty() ? "" : ", ") + text_of(label, values);
  std::set<std::string> known;
  for (const Labels& labels : workers)
    for (const auto& [label, value] : labels) known.insert(label);
  for (const auto& [label, values] : where) {
    if (known.contains(label)) continue;
    return fmt::format("no worker with {}: none has a label {}{}", all, label,
                       did_you_mean(label, {known.begin(), known.end()}));
  }
  for (const auto& [label, values] : where) {
    std::set<std::string> there;
    for (const Labels& labels : workers)
      if (const auto said = labels.find(label); said != labels.end()) there.insert(said->second);
    if (std::ranges::any_of(there, [&](const std::string& value) { return suits(values, &value); })) continue;
    constexpr std::size_t kMost = 8;
    std::vector<std::string> some{there.begin(), there.end()};
    const bool are_all = some.size() <= kMost;
    if (!are_all) some.resize(kMost);
    return fmt::format("no worker with {}: {} is {}{}", all, label, any_of(some), are_all ? "" : ", …");
  }
  return fmt::format("no worker with {}", all);
}

void WorkerStore::upsert(const WorkerRecord& worker) {
  db_.prepared(R"sql(
      INSERT INTO worker (name, host, instance, version, slots_json, data_json, weights_json, result_version,
                          allows_commands, connected, last_heartbeat_ms, trouble, labels_json)
      VALUES (:name, :host, :instance, :version, :slots, :data, :weights, :result_version, :allows_commands, :connected,
              :heartbeat, :trouble, :labels)
      ON CONFLICT (name) DO UPDATE SET host = :host, instance = :instance, version = :version, slots_json = :slots,
        data_json = :data, weights_json = :weights, result_version = :result_version, allows_commands = :allows_commands,
        connected = :connected, last_heartbeat_ms = :heartbeat, trouble = :trouble,
        labels_json = :labels)sql")
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
      .bind(":labels", nlohmann::json(worker.labels).is_null() ? "{}" : nlohmann::json(worker.labels).dump())
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

std::optional<WorkerRecord::Quarantine> WorkerStore::quarantine(const std::string& name) const {
  return db_
      .prepared(R"sql(SELECT quarantine, quarantine_until_ms, quarantine_back_off_ms FROM worker
                      WHERE name = :name AND quarantine IS NOT NULL)sql")
      .bind(":name", name)
      .one([](const Statement& row) {
        return WorkerRecord::Quarantine{row.text(0), row.time(1), Milliseconds{row.integer(2)}};
      });
}

void WorkerStore::set_quarantine(const std::string& name,
                                 const std::optional<WorkerRecord::Quarantine>& quarantine) {
  db_.prepared(
         R"sql(UPDATE worker SET quarantine = :why, quarantine_until_ms = :until, quarantine_back_off_ms = :back_off
                     WHERE name = :name)sql")
      .bind(":why", quarantine ? std::optional{quarantine->why} : std::nullopt)
      .bind(":until", quarantine ? quarantine->until : Time{})
      .bind(":back_off", std::int64_t{quarantine ? quarantine->back_off.count() : 0})
      .bind(":name", name)
      .run();
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
                             connected, last_heartbeat_ms, trouble, drained, labels_json,
                             quarantine, quarantine_until_ms, quarantine_back_off_ms FROM worker ORDER BY name)sql")
      .all([](const Statement& row) {
        using Quarantine = WorkerRecord::Quarantine;
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
                            .labels = nlohmann::json::parse(row.text(13)).get<Labels>(),
                            .drained = row.is_null(12) ? std::nullopt : std::optional{row.text(12)},
                            .quarantine = row.is_null(14)
                                              ? std::nullopt
                                              : std::optional{Quarantine{row.text(14), row.time(15),
                                                                         Milliseconds{row.integer(16)}}}};
      });
}

}  // namespace abl::storage
