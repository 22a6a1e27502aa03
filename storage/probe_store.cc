// SPDX-License-Identifier: Apache-2.0
#include "storage/probe_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "storage/metric_store.h"
#include "storage/trial_store.h"

namespace abl::storage {
using nlohmann::json;

void ProbeStore::put(RunId run, const protocol::ProbeResult& found, std::uint32_t step,
                     const std::vector<StoredPicture>& pictures, Time now) {
  const std::string name = protocol::probe_key(found.request);
  Transaction transaction{db_, Transaction::kSavepoint};
  const auto others = db_.prepared("SELECT COUNT(*) FROM probe WHERE run_id = :run AND name <> :name")
                          .bind(":run", run)
                          .bind(":name", name)
                          .one([](const Statement& row) { return static_cast<std::size_t>(row.integer(0)); })
                          .value_or(0);
  if (others >= protocol::kMostProbes)
    throw Error{Code::kInvalidArgument,
                fmt::format("run {} already has {} probe results, which is the limit", run, others)};
  // that something is wrong now takes nothing away
  if (!found.missing.empty() &&
      db_.prepared("SELECT 1 FROM probe WHERE run_id = :run AND name = :name AND missing = ''")
          .bind(":run", run)
          .bind(":name", name)
          .one([](const Statement&) { return true; }))
    return;
  MetricStore{db_}.replace_found(run, name, step, found.values, now);
  db_.prepared("DELETE FROM probe_picture WHERE run_id = :run AND probe = :name")
      .bind(":run", run)
      .bind(":name", name)
      .run();
  db_.prepared(R"sql(INSERT OR REPLACE INTO probe (run_id, name, step, time_ms, missing, found)
                     VALUES (:run, :name, :step, :time, :missing, :found))sql")
      .bind(":run", run)
      .bind(":name", name)
      .bind(":step", std::int64_t{step})
      .bind(":time", now)
      .bind(":missing", found.missing)
      .bind(":found", protocol::to_json(found).dump(-1, ' ', false, json::error_handler_t::replace))
      .run();
  for (const StoredPicture& picture : pictures)
    db_.prepared(R"sql(INSERT OR REPLACE INTO probe_picture (run_id, probe, name, width, height, sha256, png)
                       VALUES (:run, :probe, :name, :width, :height, :sha256, :png))sql")
        .bind(":run", run)
        .bind(":probe", name)
        .bind(":name", picture.name)
        .bind(":width", std::int64_t{picture.width})
        .bind(":height", std::int64_t{picture.height})
        .bind(":sha256", picture.sha256)
        .bind_blob(":png", picture.png)
        .run();
  transaction.commit();
}

std::vector<StoredPicture> ProbeStore::pictures(RunId run, const std::string& probe, bool whole) const {
  return db_
      .prepared(R"sql(SELECT name, sha256, width, height, CASE WHEN :whole THEN png ELSE x'' END
                      FROM probe_picture WHERE run_id = :run AND probe = :probe ORDER BY name)sql")
      .bind(":run", run)
      .bind(":probe", probe)
      .bind(":whole", whole)
      .all(read_picture);
}

namespace {

/// Of the columns name, step, time_ms, missing and found.
StoredProbe read_probe(const Statement& row) {
  return {.name = row.text(0),
          .step = static_cast<std::uint32_t>(row.integer(1)),
          .time = row.time(2),
          .missing = row.text(3),
          .found_json = row.text(4)};
}

}  // namespace

std::vector<StoredProbe> ProbeStore::of(RunId run, bool whole) const {
  auto probes =
      db_.prepared("SELECT name, step, time_ms, missing, found FROM probe WHERE run_id = :run ORDER BY name")
          .bind(":run", run)
          .all(read_probe);
  for (StoredProbe& probe : probes) probe.pictures = pictures(run, probe.name, whole);
  return probes;
}

std::optional<StoredProbe> ProbeStore::find(RunId run, const std::string& name) const {
  auto probe =
      db_.prepared(
             "SELECT name, step, time_ms, missing, found FROM probe WHERE run_id = :run AND name = :name")
          .bind(":run", run)
          .bind(":name", name)
          .one(read_probe);
  if (probe) probe->pictures = pictures(run, name, true);
  return probe;
}

std::vector<protocol::ProbeRequest> ProbeStore::wanted(TrialId trial) const {
  const auto asked = db_.prepared(R"sql(
      SELECT DISTINCT s.id, s.probes FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
      WHERE st.trial_id = :trial AND st.withdrawn = 0 AND s.probes <> '' AND s.state <> 'cancelled' ORDER BY s.id)sql")
                         .bind(":trial", trial)
                         .all([](const Statement& row) { return row.text(1); });
  std::vector<protocol::ProbeRequest> wanted;
  std::set<std::string> keys;
  for (const std::string& of_sweep : asked)
    for (auto& probe : probes_of(of_sweep))
      if (keys.insert(protocol::probe_key(probe)).second) wanted.push_back(std::move(probe));
  return wanted;
}

void ProbeStore::expect_ended(RunId run) const {
  const TrialStore trials{db_};
  trials.run(run);  // throws kNotFound
  if (trials.under_way(run))
    throw Error{Code::kFailedPrecondition,
                fmt::format("run {} has not ended: probe results are stored once it has", run)};
}

void ProbeStore::copy(RunId from, RunId to, std::uint32_t up_to_step, Time now) {
  for (const StoredProbe& probe : of(from, /*whole=*/true)) {
    if (probe.step > up_to_step) continue;
    put(to, protocol::read_probe_result_text(probe.found_json), probe.step, probe.pictures, now);
  }
}

std::string why_not_probed(Database& db, SweepId sweep, std::size_t row, const std::string& metric) {
  const std::string key{protocol::probe_of_metric(metric)}, value{protocol::value_of_metric(metric)};
  struct Said {
    bool was_probed = false, is_command = false;
    std::string missing, values;
  };
  const auto all = db.prepared(R"sql(
      SELECT DISTINCT p.name IS NOT NULL, t.command_json <> '', COALESCE(p.missing, ''),
             COALESCE((SELECT group_concat(key, ', ') FROM json_each(p.found, '$.values')), '')
      FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
      LEFT JOIN probe p ON p.run_id = t.run_id AND p.name = :key
      WHERE st.sweep_id = :sweep AND st.row = :row
        AND NOT EXISTS (SELECT 1 FROM metric_summary own JOIN metric o ON o.id = own.metric_id
                        WHERE own.run_id = t.run_id AND o.name = :metric))sql")
                       .bind(":sweep", sweep)
                       .bind(":row", static_cast<std::int64_t>(row))
                       .bind(":key", key)
                       .bind(":metric", metric)
                       .all([](const Statement& line) {
                         return Said{line.integer(0) != 0, line.integer(1) != 0, line.text(2), line.text(3)};
                       });
  const auto is_open = [](const Said& said) { return !said.was_probed; };
  if (const auto open = std::ranges::find_if(all, is_open); open != all.end()) {
    if (open->is_command)
      return fmt::format(
          "not probed: its program sent no probe event named {}, or its log says why it was not kept", key);
    const auto name = db.prepared("SELECT name FROM sweep WHERE id = :sweep")
                          .bind(":sweep", sweep)
                          .one([](const Statement& line) { return line.text(0); });
    return fmt::format("not probed; 'ablate probe {}' does it", name.value_or(""));
  }
  const auto missing = std::ranges::find_if(all, [](const Said& said) { return !said.missing.empty(); });
  if (missing != all.end()) return "nothing to probe: " + missing->missing;
  if (all.empty()) return "not probed";
  return fmt::format("probe {} finds no value '{}'; it found {}", key, value, all.front().values);
}

std::string probes_json(const std::vector<protocol::ProbeRequest>& probes) {
  if (probes.empty()) return {};
  json list = json::array();
  for (const auto& probe : probes) list.push_back(protocol::to_json(probe));
  return list.dump();
}

StoredPicture read_picture(const Statement& row) {
  return {.name = row.text(0),
          .sha256 = row.text(1),
          .width = static_cast<std::uint32_t>(row.integer(2)),
          .height = static_cast<std::uint32_t>(row.integer(3)),
          .png = row.text(4)};
}

std::vector<protocol::ProbeRequest> probes_of(const std::string& text) {
  std::vector<protocol::ProbeRequest> probes;
  if (text.empty()) return probes;
  for (const json& one : json::parse(text)) try {
      probes.push_back(protocol::read_probe(one));
    } catch (const Error&) {  // of another release, which knew a probe that this one does not
    }
  return probes;
}

}  // namespace abl::storage
