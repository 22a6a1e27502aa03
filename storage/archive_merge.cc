// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/new_file.h"
#include "base/sha256.h"
#include "storage/archive.h"
#include "storage/archive_namesakes.h"
#include "storage/probe_store.h"
#include "storage/queue_store.h"
#include "storage/unfilled.h"
#include "storage/up_to_date.h"

namespace abl::storage {
namespace fs = std::filesystem;
namespace {

/// Brings what the attached store `arc` has into the store that is open.
class Merger {
 public:
  Merger(Database& db, fs::path checkpoints, std::string host)
      : db_{db}, checkpoints_{std::move(checkpoints)}, host_{std::move(host)} {}

  Merged merge();

 private:
  struct Trial {
    TrialId id;
    std::string config_hash;
    int version;
    std::string fingerprint;
    bool reusable;
    std::string state, data;
    std::int64_t curves;
  };
  void map_sweeps();
  bool map_trial(const Trial& trial, bool may_be_new);
  std::optional<Trial> same_as(const Trial& trial);
  static Trial read_trial(const Statement& row);
  void copy_runs(TrialId from, TrialId to);
  void copy_new_trials();
  void copy_sweeps();
  void take_growth();
  void leave_former();
  void copy_provenance();
  void copy_rest();
  void take_probes();
  void write_checkpoints();
  std::vector<std::string> columns(const std::string& table);
  /// Lines of a table of the archive: what `mapped` names is what stands there, the other columns as they
  /// are.
  void copy(const std::string& table, const std::map<std::string, std::string>& mapped,
            const std::string& where, const char* how = "INSERT");
  std::string place_of(TrialId trial);

  Database& db_;
  const fs::path checkpoints_;
  const std::string host_;
  Merged merged_;
};

constexpr const char* kMappedTrial = "(SELECT here FROM trial_map WHERE there = a.trial_id)";
constexpr const char* kMappedRun = "(SELECT here FROM run_map WHERE there = a.run_id)";
constexpr const char* kMappedSweep = "(SELECT here FROM sweep_map WHERE there = a.sweep_id)";

std::vector<std::string> Merger::columns(const std::string& table) {
  // of ours, never the archive's: it is somebody's file, and these names become part of statements
  return db_.prepared("SELECT name FROM pragma_table_info(:table, 'main') ORDER BY cid")
      .bind(":table", table)
      .all([](const Statement& row) { return row.text(0); });
}

void Merger::copy(const std::string& table, const std::map<std::string, std::string>& mapped,
                  const std::string& where, const char* how) {
  std::vector<std::string> names, values;
  for (const std::string& column : columns(table)) {
    names.push_back("\"" + column + "\"");
    const auto found = mapped.find(column);
    values.push_back(found == mapped.end() ? "a.\"" + column + "\"" : found->second);
  }
  db_.execute(fmt::format("{} INTO main.{} ({}) SELECT {} FROM arc.{} a WHERE {}", how, table,
                          fmt::join(names, ", "), fmt::join(values, ", "), table, where));
}

void Merger::map_sweeps() {
  db_.execute(R"sql(
    CREATE TEMP TABLE sweep_map (there INTEGER PRIMARY KEY, here INTEGER NOT NULL, fresh INTEGER NOT NULL, grown INTEGER NOT NULL DEFAULT 0);
    CREATE TEMP TABLE trial_map (there INTEGER PRIMARY KEY, here INTEGER NOT NULL, fresh INTEGER NOT NULL, runs INTEGER NOT NULL);
    CREATE INDEX temp.trial_map_here ON trial_map (here);
    CREATE TEMP TABLE run_map (there INTEGER PRIMARY KEY, here INTEGER NOT NULL, attempts INTEGER NOT NULL);
    CREATE TEMP TABLE metric_map (there INTEGER PRIMARY KEY, here INTEGER NOT NULL);
    INSERT INTO main.metric (name) SELECT name FROM arc.metric WHERE name NOT IN (SELECT name FROM main.metric) ORDER BY id;
    INSERT INTO metric_map SELECT a.id, m.id FROM arc.metric a JOIN main.metric m ON m.name = a.name;
    INSERT INTO sweep_map (there, here, fresh) SELECT a.id, s.id, 0 FROM arc.sweep a JOIN main.sweep s ON s.name = a.name;
    INSERT INTO sweep_map (there, here, fresh)
      SELECT id, (SELECT MAX(last_sweep, COALESCE((SELECT MAX(id) FROM main.sweep), 0)) FROM main.store) + ROW_NUMBER() OVER (ORDER BY id), 1
      FROM arc.sweep WHERE id NOT IN (SELECT there FROM sweep_map))sql");
  merged_.sweeps =
      db_.prepared("SELECT name FROM arc.sweep JOIN sweep_map ON there = id AND fresh ORDER BY id")
          .all([](const Statement& row) { return row.text(0); });
  for (const Namesake& each : namesakes(db_)) {
    if (each.grown) {
      db_.prepared(
             "UPDATE sweep_map SET grown = 1 WHERE there = (SELECT id FROM arc.sweep WHERE name = :name)")
          .bind(":name", each.name)
          .run();
      merged_.grown.push_back(each.name);
    } else {
      merged_.notes.push_back(
          fmt::format("sweep {} was extended here after the archive was made (revision {} here, {} in the "
                      "archive): it keeps its rows, and takes the archive's results for those that it has",
                      each.name, each.here, each.there));
    }
  }
  merged_.known =
      db_.prepared(
             "SELECT name FROM arc.sweep JOIN sweep_map ON there = id AND NOT fresh AND NOT grown "
             "ORDER BY id")
          .all([](const Statement& row) { return row.text(0); });
}

Merger::Trial Merger::read_trial(const Statement& row) {
  return Trial{static_cast<TrialId>(row.integer(0)),
               row.text(1),
               static_cast<int>(row.integer(2)),
               row.text(3),
               row.integer(4) != 0,
               row.text(5),
               row.text(6),
               row.integer(7)};
}

/// The trial of this store that is the archive's: one of its identity that may be shared, or what stands in
/// its place in a sweep that both have.
std::optional<Merger::Trial> Merger::same_as(const Trial& trial) {
  if (trial.reusable) {
    auto found = db_.prepared(R"sql(
        SELECT t.id, t.config_hash, t.result_version, t.data_fingerprint, t.reusable, t.state, t.data, COALESCE(run.curves, 0)
        FROM main.trial t LEFT JOIN main.run ON run.id = t.run_id
        WHERE t.reusable = 1 AND t.config_hash = :hash AND t.result_version = :version
          AND (t.data_fingerprint = :fingerprint OR t.data_fingerprint = '' OR :fingerprint = '')
        ORDER BY t.state = 'completed' DESC, t.data_fingerprint = :fingerprint DESC, t.id LIMIT 1)sql")
                     .bind(":hash", trial.config_hash)
                     .bind(":version", trial.version)
                     .bind(":fingerprint", trial.fingerprint)
                     .one(read_trial);
    if (found) return found;
  }
  return db_
      .prepared(R"sql(
      SELECT t.id, t.config_hash, t.result_version, t.data_fingerprint, t.reusable, t.state, t.data, COALESCE(run.curves, 0)
      FROM arc.sweep_trial ac
      JOIN sweep_map m ON m.there = ac.sweep_id AND NOT m.fresh
      JOIN arc.sweep_row ar ON ar.sweep_id = ac.sweep_id AND ar.position = ac.row
      JOIN main.sweep_row r ON r.sweep_id = m.here AND r.id = ar.id
      JOIN main.sweep_trial st ON st.sweep_id = m.here AND st.row = r.position AND st.seed = ac.seed
      JOIN main.trial t ON t.id = st.trial_id LEFT JOIN main.run ON run.id = t.run_id
      WHERE ac.trial_id = :trial AND t.config_hash = :hash AND t.result_version = :version LIMIT 1)sql")
      .bind(":trial", trial.id)
      .bind(":hash", trial.config_hash)
      .bind(":version", trial.version)
      .one(read_trial);
}

std::string Merger::place_of(TrialId trial) {
  return db_
      .prepared(
          R"sql(SELECT s.name || '/' || r.id || '/' || st.seed FROM arc.sweep_trial st JOIN arc.sweep s ON s.id = st.sweep_id
                            JOIN arc.sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
                            WHERE st.trial_id = :trial ORDER BY st.sweep_id, st.row LIMIT 1)sql")
      .bind(":trial", trial)
      .one([](const Statement& row) { return row.text(0); })
      .value_or(fmt::format("trial {} of the archive", trial));
}

/// Returns: whether it has a place here; a new one only where it may.
bool Merger::map_trial(const Trial& trial, bool may_be_new) {
  const auto same = same_as(trial);
  if (!same && !may_be_new) return false;
  bool fresh = !same, runs = fresh;
  const bool twice = same && db_.prepared("SELECT 1 FROM trial_map WHERE here = :here AND runs")
                                 .bind(":here", same->id)
                                 .one([](const Statement&) { return true; })
                                 .has_value();
  TrialId here = same ? same->id : 0;
  if (fresh) {
    here = static_cast<TrialId>(
        db_.prepared(
               R"sql(SELECT 1 + MAX((SELECT last_trial FROM main.store), COALESCE((SELECT MAX(id) FROM main.trial), 0),
                                         COALESCE((SELECT MAX(here) FROM trial_map), 0)))sql")
            .one([](const Statement& row) { return row.integer(0); })
            .value());
    ++merged_.new_trials;
  } else if (twice) {
    ++merged_.there;
    if (trial.state == "completed")
      merged_.notes.push_back(
          fmt::format("{}: the archive has two results for what is one trial here; the newer one was taken",
                      place_of(trial.id)));
  } else if (same->state == "completed" || trial.state != "completed") {
    ++merged_.there;
    if (same->state == "completed" && trial.state == "completed" && same->curves != trial.curves)
      merged_.notes.push_back(fmt::format(
          "{} was trained here and there, with different values: those here stay", place_of(trial.id)));
  } else if (same->state == "leased" || same->state == "running") {
    ++merged_.there;
    merged_.notes.push_back(fmt::format(
        "{} has a result in the archive and is running here: it goes on, and the archive's result "
        "is not taken",
        place_of(trial.id)));
  } else {
    runs = true;
    ++merged_.filled;
  }
  db_.prepared("INSERT INTO trial_map VALUES (:there, :here, :fresh, :runs)")
      .bind(":there", trial.id)
      .bind(":here", here)
      .bind(":fresh", fresh)
      .bind(":runs", runs)
      .run();
  return true;
}

void Merger::copy_new_trials() {
  const std::string mapped = "(SELECT here FROM trial_map WHERE there = a.{})";
  copy("trial",
       {{"id", "(SELECT here FROM trial_map WHERE there = a.id)"},
        {"run_id", "NULL"},
        {"shape_id", "NULL"},
        {"awaits", "0"},
        {"replaced_by", fmt::format(fmt::runtime(mapped), "replaced_by")},
        {"continues", fmt::format(fmt::runtime(mapped), "continues")}},
       "a.id IN (SELECT there FROM trial_map WHERE fresh) ORDER BY a.id");
  db_.execute(R"sql(
    INSERT INTO run_map
      SELECT a.id, (SELECT MAX(last_run, COALESCE((SELECT MAX(id) FROM main.run), 0)) FROM main.store) + ROW_NUMBER() OVER (ORDER BY a.id),
             COALESCE((SELECT MAX(attempt) FROM main.run r WHERE r.trial_id = t.here), 0)
      FROM arc.run a JOIN trial_map t ON t.there = a.trial_id AND t.runs)sql");
  copy("run",
       {{"id", "(SELECT here FROM run_map WHERE there = a.id)"},
        {"trial_id", kMappedTrial},
        {"attempt", "a.attempt + (SELECT attempts FROM run_map WHERE there = a.id)"},
        {"resumed_from_run", "(SELECT here FROM run_map WHERE there = a.resumed_from_run)"}},
       "a.id IN (SELECT there FROM run_map) ORDER BY a.id");
  merged_.runs = db_.changes();
  copy("metric_summary",
       {{"run_id", kMappedRun}, {"metric_id", "(SELECT here FROM metric_map WHERE there = a.metric_id)"}},
       "a.run_id IN (SELECT there FROM run_map)");
  copy("point",
       {{"run_id", kMappedRun}, {"metric_id", "(SELECT here FROM metric_map WHERE there = a.metric_id)"}},
       "a.run_id IN (SELECT there FROM run_map)");
  merged_.points = db_.changes();
  copy("point_block",
       {{"run_id", kMappedRun}, {"metric_id", "(SELECT here FROM metric_map WHERE there = a.metric_id)"}},
       "a.run_id IN (SELECT there FROM run_map)");
  copy("checkpoint", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)");
  copy("probe", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)");
  copy("probe_picture", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)");
  copy("resource_sample", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)");
  copy("resource_use", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)");
  copy("run_part", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)");
  copy("run_source",
       {{"run_id", kMappedRun},
        {"source_run", "COALESCE((SELECT here FROM run_map WHERE there = a.source_run), 0)"}},
       "a.run_id IN (SELECT there FROM run_map)");
  copy("trial_weights", {{"trial_id", kMappedTrial}},
       "a.trial_id IN (SELECT there FROM trial_map WHERE fresh)");
  copy("trial_source",
       {{"trial_id", kMappedTrial}, {"source_id", "(SELECT here FROM trial_map WHERE there = a.source_id)"}},
       "a.trial_id IN (SELECT there FROM trial_map WHERE fresh)", "INSERT OR IGNORE");
  const auto newest = [&](const char* which) {  // the archive's newest run of a trial
    db_.execute(fmt::format(R"sql(
      UPDATE main.trial SET run_id = (SELECT m.here FROM trial_map t JOIN arc.trial a ON a.id = t.there JOIN run_map m ON m.there = a.run_id
                                      WHERE t.here = trial.id AND t.runs)
      WHERE id IN (SELECT here FROM trial_map WHERE {}))sql",
                            which));
  };
  newest("fresh");
  newest("runs AND NOT fresh");
  db_.execute(R"sql(
    UPDATE main.trial SET attempt = (SELECT attempt FROM main.run WHERE id = trial.run_id), state = 'completed', reason = '', waiting = '',
           not_before_ms = 0,
           (finished_ms, data_fingerprint) = (SELECT a.finished_ms, a.data_fingerprint FROM trial_map t JOIN arc.trial a ON a.id = t.there
                                              WHERE t.here = trial.id AND t.runs)
    WHERE id IN (SELECT here FROM trial_map WHERE runs AND NOT fresh))sql");
}

void Merger::copy_sweeps() {
  const std::string fresh = "a.sweep_id IN (SELECT there FROM sweep_map WHERE fresh OR grown)";
  copy("sweep", {{"id", "(SELECT here FROM sweep_map WHERE there = a.id)"}},
       "a.id IN (SELECT there FROM sweep_map WHERE fresh) ORDER BY a.id");
  static const std::set<std::string> not_so{"sweep_count", "sweep_trial", "sweep_former", "sweep_provenance"};
  std::vector<std::string> tables =
      db_.prepared(
             "SELECT name FROM main.sqlite_schema s WHERE type = 'table' AND EXISTS (SELECT 1 FROM "
             "pragma_table_info(s.name, 'main') WHERE name = 'sweep_id') "
             "ORDER BY name <> 'sweep_row', name")  // others refer to rows
          .all([](const Statement& row) { return row.text(0); });
  const std::string grown = "(SELECT here FROM sweep_map WHERE grown)";
  db_.execute(R"sql(
    CREATE TEMP TABLE old_claim AS
      SELECT st.sweep_id, r.id AS row, r.label, st.seed, st.trial_id FROM main.sweep_trial st
      JOIN main.sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row WHERE st.sweep_id IN )sql" +
              grown);
  for (const char* table : {"sweep_trial", "sweep_former"})
    db_.execute(fmt::format("DELETE FROM main.{} WHERE sweep_id IN {}", table, grown));
  for (auto table = tables.rbegin(); table != tables.rend(); ++table)  // rows, which others refer to, last
    if (!not_so.contains(*table))
      db_.execute(fmt::format("DELETE FROM main.{} WHERE sweep_id IN {}", *table, grown));
  for (const std::string& table : tables)
    if (!not_so.contains(table))
      copy(table,
           {{"sweep_id", kMappedSweep},
            {"trial_id", kMappedTrial},
            {"by_id", "(SELECT here FROM sweep_map WHERE there = a.by_id)"}},
           fresh);
  copy("sweep_trial", {{"sweep_id", kMappedSweep}, {"trial_id", kMappedTrial}},
       fresh + " ORDER BY a.sweep_id, a.row, a.seed_index");
  copy("sweep_former", {{"sweep_id", kMappedSweep}, {"trial_id", kMappedTrial}}, fresh);
  take_growth();
  leave_former();
  copy_provenance();
  db_.execute(
      "UPDATE main.sweep_count SET gpu_ms = (SELECT c.gpu_ms FROM arc.sweep_count c JOIN sweep_map m ON "
      "m.there = c.sweep_id WHERE m.here = sweep_count.sweep_id) "
      "WHERE sweep_id IN (SELECT here FROM sweep_map WHERE fresh)");
}

/// The content of a sweep that has grown in the archive; its standing stays as it is here.
void Merger::take_growth() {
  static const std::set<std::string> standing{
      "id",          "name",        "state",    "state_ms",     "created_ms", "priority", "owner",
      "weight",      "max_running", "preempts", "breaker",      "canary",     "failures", "failed_on",
      "open_levels", "held",        "removing", "gpu_ms_limit", "until_ms",   "spent"};
  std::vector<std::string> content;
  for (const std::string& column : columns("sweep"))
    if (!standing.contains(column)) content.push_back("\"" + column + "\"");
  const std::string list = fmt::format("{}", fmt::join(content, ", "));
  db_.execute(fmt::format(R"sql(
    UPDATE main.sweep SET ({0}) = (SELECT {0} FROM arc.sweep WHERE id = (SELECT there FROM sweep_map m WHERE m.here = sweep.id))
    WHERE id IN (SELECT here FROM sweep_map WHERE grown))sql",
                          list));
  // what was its own and is no more, as where it is extended; what it has again
  db_.execute(R"sql(
    INSERT OR IGNORE INTO main.sweep_former (sweep_id, revision, row, label, seed, trial_id, version, why)
      SELECT o.sweep_id, s.revision, o.row, o.label, o.seed, o.trial_id, NULL, 'another trial came with an archive'
      FROM old_claim o JOIN main.sweep s ON s.id = o.sweep_id
      WHERE NOT EXISTS (SELECT 1 FROM main.sweep_trial st WHERE st.sweep_id = o.sweep_id AND st.trial_id = o.trial_id)
        AND NOT EXISTS (SELECT 1 FROM main.sweep_former f WHERE f.sweep_id = o.sweep_id AND f.trial_id = o.trial_id);
    UPDATE main.trial SET state = 'cancelled', waiting = '' WHERE state IN ('queued', 'held') AND id IN (SELECT trial_id FROM old_claim)
      AND NOT EXISTS (SELECT 1 FROM main.sweep_trial st WHERE st.trial_id = trial.id AND st.withdrawn = 0);
    UPDATE main.trial SET state = 'queued', reason = '', finished_ms = NULL WHERE state = 'cancelled'
      AND id IN (SELECT st.trial_id FROM main.sweep_trial st JOIN sweep_map m ON m.here = st.sweep_id AND m.grown WHERE st.withdrawn = 0);
    UPDATE main.sweep_count SET gpu_ms = MAX(gpu_ms, COALESCE((SELECT c.gpu_ms FROM arc.sweep_count c JOIN sweep_map m
      ON m.there = c.sweep_id WHERE m.here = sweep_count.sweep_id), 0)) WHERE sweep_id IN (SELECT here FROM sweep_map WHERE grown);
    DROP TABLE temp.old_claim)sql");
}

/// Trials that came and that no sweep here has in its table: no one would know them, or remove them.
void Merger::leave_former() {
  db_.execute(R"sql(
    INSERT OR IGNORE INTO main.sweep_former (sweep_id, revision, row, label, seed, trial_id, version, why)
      SELECT m.here, s.revision, r.id, r.label, c.seed, t.here, NULL, 'it came with an archive of revision ' || a.revision
      FROM sweep_map m JOIN arc.sweep a ON a.id = m.there JOIN main.sweep s ON s.id = m.here
      JOIN arc.sweep_trial c ON c.sweep_id = m.there JOIN arc.sweep_row r ON r.sweep_id = c.sweep_id AND r.position = c.row
      JOIN trial_map t ON t.there = c.trial_id AND t.fresh
      WHERE NOT m.fresh AND NOT m.grown;
    INSERT OR IGNORE INTO main.sweep_former (sweep_id, revision, row, label, seed, trial_id, version, why)
      SELECT m.here, f.revision, f.row, f.label, f.seed, t.here, f.version, f.why
      FROM sweep_map m JOIN arc.sweep_former f ON f.sweep_id = m.there JOIN trial_map t ON t.there = f.trial_id AND t.fresh
      WHERE NOT m.fresh AND NOT m.grown)sql");
}

/// Behind what is known of a sweep already: both may have trained a part of it.
void Merger::copy_provenance() {
  copy("provenance_text", {}, "1 ORDER BY sha256", "INSERT OR IGNORE");
  copy(
      "sweep_provenance",
      {{"sweep_id", kMappedSweep},
       {"position", fmt::format("a.position + COALESCE((SELECT MAX(p.position) + 1 FROM "
                                "main.sweep_provenance p WHERE p.sweep_id = {}), 0)",
                                kMappedSweep)}},
      fmt::format(
          "NOT EXISTS (SELECT 1 FROM main.sweep_provenance p WHERE p.sweep_id = {} AND p.time_ms = a.time_ms "
          "AND p.facts_json = a.facts_json) ORDER BY a.sweep_id, a.position",
          kMappedSweep));
}

void Merger::copy_rest() {
  copy("model_count", {}, "1", "INSERT OR IGNORE");
  copy("data_pin", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)", "INSERT OR IGNORE");
  copy("weights_pin", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)",
       "INSERT OR IGNORE");
  // another release may have marked what it knew of: the next scheduler looks at every trial again
  db_.execute("UPDATE main.store SET due_as_of = 0 WHERE due_as_of <> (SELECT due_as_of FROM arc.store)");
}

/// Of trials that have the same result here and there, what only the archive's runs were probed for.
void Merger::take_probes() {
  struct Found {
    RunId there, here;
    std::string name, json;
    std::uint32_t step;
    Time time;
  };
  const auto found = db_.prepared(R"sql(
      SELECT a.run_id, t.run_id, p.name, p.found, p.step, p.time_ms FROM trial_map m
      JOIN arc.trial a ON a.id = m.there AND a.state = 'completed'
      JOIN main.trial t ON t.id = m.here AND t.state = 'completed'
      JOIN arc.run theirs ON theirs.id = a.run_id JOIN main.run ours ON ours.id = t.run_id AND ours.curves = theirs.curves
      JOIN arc.probe p ON p.run_id = a.run_id
      WHERE NOT m.fresh AND NOT m.runs
        AND NOT EXISTS (SELECT 1 FROM main.probe o WHERE o.run_id = t.run_id AND o.name = p.name))sql")
                         .all([](const Statement& row) {
                           return Found{static_cast<RunId>(row.integer(0)),
                                        static_cast<RunId>(row.integer(1)),
                                        row.text(2),
                                        row.text(3),
                                        static_cast<std::uint32_t>(row.integer(4)),
                                        row.time(5)};
                         });
  for (const Found& each : found) {
    const auto pictures = db_.prepared(
                                 "SELECT name, sha256, width, height, png FROM arc.probe_picture WHERE "
                                 "run_id = :run AND probe = :name")
                              .bind(":run", each.there)
                              .bind(":name", each.name)
                              .all(read_picture);
    try {
      ProbeStore{db_}.put(each.here, protocol::read_probe_result_text(each.json), each.step, pictures,
                          each.time);
    } catch (const Error& error) {
      if (error.code() != Code::kInvalidArgument) throw;
      merged_.notes.push_back(fmt::format("probe {} of run {} of the archive is not taken: {}", each.name,
                                          each.there, error.what()));
    }
  }
}

void Merger::write_checkpoints() {
  struct Kept {
    RunId run;
    std::int64_t step;
    RunId here;
    std::string sha256;
  };
  const auto kept =
      db_.prepared(R"sql(SELECT DISTINCT p.run_id, p.step, m.here, c.sha256 FROM arc.checkpoint_piece p
                                       JOIN run_map m ON m.there = p.run_id
                                       JOIN arc.checkpoint c ON c.run_id = p.run_id AND c.step = p.step)sql")
          .all([](const Statement& row) {
            return Kept{static_cast<RunId>(row.integer(0)), row.integer(1),
                        static_cast<RunId>(row.integer(2)), row.text(3)};
          });
  for (const Kept& file : kept) {
    if (file.sha256.size() != 64 || file.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
      throw Error{Code::kDataLoss,
                  fmt::format("a checkpoint of the archive has no digest that is a SHA-256; expected 64 "
                              "hexadecimal digits")};
    const fs::path folder = checkpoints_ / file.sha256.substr(0, 16);
    fs::create_directories(folder);
    const fs::path path = folder / fmt::format("step-{}.ckpt", file.step);
    NewFile whole{path, {.mode = 0600}};
    Sha256 digest;
    auto& pieces = db_.prepared(
        "SELECT bytes FROM arc.checkpoint_piece WHERE run_id = :run AND step = :step ORDER BY position");
    pieces.bind(":run", file.run).bind(":step", file.step);
    while (pieces.step()) {
      const std::string bytes = pieces.text(0);
      digest.update(bytes);
      whole.append(bytes);
    }
    pieces.end();
    if (digest.hex() != file.sha256)
      throw Error{Code::kDataLoss,
                  fmt::format("the archive's checkpoint of run {} is not what its digest says", file.run)};
    whole.publish();
    db_.prepared(
           "UPDATE main.checkpoint SET host = :host, path = :path, best = CASE WHEN best = '' THEN '' ELSE "
           ":path END "
           "WHERE run_id = :run AND step = :step")
        .bind(":host", host_)
        .bind(":path", fs::absolute(path).string())
        .bind(":run", file.here)
        .bind(":step", file.step)
        .run();
    ++merged_.checkpoints;
  }
}

Merged Merger::merge() {
  refuse_conflicts(db_);
  map_sweeps();
  auto trials = db_.prepared(R"sql(
      SELECT t.id, t.config_hash, t.result_version, t.data_fingerprint, t.reusable, t.state, t.data, COALESCE(run.curves, 0)
      FROM arc.trial t LEFT JOIN arc.run ON run.id = t.run_id ORDER BY t.id)sql")
                    .all(read_trial);
  // of two that are one trial here the one that sweeps share gives its result; new ones in the archive's
  // order
  std::ranges::stable_sort(trials, [](const Trial& a, const Trial& b) {
    const auto rank = [](const Trial& trial) {
      return (trial.reusable ? 0 : 2) + (trial.state == "completed" ? 0 : 1);
    };
    return rank(a) < rank(b);
  });
  std::erase_if(trials, [&](const Trial& trial) { return map_trial(trial, /*may_be_new=*/false); });
  std::ranges::sort(trials, {}, &Trial::id);
  for (const Trial& trial : trials) map_trial(trial, /*may_be_new=*/true);
  copy_new_trials();
  copy_sweeps();
  copy_rest();
  const auto changed =
      db_.prepared("SELECT here, fresh FROM trial_map WHERE fresh OR runs").all([](const Statement& row) {
        return std::pair{static_cast<TrialId>(row.integer(0)), row.integer(1) != 0};
      });
  for (const auto& [trial, fresh] : changed) {
    if (fresh) QueueStore{db_}.set_shape(trial);
    note_unfilled(db_, trial);
  }
  take_probes();
  write_checkpoints();
  return std::move(merged_);
}

}  // namespace

Merged merge_archive(Database& into, const fs::path& archive, const fs::path& checkpoints,
                     const std::string& host) {
  std::error_code unknown;
  if (!fs::exists(archive, unknown))
    throw Error{
        Code::kNotFound,
        fmt::format("{}: no such file; expected an archive, which 'ablate archive' makes", archive.string())};
  const UpToDate current{archive, into.file().string() + ".import"};
  {
    Database other{current.file(), Database::Mode::kReadOnly};
    if (!archive_kind(other))
      throw Error{
          Code::kInvalidArgument,
          fmt::format("{}: not an archive but a whole results file; archive its sweeps first: ablate archive "
                      "SWEEP… --store {} -o FILE",
                      archive.string(), archive.string())};
  }
  into.prepared("ATTACH :file AS arc").bind(":file", current.file().string()).run();
  Merged merged;
  {
    Transaction transaction{into, Transaction::kImmediate};
    into.execute("PRAGMA defer_foreign_keys = ON");
    merged = Merger{into, checkpoints, host}.merge();
    transaction.commit();
  }
  for (const char* table : {"sweep_map", "trial_map", "run_map", "metric_map"})
    into.execute(fmt::format("DROP TABLE IF EXISTS temp.{}", table));
  into.execute("DETACH arc");
  return merged;
}

}  // namespace abl::storage
