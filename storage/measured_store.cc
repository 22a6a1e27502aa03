// SPDX-License-Identifier: Apache-2.0
#include "storage/measured_store.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "storage/part_store.h"

namespace abl::storage {
namespace {

/// Each new run counts as a tenth at least: what a trial takes changes with its workers.
constexpr int kNewestRuns = 10;

/// The i-th of `some` of `all` places: all of them, or spread so that no period among them is met.
std::uint32_t some(std::uint32_t i, std::uint32_t some, std::uint32_t all) {
  if (some == all) return i;
  constexpr double kGolden = 0.6180339887498949;
  const double at = i * kGolden;
  return static_cast<std::uint32_t>((at - std::floor(at)) * all);
}

Measured read_measured(const Statement& row) {
  Measured measured{.runs = static_cast<std::uint32_t>(row.integer(0)), .seconds = row.real(1) / 1000};
  const double counted = std::min<double>(measured.runs, kNewestRuns);
  if (!row.is_null(2) && counted > 1)
    measured.deviation = std::sqrt(std::max(0.0, row.real(2)) * counted / (counted - 1)) / 1000;
  return measured;
}

}  // namespace

void MeasuredStore::note(const RunRecord& run, const TrialRecord& trial, const Went& went, Time now) {
  if (!went.took && !run.started) return;
  // a time of so many GPUs is known for that number
  if (const int slots = PartStore{db_}.slots_of(run.id); slots > 0 && slots != std::max(1, trial.gpus))
    return;
  const Milliseconds own = std::max(went.took ? *went.took : now - *run.started, Milliseconds{0});
  double whole =
      static_cast<double>(own.count()) / (1 + went.beside);  // beside others it had a part of its slot
  if (const std::uint32_t from = run.resumed_from_step.value_or(0); from > 0 && from < run.total_steps)
    whole *= static_cast<double>(run.total_steps) / (run.total_steps - from);
  std::set<std::string> hashes;
  auto& rows = db_.prepared(R"sql(
      SELECT r.config_hash, r.work_hash FROM sweep_trial st CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
      WHERE st.trial_id = :trial)sql")
                   .bind(":trial", run.trial);
  while (rows.step()) hashes.insert({rows.text(0), rows.text(1)});
  hashes.erase("");
  for (const std::string& hash : hashes)
    db_.prepared(R"sql(
        INSERT INTO measured (hash, gpus, runs, mean_ms, variance_ms2) VALUES (:hash, :gpus, 1, :took, 0)
        ON CONFLICT (hash, gpus) DO UPDATE SET
          variance_ms2 = CASE WHEN runs = 0 THEN 0 ELSE (1 - 1.0 / MIN(runs + 1, :newest))
                         * (variance_ms2 + (:took - mean_ms) * (:took - mean_ms) / MIN(runs + 1, :newest)) END,
          mean_ms = mean_ms + (:took - mean_ms) / MIN(runs + 1, :newest), runs = runs + 1)sql")
        .bind(":hash", hash)
        .bind(":gpus", trial.gpus)
        .bind(":took", whole)
        .bind(":newest", kNewestRuns)
        .run();
  if (trial.pack.empty()) return;
  db_.prepared(R"sql(
      UPDATE measured SET steps_per_second = COALESCE(NULLIF(:rate, 0), steps_per_second),
        memory_bytes = COALESCE((SELECT MAX(ms.max, COALESCE(measured.memory_bytes, 0)) FROM metric_summary ms
                                 JOIN metric m ON m.id = ms.metric_id AND m.name = :memory WHERE ms.run_id = :run), memory_bytes)
      WHERE hash = :pack AND gpus = :gpus)sql")
      .bind(":rate", run.packed_with > 0 ? 0 : run.steps_per_second)  // memory is its own beside others too
      .bind(":memory", std::string_view{protocol::metric::kMemoryBytes})
      .bind(":run", run.id)
      .bind(":pack", trial.pack)
      .bind(":gpus", trial.gpus)
      .run();
}

MeasuredStore::Packing MeasuredStore::packing(const std::string& pack, int gpus) const {
  return db_
      .prepared(R"sql(SELECT COALESCE(memory_bytes, 0), COALESCE(steps_per_second, 0), packing FROM measured
                      WHERE hash = :pack AND gpus = :gpus)sql")
      .bind(":pack", pack)
      .bind(":gpus", gpus)
      .one([](const Statement& row) {
        return Packing{.memory_bytes = row.real(0), .steps_per_second = row.real(1), .stopped = row.text(2)};
      })
      .value_or(Packing{});
}

void MeasuredStore::stop_packing(const std::string& pack, int gpus, const std::string& why) {
  db_.prepared(R"sql(
      INSERT INTO measured (hash, gpus, runs, mean_ms, packing) VALUES (:pack, :gpus, 0, 0, :why)
      ON CONFLICT (hash, gpus) DO UPDATE SET packing = :why)sql")
      .bind(":pack", pack)
      .bind(":gpus", gpus)
      .bind(":why", why)
      .run();
}

std::map<std::string, double> MeasuredStore::memories() const {
  const auto rows = db_.prepared(R"sql(
      SELECT hash, MAX(memory_bytes) FROM measured WHERE memory_bytes > 0 AND packing = '' GROUP BY hash)sql")
                        .all([](const Statement& row) {
                          return std::pair{row.text(0), row.real(1)};
                        });
  return {rows.begin(), rows.end()};
}

std::optional<Measured> MeasuredStore::find(const std::string& hash, int gpus) const {
  if (hash.empty()) return std::nullopt;
  return db_
      .prepared(
          "SELECT runs, mean_ms, variance_ms2 FROM measured WHERE hash = :hash AND gpus = :gpus AND runs > 0")
      .bind(":hash", hash)
      .bind(":gpus", gpus)
      .one(read_measured);
}

void MeasuredStore::keep(const Calibration& c) {
  db_.prepared(R"sql(
      INSERT OR REPLACE INTO calibration (device, threads, step_hash, config, time_ms, batch, step_ms, step_spread, steps, image_ms, start_ms,
        checkpoint_ms, base_bytes, train_images, val_images)
      VALUES (:device, :threads, :step_hash, :config, :time, :batch, :step, :spread, :steps, :image, :start, :checkpoint, :base, :train, :val))sql")
      .bind(":device", c.device)
      .bind(":threads", c.threads)
      .bind(":step_hash", c.step_hash)
      .bind(":config", c.config)
      .bind(":time", c.time)
      .bind(":batch", c.batch)
      .bind(":step", 1000 * c.step_seconds)
      .bind(":spread", c.step_spread)
      .bind(":steps", c.steps)
      .bind(":image", 1000 * c.image_seconds)
      .bind(":start", 1000 * c.start_seconds)
      .bind(":checkpoint", 1000 * c.checkpoint_seconds)
      .bind(":base", c.base_bytes)
      .bind(":train", c.train_images)
      .bind(":val", c.val_images)
      .run();
  db_.prepared(R"sql(DELETE FROM calibration WHERE time_ms < (SELECT time_ms FROM calibration
                     ORDER BY time_ms DESC LIMIT 1 OFFSET :most - 1))sql")
      .bind(":most", std::int64_t{kMostCalibrations})
      .run();
}

std::vector<Calibration> MeasuredStore::calibrations(std::uint32_t most) const {
  return db_
      .prepared(R"sql(
      SELECT device, threads, step_hash, config, time_ms, batch, step_ms, step_spread, steps, image_ms, start_ms, checkpoint_ms, base_bytes,
             train_images, val_images
      FROM calibration ORDER BY time_ms DESC, step_hash LIMIT :most)sql")
      .bind(":most", most)
      .all([](const Statement& row) {
        return Calibration{.device = row.text(0),
                           .threads = static_cast<int>(row.integer(1)),
                           .step_hash = row.text(2),
                           .config = row.text(3),
                           .time = row.time(4),
                           .batch = static_cast<int>(row.integer(5)),
                           .step_seconds = row.real(6) / 1000,
                           .step_spread = row.real(7),
                           .steps = static_cast<int>(row.integer(8)),
                           .image_seconds = row.real(9) / 1000,
                           .start_seconds = row.real(10) / 1000,
                           .checkpoint_seconds = row.real(11) / 1000,
                           .base_bytes = row.real(12),
                           .train_images = row.integer(13),
                           .val_images = row.integer(14)};
      });
}

void MeasuredStore::predict(const std::map<std::string, double>& seconds, int gpus) {
  for (const auto& [hash, value] : seconds)
    db_.prepared(R"sql(
        INSERT OR REPLACE INTO predicted (hash, gpus, seconds) SELECT :hash, :gpus, :seconds
        WHERE EXISTS (SELECT 1 FROM sweep_row WHERE config_hash = :hash AND config_hash <> '')
          AND NOT EXISTS (SELECT 1 FROM measured WHERE hash = :hash AND gpus = :gpus AND runs > 0))sql")
        .bind(":hash", hash)
        .bind(":gpus", gpus)
        .bind(":seconds", value)
        .run();
}

std::optional<double> MeasuredStore::predicted(const std::string& config_hash, int gpus) const {
  return db_.prepared("SELECT seconds FROM predicted WHERE hash = :hash AND gpus = :gpus")
      .bind(":hash", config_hash)
      .bind(":gpus", gpus)
      .one([](const Statement& row) { return row.real(0); });
}

std::vector<CompletedRun> MeasuredStore::completed(std::uint32_t among, std::uint32_t most) const {
  return db_
      .prepared(R"sql(
      SELECT t.config, run.worker, run.environment_json, COALESCE(run.took_ms, run.ended_ms - run.started_ms), t.gpus,
             (SELECT ms.max FROM metric_summary ms WHERE ms.run_id = run.id
              AND ms.metric_id = (SELECT id FROM metric WHERE name = :images))
      FROM (SELECT id FROM run ORDER BY id DESC LIMIT :among) newest CROSS JOIN run ON run.id = newest.id
      CROSS JOIN trial t ON t.id = run.trial_id
      WHERE run.state = 'completed' AND run.packed_with = 0 AND COALESCE(run.resumed_from_step, 0) = 0 AND COALESCE(run.took_ms, run.ended_ms - run.started_ms) > 0
        AND t.command_json = '' ORDER BY run.id DESC LIMIT :most)sql")
      .bind(":images", std::string_view{protocol::metric::kImagesPerSecond})
      .bind(":among", among)
      .bind(":most", most)
      .all([](const Statement& row) {
        return CompletedRun{.config = row.text(0),
                            .worker = row.text(1),
                            .environment_json = row.text(2),
                            .seconds = row.real(3) / 1000,
                            .gpus = static_cast<int>(row.integer(4)),
                            .fastest_images = row.real(5)};
      });
}

namespace {

/// The rows of a sweep whose trials one of it waits for.
std::vector<std::string> rows_before(Database& db, SweepId sweep, TrialId trial) {
  return db
      .prepared(R"sql(
      SELECT DISTINCT r.id FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id AND s.state <> 'completed'
      CROSS JOIN sweep_trial st ON st.trial_id = ts.source_id AND st.sweep_id = :sweep
      CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
      WHERE ts.trial_id = :trial)sql")
      .bind(":sweep", sweep)
      .bind(":trial", trial)
      .all([](const Statement& row) { return row.text(0); });
}

}  // namespace

std::vector<LeftOfRow> MeasuredStore::left(SweepId sweep, std::uint32_t queued, std::uint32_t most) const {
  std::vector<LeftOfRow> left;
  if (queued == 0) return left;
  const auto last = [&](const char* sql) {
    return db_.prepared(sql)
        .bind(":sweep", sweep)
        .one([](const Statement& row) {
          return row.is_null(0) ? 0 : static_cast<std::uint32_t>(row.integer(0)) + 1;
        })
        .value_or(0);
  };
  const std::uint32_t rows = last("SELECT MAX(position) FROM sweep_row WHERE sweep_id = :sweep"),
                      seeds = last("SELECT MAX(position) FROM sweep_seed WHERE sweep_id = :sweep");
  if (rows == 0 || seeds == 0) return left;
  const std::uint32_t some_rows = std::clamp(most / std::min(seeds, 4u), 1u, rows);
  const std::uint32_t some_seeds = std::clamp(most / some_rows, 1u, seeds);
  double seen = 0;
  std::set<std::uint32_t> positions;
  for (std::uint32_t i = 0; i < some_rows; ++i) positions.insert(some(i, some_rows, rows));
  for (const std::uint32_t position : positions) {
    LeftOfRow row;
    TrialId queued_one = 0;
    for (std::uint32_t j = 0; j < some_seeds; ++j)
      db_.prepared(R"sql(
          SELECT t.shape_id, t.gpus, t.state = 'queued' AND NOT st.withdrawn, t.id FROM sweep_trial st CROSS JOIN trial t ON t.id = st.trial_id
          WHERE st.sweep_id = :sweep AND st.row = :row AND st.seed_index = :seed)sql")
          .bind(":sweep", sweep)
          .bind(":row", position)
          .bind(":seed", some(j, some_seeds, seeds))
          .one([&](const Statement& trial) {
            row.shape = static_cast<std::uint32_t>(trial.integer(0)),
            row.gpus = static_cast<int>(trial.integer(1));
            row.waiting += static_cast<double>(trial.integer(2));
            if (j == 0) row.first = static_cast<TrialId>(trial.integer(3));
            if (trial.integer(2) != 0) queued_one = static_cast<TrialId>(trial.integer(3));
            return true;
          });
    if (queued_one != 0) row.after = rows_before(db_, sweep, queued_one);
    seen += row.waiting;
    row.stands_for_others = some_rows < rows;
    db_.prepared(
           "SELECT id, config_hash, work_hash FROM sweep_row WHERE sweep_id = :sweep AND position = :row")
        .bind(":sweep", sweep)
        .bind(":row", position)
        .one([&](const Statement& found) {
          row.id = found.text(0), row.config_hash = found.text(1), row.work_hash = found.text(2);
          return true;
        });
    left.push_back(std::move(row));
  }
  for (LeftOfRow& row : left)  // the few that are left may be among those that were not looked at
    row.waiting = seen > 0 ? row.waiting * queued / seen
                           : static_cast<double>(queued) / static_cast<double>(left.size());
  std::set<TrialId> firsts;  // rows of equal settings share their trials
  std::erase_if(left, [&](const LeftOfRow& row) { return !firsts.insert(row.first).second; });
  return left;
}

std::map<SweepId, std::vector<RunningTrial>> MeasuredStore::running() const {
  std::map<SweepId, std::vector<RunningTrial>> running;
  auto& rows = db_.prepared(R"sql(
      SELECT st.sweep_id, t.id, r.id, r.config_hash, r.work_hash, run.state = 'running', COALESCE(run.started_ms, 0), run.step, run.total_steps,
             run.steps_per_second, t.gpus, t.shape_id, run.worker
      FROM run INDEXED BY run_under_way CROSS JOIN trial t ON t.id = run.trial_id AND t.run_id = run.id
      CROSS JOIN sweep_trial st ON st.trial_id = t.id AND st.withdrawn = 0
      CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
      WHERE run.state IN ('leased', 'running'))sql");
  while (rows.step()) {
    auto& of_sweep = running[static_cast<SweepId>(rows.integer(0))];
    const auto trial = static_cast<TrialId>(rows.integer(1));
    if (!of_sweep.empty() && of_sweep.back().trial == trial) continue;  // in two rows of it
    of_sweep.push_back({.trial = trial,
                        .row = rows.text(2),
                        .config_hash = rows.text(3),
                        .work_hash = rows.text(4),
                        .started = rows.integer(5) != 0,
                        .since = rows.time(6),
                        .step = static_cast<std::uint32_t>(rows.integer(7)),
                        .total_steps = static_cast<std::uint32_t>(rows.integer(8)),
                        .steps_per_second = rows.real(9),
                        .gpus = static_cast<int>(rows.integer(10)),
                        .shape = static_cast<std::uint32_t>(rows.integer(11)),
                        .worker = rows.text(12)});
  }
  return running;
}

std::vector<OpenStanding> MeasuredStore::open(std::uint32_t most) const {
  return db_
      .prepared(R"sql(
      SELECT s.id, s.name, s.owner, s.priority, s.weight, s.max_running, n.queued, n.leased + n.running, s.preempts
      FROM sweep_count n CROSS JOIN sweep s ON s.id = n.sweep_id AND s.state = 'active'
      WHERE n.queued + n.leased + n.running > 0 ORDER BY s.priority DESC, s.id LIMIT :most)sql")
      .bind(":most", most)
      .all([](const Statement& row) {
        const auto number = [&](int column) { return static_cast<std::uint32_t>(row.integer(column)); };
        OpenStanding sweep{.id = number(0),
                           .name = row.text(1),
                           .owner = row.text(2),
                           .priority = static_cast<int>(row.integer(3)),
                           .weight = row.real(4),
                           .queued = number(6),
                           .under_way = number(7),
                           .preempts = row.integer(8) != 0};
        if (!row.is_null(5)) sweep.max_running = number(5);
        return sweep;
      });
}

}  // namespace abl::storage
