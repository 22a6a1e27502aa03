// SPDX-License-Identifier: Apache-2.0
// Makes results files for bench.py, as a scheduler would have left them, through storage/; and puts points
// into one as fast as SQLite alone does.
//   store_maker sweeps FILE [--sweeps N] [--rows N] [--seeds N] [--completed SHARE] [--failed SHARE]
//   [--points N]
//     trials of a command: of each sweep the first are completed, of which the first was probed, the next
//     have failed, the others are queued
//   store_maker points FILE [--points N] [--metrics N] [--rows-per-commit N] [--foreign-keys]
//     a bare loop of inserts; prints its seconds
#include <fmt/format.h>
#include <sqlite3.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/sha256.h"
#include "protocol/probe_results.h"
#include "storage/metric_store.h"
#include "storage/probe_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"

namespace {

using namespace abl;
using namespace std::chrono_literals;
using storage::Database;
using storage::Transaction;

struct Options {
  std::string file;
  int sweeps = 1, rows = 100, seeds = 10;
  double completed = 0, failed = 0;
  std::uint32_t points = 100;  ///< of each completed trial
  std::uint64_t all_points = 1'000'000;
  int metrics = 4;
  std::uint64_t rows_per_commit = 10'000;
  bool foreign_keys = false;
};

constexpr const char* kMetrics[] = {"loss", "accuracy"};
constexpr int kTrialsPerCommit = 1000;

storage::NewSweep sweep_of(const std::string& name, const Options& options) {
  storage::NewSweep sweep{.name = name,
                          .file = "/bench/" + name + ".yaml",
                          .text = "ablate: 1\nname: " + name + "\n",
                          .canonical = "{}",
                          .canonical_hash = sha256_hex(name)};
  sweep.columns = {{.name = "loss",
                    .heading = "loss",
                    .source = "loss",
                    .take = protocol::Take::kLast,
                    .better = protocol::Better::kLower,
                    .digits = 3},
                   {.name = "acc",
                    .heading = "accuracy",
                    .source = "accuracy",
                    .take = protocol::Take::kBest,
                    .better = protocol::Better::kHigher,
                    .digits = 2},
                   {.name = "i",
                    .heading = "i",
                    .kind = storage::Column::Kind::kSetting,
                    .source = "params.i",
                    .digits = 0}};
  for (int row = 0; row < options.rows; ++row)
    sweep.rows.push_back({.id = fmt::format("i={}", row),
                          .label = fmt::format("i={}", row),
                          .set_json = fmt::format(R"({{"params.i":{}}})", row),
                          .config_hash = sha256_hex(fmt::format("{}/{}", name, row))});
  sweep.baseline = sweep.rows.front().id;
  for (int seed = 0; seed < options.seeds; ++seed) sweep.seeds.push_back(seed);
  return sweep;
}

/// By seed, then row: the order in which they run.
std::vector<storage::NewTrial> trials_of(const std::string& name, const Options& options) {
  std::vector<storage::NewTrial> trials;
  for (int seed = 0; seed < options.seeds; ++seed)
    for (int row = 0; row < options.rows; ++row)
      trials.push_back(
          {.row = row,
           .seed_index = seed,
           .seed = seed,
           .config = fmt::format(
               R"({{"argv":["/bin/true"],"folder":"/","params":{{"i":{}}},"seed":{},"version":"1"}})", row,
               seed),
           .config_hash = sha256_hex(fmt::format("{}/{}/{}", name, row, seed)),
           .command_json = R"(["/bin/true"])",
           .reusable = false});
  return trials;
}

/// The same curve for all but where it lies, so that tables have something to say, and no two trials are
/// equal.
std::vector<storage::Series> curves(std::uint32_t points, storage::TrialId trial, Time now) {
  std::vector<storage::Series> all;
  for (const char* name : kMetrics) {
    storage::Series series{.name = name};
    const std::uint32_t steps = std::max(1U, points / static_cast<std::uint32_t>(std::size(kMetrics)));
    for (std::uint32_t step = 1; step <= steps; ++step) {
      const double falling = std::exp(-3.0 * step / steps) + 0.001 * (trial % 97) + 1e-8 * trial;
      series.steps.push_back(step);
      series.values.push_back(name == kMetrics[0] ? falling : 100 * (1 - falling / 2));
      series.times_ms.push_back(now.time_since_epoch().count() + step);
    }
    all.push_back(std::move(series));
  }
  return all;
}

/// A run of a trial that has begun.
storage::RunId start(Database& db, storage::TrialId trial, std::uint32_t points, Time now) {
  storage::TrialStore trials{db};
  const auto lease = trials.lease(trial, "bench-worker", "bench", now, now + 24h, {0});
  if (!lease) throw Error{Code::kInternal, fmt::format("trial {} cannot be leased", trial)};
  trials.start(
      lease->run,
      {.total_steps = points, .directory = fmt::format("/bench/runs/{}/1", trial), .environment_json = "{}"},
      now);
  return lease->run;
}

storage::RunId complete(Database& db, storage::TrialId trial, std::uint32_t points, Time now) {
  const storage::RunId run = start(db, trial, points, now);
  storage::MetricStore{db}.append(run, curves(points, trial, now));
  storage::MetricStore{db}.append_log(run, "done\n");
  storage::TrialStore{db}.end(run, {.state = storage::RunState::kCompleted, .exit_code = 0}, now);
  return run;
}

void fail(Database& db, storage::TrialId trial, std::uint32_t points, Time now) {
  const storage::RunId run = start(db, trial, points, now);
  storage::MetricStore{db}.append_log(run, "Traceback (most recent call last):\n");
  const bool is_memory = trial % 3 == 0;
  storage::TrialStore{db}.end(
      run,
      {.state = storage::RunState::kFailed,
       .reason =
           is_memory ? "out of memory" : fmt::format("exit code 1: unknown option --part-{}", trial % 7),
       .exit_code = 1,
       .retryable = false,
       .failure = is_memory ? protocol::FailureClass::kResources : protocol::FailureClass::kTrial},
      now);
}

/// As a probe of a ViT's attention finds it: a map of 197 tokens for each of 12 heads.
void probe(Database& db, storage::RunId run, std::uint32_t step, Time now) {
  constexpr int kHeads = 12, kTokens = 197;
  const auto places = [](int count) {
    auto names = nlohmann::json::array();
    for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
    return names;
  };
  auto values = nlohmann::json::array();
  for (int i = 0; i < kHeads * kTokens; ++i) values.push_back(1.0 / (1 + i % kTokens));
  const nlohmann::json found{{"probe", "attention"},
                             {"settings", {{"images", 1}}},
                             {"values", {{"entropy", 1.83}}},
                             {"arrays",
                              {{"map",
                                {{"axes",
                                  {{{"name", "head"}, {"places", places(kHeads)}},
                                   {{"name", "token"}, {"places", places(kTokens)}}}},
                                 {"values", values}}}}}};
  storage::ProbeStore{db}.put(run, protocol::read_probe_result_text(found.dump()), step, {}, now);
}

/// The write-ahead log is begun anew between two commits: a whole file is left, as by a writer that ends.
void make_sweeps(const Options& options) {
  Database db{options.file, Database::Mode::kWrite};
  const Time now = SystemClock{}.now();
  for (int i = 0; i < options.sweeps; ++i) {
    const std::string name = fmt::format("made-{}", i);
    const auto trials = trials_of(name, options);
    storage::SweepId sweep = 0;
    {
      Transaction transaction{db, Transaction::kImmediate};
      sweep = storage::SweepStore{db}.insert(sweep_of(name, options), trials, now).sweep;
      transaction.commit();
    }
    const auto ids =
        db.prepared(R"sql(SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep
                                       ORDER BY seed_index, row)sql")
            .bind(":sweep", sweep)
            .all([](const storage::Statement& row) { return static_cast<storage::TrialId>(row.integer(0)); });
    const auto done =
        static_cast<std::size_t>(std::llround(options.completed * static_cast<double>(ids.size())));
    const auto ended = std::min(
        ids.size(),
        done + static_cast<std::size_t>(std::llround(options.failed * static_cast<double>(ids.size()))));
    for (std::size_t first = 0; first < ended; first += kTrialsPerCommit) {
      Transaction transaction{db, Transaction::kImmediate};
      for (std::size_t j = first; j < std::min<std::size_t>(ended, first + kTrialsPerCommit); ++j) {
        if (j >= done) {
          fail(db, ids[j], options.points, now);
          continue;
        }
        const storage::RunId run = complete(db, ids[j], options.points, now);
        if (j == 0) probe(db, run, options.points, now);
      }
      transaction.commit();
      db.empty_log(10s);
    }
  }
  db.empty_log(10s);
}

/// SQLite's own words where something fails.
void check(sqlite3* db, int result) {
  if (result != SQLITE_OK && result != SQLITE_DONE && result != SQLITE_ROW)
    throw Error{Code::kInternal, sqlite3_errmsg(db)};
}

/// One run with its metrics, in the schema that there is.
void make_one_run(const Options& options) {
  Database db{options.file, Database::Mode::kWrite};
  const Time now = SystemClock{}.now();
  const Options one{.rows = 1, .seeds = 1};
  Transaction transaction{db, Transaction::kImmediate};
  storage::SweepStore{db}.insert(sweep_of("points", one), trials_of("points", one), now);
  const auto lease = storage::TrialStore{db}.lease(1, "bench-worker", "bench", now, now + 24h, {0});
  if (!lease || lease->run != 1) throw Error{Code::kInternal, "the first run of a new file is not run 1"};
  for (int i = 0; i < options.metrics; ++i)
    db.execute(fmt::format("INSERT INTO metric (id, name) VALUES ({}, 'metric-{}')", i + 1, i + 1));
  transaction.commit();
}

/// Prepared inserts, nothing else: each commit has the steps of one metric after those of another, as a batch
/// of a run has them. As durable as the product's writer, and its log as long.
double insert_points(const Options& options) {
  make_one_run(options);
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(options.file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close_v2)> db{raw, &sqlite3_close_v2};
  check(raw, opened);
  const auto execute = [&](const char* sql) {
    check(raw, sqlite3_exec(raw, sql, nullptr, nullptr, nullptr));
  };
  execute("PRAGMA synchronous = FULL");
  execute("PRAGMA wal_autocheckpoint = 16384");  // pages of 4 KiB: 64 MiB
  execute(options.foreign_keys ? "PRAGMA foreign_keys = ON" : "PRAGMA foreign_keys = OFF");
  sqlite3_stmt* prepared = nullptr;
  check(raw,
        sqlite3_prepare_v3(
            raw,
            "INSERT INTO point (run_id, metric_id, step, value, kind, time_ms) VALUES (1, ?, ?, ?, NULL, ?)",
            -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr));
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> insert{prepared, &sqlite3_finalize};

  const auto metrics = static_cast<std::uint64_t>(options.metrics);
  const std::uint64_t steps = options.all_points / metrics;
  const std::uint64_t steps_per_commit = std::max<std::uint64_t>(1, options.rows_per_commit / metrics);
  const auto begun = std::chrono::steady_clock::now();
  for (std::uint64_t first = 0; first < steps; first += steps_per_commit) {
    execute("BEGIN IMMEDIATE");
    const std::uint64_t end = std::min(steps, first + steps_per_commit);
    for (std::uint64_t metric = 1; metric <= metrics; ++metric)
      for (std::uint64_t step = first; step < end; ++step) {
        sqlite3_bind_int64(prepared, 1, static_cast<sqlite3_int64>(metric));
        sqlite3_bind_int64(prepared, 2, static_cast<sqlite3_int64>(step + 1));
        sqlite3_bind_double(prepared, 3, 1.0 / static_cast<double>(step + metric + 1));
        sqlite3_bind_int64(prepared, 4, 1'700'000'000'000 + static_cast<sqlite3_int64>(step));
        if (sqlite3_step(prepared) != SQLITE_DONE) check(raw, sqlite3_errcode(raw));
        sqlite3_reset(prepared);
      }
    execute("COMMIT");
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Makes results files for benchmarks.", "store_maker"};
  app.require_subcommand(1);
  Options options;
  auto* const sweeps = app.add_subcommand("sweeps", "Sweeps with their trials");
  sweeps->add_option("FILE", options.file)->required();
  sweeps->add_option("--sweeps", options.sweeps);
  sweeps->add_option("--rows", options.rows, "Of each sweep");
  sweeps->add_option("--seeds", options.seeds);
  sweeps->add_option("--completed", options.completed, "Share of each sweep's trials, 0 to 1");
  sweeps->add_option("--failed", options.failed, "Share of each sweep's trials, of those behind these");
  sweeps->add_option("--points", options.points, "Of each completed trial");
  auto* const points = app.add_subcommand("points", "Points of one run, by a bare loop of inserts");
  points->add_option("FILE", options.file)->required();
  points->add_option("--points", options.all_points);
  points->add_option("--metrics", options.metrics);
  points->add_option("--rows-per-commit", options.rows_per_commit);
  points->add_flag("--foreign-keys", options.foreign_keys, "Check that run and metric of each are there");
  CLI11_PARSE(app, argc, argv);
  try {
    if (*sweeps)
      make_sweeps(options);
    else
      std::cout << insert_points(options) << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "store_maker: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
