// SPDX-License-Identifier: Apache-2.0
#include "storage/imported_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "storage/count_store.h"
#include "storage/metric_store.h"
#include "storage/trial_store.h"
#include "storage/tuning_store.h"

namespace abl::storage {
namespace {

using nlohmann::json;

std::string json_text(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The document that stands for a row's architecture, of which there is none but its counts.
std::string model_of(const ImportedSweep& sweep, const ImportedRow& row) {
  return row.counts.empty() ? "" : json_text({{"imported", {{"sweep", sweep.name}, {"row", row.id}}}});
}

NewRow new_row(const ImportedSweep& sweep, const ImportedRow& row) {
  return {.id = row.id,
          .label = row.label.empty() ? row.id : row.label,
          .set_json = row.set_json,
          .config_hash = sha256_hex(json_text({{"imported", row.id}, {"settings", row.set_json}})),
          .model = model_of(sweep, row),
          .paper = row.paper,
          .group = row.group,
          .baseline = row.baseline};
}

NewTrial new_trial(int row, int seed_index, const ImportedRow& of, const ImportedRun& run,
                   const std::string& sweep) {
  json config = json::parse(run.settings_json, nullptr, false);
  if (!config.is_object()) config = json::object();
  config["seed"] = run.seed;
  return {.row = row,
          .seed_index = seed_index,
          .seed = run.seed,
          .config = json_text(config),
          .config_hash = sha256_hex(json_text({{"imported", {sweep, of.id}}, {"config", config}})),
          .command_json = std::string{kImportedCommand},
          .reusable = false};
}

void expect_open(Database& db, const SweepRecord& sweep) {
  const auto refuse = [&](const std::string& why) {
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("cannot import into sweep {}: {}; give the results a sweep of their own with --sweep",
                    sweep.name, why)};
  };
  if (sweep.state != SweepState::kActive)
    refuse(fmt::format("it is {}", sweep.state == SweepState::kPaused ? "paused" : "cancelled"));
  if (!sweep.seeds_rule.empty()) refuse("a rule adds its seeds");
  if (sweep.tuning || !sweep.tunes.empty()) refuse("its rows are tuned");
  const bool has_others =
      db.prepared("SELECT 1 FROM sweep_row WHERE sweep_id = :sweep AND other_sweep <> '' LIMIT 1")
          .bind(":sweep", sweep.id)
          .one([](const Statement&) { return true; })
          .has_value();
  if (has_others) refuse("its rows take weights from other files");
}

/// Positions of the seeds of a row: a seed that the sweep has keeps its own, others get what is free.
class SeedPlaces {
 public:
  SeedPlaces(Database& db, SweepId sweep, std::optional<int> row) {
    db.prepared("SELECT position, seed FROM sweep_seed WHERE sweep_id = :sweep ORDER BY position")
        .bind(":sweep", sweep)
        .all([&](const Statement& line) {
          own_.emplace(line.integer(1), static_cast<int>(line.integer(0)));
          return true;
        });
    if (row)
      db.prepared("SELECT seed_index FROM sweep_trial WHERE sweep_id = :sweep AND row = :row")
          .bind(":sweep", sweep)
          .bind(":row", *row)
          .all([&](const Statement& line) {
            taken_.insert(static_cast<int>(line.integer(0)));
            return true;
          });
  }
  /// Of seeds that the sweep has first, since they alone have a place of their own.
  std::vector<std::pair<const ImportedRun*, int>> place(const std::vector<ImportedRun>& runs) {
    std::vector<std::pair<const ImportedRun*, int>> placed;
    for (const bool is_own : {true, false})
      for (const ImportedRun& run : runs) {
        const auto own = own_.find(run.seed);
        if ((own != own_.end()) != is_own) continue;
        placed.emplace_back(&run, is_own && taken_.insert(own->second).second ? own->second : next_free());
      }
    return placed;
  }

 private:
  int next_free() {
    while (!taken_.insert(first_free_).second) ++first_free_;
    return first_free_;
  }

  std::map<std::int64_t, int> own_;
  std::set<int> taken_;
  int first_free_ = 0;  ///< no smaller one is free
};

std::string origin_reason(const ImportedSweep& sweep) {
  return fmt::format("imported from {}", sweep.origin);
}

}  // namespace

std::optional<std::map<std::string, StoredRow>> stored_rows(Database& db, const std::string& name) {
  const auto sweep = SweepStore{db}.find(name);
  if (!sweep) return std::nullopt;
  std::map<std::string, StoredRow> rows;
  for (auto& id : db.prepared("SELECT id FROM sweep_row WHERE sweep_id = :sweep")
                      .bind(":sweep", sweep->id)
                      .all([](const Statement& line) { return line.text(0); }))
    rows[std::move(id)].is_trained = true;
  db.prepared(
        R"sql(SELECT r.id, st.seed, COALESCE(run.environment_json ->> '$.imported.content', ''), t.command_json = :imported
                    FROM sweep_trial st JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
                    JOIN trial t ON t.id = st.trial_id LEFT JOIN run ON run.id = t.run_id AND t.command_json = :imported
                    WHERE st.sweep_id = :sweep)sql")
      .bind(":sweep", sweep->id)
      .bind(":imported", kImportedCommand)
      .all([&](const Statement& line) {
        if (line.integer(3) == 0) return true;
        StoredRow& row = rows[line.text(0)];
        row.is_trained = false;
        row.contents[line.integer(1)] = line.text(2);
        return true;
      });
  return rows;
}

ResultsImport::ResultsImport(Database& db, std::string host, Time now)
    : db_{db}, host_{std::move(host)}, now_{now}, transaction_{db, Transaction::kImmediate} {}

void ResultsImport::add(const ImportedSweep& sweep) {
  const auto known = stored_rows(db_, sweep.name);
  SweepId id = 0;
  if (known) {
    const auto record = SweepStore{db_}.get_brief(sweep.name);
    id = record.id;
    extend(record, sweep, *known);
  } else {
    id = add_sweep(sweep);
  }
  TrialStore store{db_};
  for (const ImportedRow& row : sweep.rows) {
    if (!row.counts.empty()) CountStore{db_}.insert(model_of(sweep, row), row.counts);
    const int position = SweepStore{db_}.row(id, row.id).value();
    for (const ImportedRun& run : row.runs) {
      const auto trial = static_cast<TrialId>(
          db_.prepared(
                 "SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep AND row = :row AND seed = :seed")
              .bind(":sweep", id)
              .bind(":row", position)
              .bind(":seed", run.seed)
              .one([](const Statement& line) { return line.integer(0); })
              .value());
      const auto lease = store.lease(trial, "imported", host_, now_, now_ + std::chrono::hours{1});
      if (!lease) throw Error{Code::kInternal, fmt::format("trial {} cannot be completed", trial)};
      store.start(
          lease->run,
          {.environment_json = json_text({{"imported", {{"from", sweep.origin}, {"content", run.content}}}})},
          now_);
      runs_.emplace(std::tuple{sweep.name, row.id, run.seed}, Run{lease->run, origin_reason(sweep)});
    }
  }
}

SweepId ResultsImport::add_sweep(const ImportedSweep& sweep) {
  NewSweep content{.name = sweep.name,
                   .file = sweep.origin,
                   .text = fmt::format("# {}: no file made this sweep\n", origin_reason(sweep)),
                   .canonical = json_text(
                       {{"name", sweep.name}, {"table", json::parse(sweep.table_json, nullptr, false)}}),
                   .baseline = sweep.baseline,
                   .paper_heading = sweep.paper_heading,
                   .columns = sweep.columns};
  content.canonical_hash = sha256_hex(content.canonical);
  std::map<std::int64_t, int> seeds;  // -> position, in the order in which they come
  for (const ImportedRow& row : sweep.rows)
    for (const ImportedRun& run : row.runs)
      if (seeds.emplace(run.seed, static_cast<int>(seeds.size())).second) content.seeds.push_back(run.seed);
  std::vector<NewTrial> trials;
  for (const ImportedRow& row : sweep.rows) {
    const int position = static_cast<int>(content.rows.size());
    content.rows.push_back(new_row(sweep, row));
    for (const ImportedRun& run : row.runs)
      trials.push_back(new_trial(position, seeds.at(run.seed), row, run, sweep.name));
  }
  return SweepStore{db_}.insert(content, trials, now_).sweep;
}

void ResultsImport::extend(const SweepRecord& sweep, const ImportedSweep& by,
                           const std::map<std::string, StoredRow>& known) {
  expect_open(db_, sweep);
  std::vector<NewRow> rows;
  std::vector<NewTrial> trials;
  int next = static_cast<int>(known.size());
  for (const ImportedRow& row : by.rows) {
    const auto there = known.find(row.id);
    if (there != known.end() && there->second.is_trained)
      throw Error{Code::kFailedPrecondition,
                  fmt::format("row {} of sweep {} is trained here: imported values would mix with its own; "
                              "--prefix TEXT gives the imported rows other names",
                              row.id, by.name)};
    const auto position = SweepStore{db_}.row(sweep.id, row.id);
    const int at = position ? *position : next++;
    if (!position) rows.push_back(new_row(by, row));
    for (const auto& [run, index] : SeedPlaces{db_, sweep.id, position}.place(row.runs))
      trials.push_back(new_trial(at, index, row, *run, by.name));
  }
  add_rows(db_, sweep.id, rows, trials);
}

void ResultsImport::append(RunId run, const std::vector<Series>& series) {
  MetricStore{db_}.append(run, series);
}

void ResultsImport::finish() {
  TrialStore store{db_};
  for (const auto& [place, run] : runs_) {
    store.end(run.id, {.state = RunState::kCompleted}, {now_, now_});
    db_.prepared("UPDATE trial SET reason = :reason WHERE run_id = :run")
        .bind(":reason", run.reason)
        .bind(":run", run.id)
        .run();
  }
  transaction_.commit();
}

}  // namespace abl::storage
