// SPDX-License-Identifier: Apache-2.0
#include "storage/archive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "base/new_file.h"
#include "base/sha256.h"
#include "storage/metric_store.h"
#include "storage/queue_store.h"
#include "storage/schema.h"
#include "storage/sqlite_error.h"
#include "storage/store_copy.h"
#include "storage/sweep_store.h"
#include "storage/unfilled.h"

namespace abl::storage {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPointWords[] = {"all", "thin", "none"};
constexpr const char* kCheckpointWords[] = {"none", "last", "best"};
constexpr std::size_t kPieceBytes = 1 << 20;

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string{"''"} : std::string{c};
  return result + "'";
}

void remove_files(const fs::path& file) {
  std::error_code ignored;
  for (const char* part : {"", "-wal", "-shm", "-journal"}) fs::remove(file.string() + part, ignored);
}

}  // namespace

UpToDate::UpToDate(const fs::path& file, const fs::path& near) : file_{file} {
  // what cannot be read, or is no results file, is for who opens it to say
  std::error_code unknown;
  if (!fs::is_regular_file(file_, unknown)) return;
  sqlite3* raw = nullptr;
  const int opened =
      sqlite3_open_v2(file_.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> db{raw, &sqlite3_close_v2};
  if (opened != SQLITE_OK) return;
  constexpr int kPatienceMs = 10'000;
  sqlite3_busy_timeout(raw, kPatienceMs);
  FileKind kind;
  try {
    kind = file_kind(raw);
  } catch (const Error&) {
    return;
  }
  const int newest = migrations().back().to;
  if (kind.application_id != kApplicationId || kind.version >= newest)
    return;  // who opens it says what is wrong
  copy_ = near.string() + ".current";
  remove_files(copy_);
  try {
    copy_store(raw, copy_);
    const Database brought_up{copy_, Database::Mode::kWrite};
  } catch (...) {
    remove();
    throw;
  }
  remove_files(fmt::format("{}.v{}.bak", copy_.string(), kind.version));
}

UpToDate::~UpToDate() { remove(); }

void UpToDate::remove() {
  if (copy_.empty()) return;
  remove_files(copy_);
  std::error_code ignored;
  for (int version = 1; version < migrations().back().to; ++version)
    fs::remove(fmt::format("{}.v{}.bak", copy_.string(), version), ignored);
}

std::optional<ArchiveKind> archive_kind(Database& db) {
  return db.prepared("SELECT store_id, points FROM archive").one([](const Statement& row) {
    ArchiveKind kind{.of_store = row.text(0)};
    for (const auto points : {KeptPoints::kAll, KeptPoints::kThin, KeptPoints::kNone})
      if (row.text(1) == kPointWords[static_cast<int>(points)]) kind.points = points;
    return kind;
  });
}

namespace {

/// Copies chosen sweeps from the attached store `src` into the empty store that is open.
class Maker {
 public:
  Maker(Database& db, const ArchiveOptions& options) : db_{db}, options_{options} {}

  void choose(const std::vector<SweepId>& sweeps);
  void copy();
  void copy_points(Database& source);
  void copy_checkpoints(Archived& archived);
  void say_what_it_is(const std::string& store_id);
  void restore_triggers();
  std::int64_t count(const char* sql) {
    return db_.prepared(sql).one([](const Statement& row) { return row.integer(0); }).value_or(0);
  }

 private:
  std::vector<std::string> tables();
  std::vector<std::string> columns(const std::string& table);
  void copy_table(const std::string& table, const std::string& where);

  Database& db_;
  const ArchiveOptions& options_;
  std::vector<std::string> triggers_;
};

std::vector<std::string> Maker::tables() {
  return db_
      .prepared(
          "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY "
          "name")
      .all([](const Statement& row) { return row.text(0); });
}

std::vector<std::string> Maker::columns(const std::string& table) {
  return db_.prepared("SELECT name FROM pragma_table_info(:table, 'src') ORDER BY cid")
      .bind(":table", table)
      .all([](const Statement& row) { return row.text(0); });
}

void Maker::choose(const std::vector<SweepId>& sweeps) {
  db_.execute(
      "CREATE TEMP TABLE keep_sweep (id INTEGER PRIMARY KEY); CREATE TEMP TABLE keep_trial (id INTEGER "
      "PRIMARY KEY);"
      "CREATE TEMP TABLE keep_run (id INTEGER PRIMARY KEY)");
  for (const SweepId sweep : sweeps)
    db_.prepared("INSERT OR IGNORE INTO keep_sweep VALUES (:sweep)").bind(":sweep", sweep).run();
  db_.execute(R"sql(
    INSERT OR IGNORE INTO keep_trial SELECT trial_id FROM src.sweep_trial WHERE sweep_id IN (SELECT id FROM keep_sweep);
    INSERT OR IGNORE INTO keep_trial SELECT trial_id FROM src.sweep_former WHERE sweep_id IN (SELECT id FROM keep_sweep);
    INSERT OR IGNORE INTO keep_trial SELECT source_id FROM src.trial_source WHERE trial_id IN (SELECT id FROM keep_trial);
    INSERT OR IGNORE INTO keep_run SELECT run.id FROM keep_trial CROSS JOIN src.run ON run.trial_id = keep_trial.id
      WHERE run.state NOT IN ('leased', 'running'))sql");
}

void Maker::copy_table(const std::string& table, const std::string& where) {
  const std::string list = fmt::format("\"{}\"", fmt::join(columns(table), "\", \""));
  db_.execute(
      fmt::format("INSERT INTO main.{0} ({1}) SELECT {1} FROM src.{0} WHERE {2}", table, list, where));
}

void Maker::copy() {
  for (const auto& [name, sql] :
       db_.prepared("SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' ORDER BY name")
           .all([](const Statement& row) {
             return std::pair{row.text(0), row.text(1)};
           })) {
    triggers_.push_back(sql);  // what they keep is copied
    db_.execute("DROP TRIGGER main." + name);
  }
  // of a machine, of its moment, or of everything: nothing of a sweep
  static const std::set<std::string> left_out{
      "worker",  "transition", "log_chunk",        "measured",       "store",
      "archive", "point",      "checkpoint_piece", "data_pin",       "weights_pin",
      "shape",   "metric",     "model_count",      "provenance_text"};
  for (const std::string& table : tables()) {
    if (left_out.contains(table)) continue;
    if (table == "sweep" || table == "trial" || table == "run") {
      copy_table(table, fmt::format("id IN (SELECT id FROM keep_{}) ORDER BY id", table));
      continue;
    }
    std::string where;
    for (const std::string& column : columns(table))
      for (const auto& [name, kept] :
           {std::pair{"sweep_id", "keep_sweep"}, std::pair{"trial_id", "keep_trial"},
            std::pair{"source_id", "keep_trial"}, std::pair{"run_id", "keep_run"}})
        if (column == name)
          where += fmt::format("{}{} IN (SELECT id FROM {})", where.empty() ? "" : " AND ", column, kept);
    if (!where.empty()) copy_table(table, where);
  }
  copy_table("metric", "id IN (SELECT metric_id FROM main.metric_summary) ORDER BY id");
  copy_table(
      "model_count",
      "model_hash IN (SELECT model_hash FROM main.sweep_row) AND version = (SELECT MAX(o.version) FROM "
      "src.model_count o WHERE o.model_hash = model_count.model_hash AND o.mode = model_count.mode)");
  copy_table(
      "provenance_text",
      "sha256 IN (SELECT diff FROM main.sweep_provenance UNION SELECT packages FROM main.sweep_provenance)");
  copy_table("shape", "id IN (SELECT shape_id FROM main.trial) ORDER BY id");
  db_.execute(R"sql(
    UPDATE main.shape SET waiting = '';
    INSERT INTO main.data_pin (data, fingerprint, run_id)
      SELECT p.data, p.fingerprint, (SELECT MIN(r.id) FROM main.run r JOIN main.trial t ON t.id = r.trial_id
                                     WHERE t.data = p.data AND t.data_fingerprint = p.fingerprint) AS said
      FROM src.data_pin p WHERE said IS NOT NULL ORDER BY p.data;
    INSERT INTO main.weights_pin (name, sha256, run_id)
      SELECT p.name, p.sha256, (SELECT MIN(r.id) FROM main.run r JOIN main.trial_weights w ON w.trial_id = r.trial_id
                                WHERE w.name = p.name AND r.state = 'completed') AS said
      FROM src.weights_pin p WHERE said IS NOT NULL ORDER BY p.name;
    -- what is under way elsewhere waits here
    UPDATE main.trial SET state = 'queued', waiting = '', reason = '' WHERE state IN ('leased', 'running');
    UPDATE main.trial SET waiting = '', not_before_ms = 0;
    UPDATE main.trial SET run_id = (SELECT id FROM main.run WHERE trial_id = trial.id ORDER BY attempt DESC LIMIT 1)
      WHERE run_id NOT IN (SELECT id FROM main.run);
    UPDATE main.trial SET attempt = COALESCE((SELECT MAX(attempt) FROM main.run WHERE trial_id = trial.id), 0) WHERE state = 'queued';
    UPDATE main.trial SET replaced_by = NULL WHERE replaced_by NOT IN (SELECT id FROM keep_trial);
    UPDATE main.trial SET continues = NULL WHERE continues NOT IN (SELECT id FROM keep_trial);
    UPDATE main.run SET resumed_from_run = NULL WHERE resumed_from_run NOT IN (SELECT id FROM keep_run);
    UPDATE main.run SET token = '', lease_expires_ms = 0, log_bytes = 0;
    UPDATE main.sweep SET removing = NULL;
    -- of a run the newest checkpoint, and the newest that was the best
    DELETE FROM main.checkpoint
      WHERE step < (SELECT MAX(o.step) FROM main.checkpoint o WHERE o.run_id = checkpoint.run_id)
        AND (best = '' OR step < (SELECT MAX(o.step) FROM main.checkpoint o WHERE o.run_id = checkpoint.run_id AND o.best <> ''));
    UPDATE main.sweep_count SET queued = queued + leased + running, leased = 0, running = 0)sql");
}

void Maker::copy_points(Database& source) {
  if (options_.points == KeptPoints::kNone) return;
  if (options_.points == KeptPoints::kAll) return copy_table("point", "run_id IN (SELECT id FROM keep_run)");
  const auto runs = db_.prepared("SELECT id FROM keep_run ORDER BY id").all([](const Statement& row) {
    return static_cast<RunId>(row.integer(0));
  });
  auto& insert = db_.prepared(R"sql(
      INSERT OR IGNORE INTO main.point SELECT * FROM src.point
      WHERE run_id = :run AND step = :step AND metric_id = (SELECT id FROM src.metric WHERE name = :metric))sql");
  for (const RunId run : runs)
    for (const Series& series : MetricStore{source}.series(run, {}, ArchiveOptions::kThinTo))
      for (const std::uint32_t step : series.steps)
        insert.bind(":run", run).bind(":step", step).bind(":metric", series.name).run();
}

void Maker::copy_checkpoints(Archived& archived) {
  if (options_.checkpoints == KeptCheckpoints::kNone) return;
  struct File {
    RunId run;
    std::int64_t step;
    std::string host, path, sha256;
  };
  const auto read = [](const Statement& row) {
    return File{static_cast<RunId>(row.integer(0)), row.integer(1), row.text(2), row.text(3), row.text(4)};
  };
  const auto files =
      options_.checkpoints == KeptCheckpoints::kLast
          ? db_.prepared(R"sql(SELECT c.run_id, c.step, c.host, c.path, c.sha256 FROM main.checkpoint c
                               WHERE c.step = (SELECT MAX(step) FROM main.checkpoint o WHERE o.run_id = c.run_id)
                                 AND c.run_id IN (SELECT run_id FROM main.trial) ORDER BY c.run_id)sql")
                .all(read)
          : db_.prepared(R"sql(SELECT c.run_id, c.step, c.host, c.best, c.sha256 FROM main.checkpoint c
                               WHERE c.step = (SELECT MAX(step) FROM main.checkpoint o WHERE o.run_id = c.run_id AND o.best <> '')
                                 AND c.run_id IN (SELECT run_id FROM main.trial) ORDER BY c.run_id)sql")
                .all(read);
  for (const File& file : files) {
    std::ifstream in{file.host == options_.host ? file.path : "", std::ios::binary};
    Sha256 digest;
    std::string piece(kPieceBytes, '\0');
    for (int position = 0; in; ++position) {
      in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      const std::string_view bytes{piece.data(), static_cast<std::size_t>(in.gcount())};
      if (bytes.empty()) break;
      digest.update(bytes);
      db_.prepared("INSERT INTO main.checkpoint_piece VALUES (:run, :step, :position, :bytes)")
          .bind(":run", file.run)
          .bind(":step", file.step)
          .bind(":position", position)
          .bind_blob(":bytes", bytes)
          .run();
    }
    if (digest.hex() == file.sha256) {
      ++archived.checkpoints;
      continue;
    }
    archived.absent.push_back(fmt::format("{}:{}", file.host, file.path));
    db_.prepared("DELETE FROM main.checkpoint_piece WHERE run_id = :run AND step = :step")
        .bind(":run", file.run)
        .bind(":step", file.step)
        .run();
  }
}

void Maker::say_what_it_is(const std::string& store_id) {
  // another store than the one that it is of, and the same each time
  std::string names = store_id;
  for (const std::string& name :
       db_.prepared("SELECT name FROM main.sweep ORDER BY id").all([](const Statement& row) {
         return row.text(0);
       }))
    names += "/" + name;
  db_.prepared(
         "UPDATE main.store SET id = :id, due_as_of = (SELECT due_as_of FROM src.store), last_sweep = 0, "
         "last_trial = 0, last_run = 0")
      .bind(":id", sha256_hex(names).substr(0, 32))
      .run();
  db_.prepared("INSERT INTO main.archive VALUES (:store, :points, :checkpoints)")
      .bind(":store", store_id)
      .bind(":points", kPointWords[static_cast<int>(options_.points)])
      .bind(":checkpoints", kCheckpointWords[static_cast<int>(options_.checkpoints)])
      .run();
}

void Maker::restore_triggers() {
  for (const std::string& sql : triggers_) db_.execute(sql);
}

}  // namespace

Archived make_archive(const fs::path& from, const std::vector<std::string>& sweeps,
                      const ArchiveOptions& options, const fs::path& to) {
  const UpToDate current{from, to};
  Database source{current.file(), Database::Mode::kReadOnly};
  std::vector<SweepId> chosen;
  for (const std::string& sweep : sweeps) chosen.push_back(SweepStore{source}.get_brief(sweep).id);
  NewFile whole{to, {.mode = 0644}};
  const fs::path work = to.string() + ".work";
  remove_files(work);
  struct Work {
    const fs::path& file;
    ~Work() { remove_files(file); }
  } gone_at_the_end{work};
  Archived archived;
  {
    Database db{work, Database::Mode::kWrite};
    db.execute("ATTACH " + quoted(current.file().string()) + " AS src");
    Maker maker{db, options};
    db.execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF");
    {
      Transaction transaction{db, Transaction::kImmediate};
      maker.choose(chosen);
      maker.copy();
      maker.copy_points(source);
      maker.copy_checkpoints(archived);
      maker.say_what_it_is(source.store_id());
      maker.restore_triggers();
      transaction.commit();
    }
    if (maker.count("SELECT COUNT(*) FROM pragma_foreign_key_check") != 0)
      throw Error{Code::kDataLoss,
                  from.string() + ": rows without the rows they refer to; run 'ablate doctor --deep'"};
    archived.sweeps = maker.count("SELECT COUNT(*) FROM main.sweep");
    archived.trials = maker.count("SELECT COUNT(*) FROM main.trial");
    archived.completed = maker.count("SELECT COUNT(*) FROM main.trial WHERE state = 'completed'");
    archived.runs = maker.count("SELECT COUNT(*) FROM main.run");
    archived.points = maker.count("SELECT COUNT(*) FROM main.point");
    db.execute("DETACH src");
    // tables of few lines: smaller pages waste less
    db.execute(
        fmt::format("PRAGMA page_size = {}", options.checkpoints == KeptCheckpoints::kNone ? 1024 : 4096));
    db.execute("VACUUM INTO " + quoted(whole.part().string()));
  }
  whole.publish();
  std::error_code unknown;
  archived.bytes = fs::file_size(to, unknown);
  return archived;
}

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
  void refuse_conflicts();
  void map_sweeps();
  void map_trial(const Trial& trial);
  std::optional<Trial> same_as(const Trial& trial);
  static Trial read_trial(const Statement& row);
  void copy_runs(TrialId from, TrialId to);
  void copy_new_trials();
  void copy_sweeps();
  void copy_rest();
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

void Merger::refuse_conflicts() {
  std::vector<std::string> conflicts =
      db_.prepared(
             R"sql(SELECT 'sweep ' || a.name || ': another content has this name here; rename one of them (ablate rename)'
                         FROM arc.sweep a JOIN main.sweep s ON s.name = a.name WHERE s.canonical_hash <> a.canonical_hash
                         UNION ALL
                         SELECT 'data ' || a.data || ': the archive''s results are of another content (fingerprint ' || a.fingerprint || ', here ' || p.fingerprint || ')'
                         FROM arc.data_pin a JOIN main.data_pin p ON p.data = a.data WHERE p.fingerprint <> a.fingerprint
                         UNION ALL
                         SELECT 'weights ' || a.name || ': the archive''s results are of another file (SHA-256 ' || a.sha256 || ', here ' || p.sha256 || ')'
                         FROM arc.weights_pin a JOIN main.weights_pin p ON p.name = a.name WHERE p.sha256 <> a.sha256
                         UNION ALL
                         SELECT 'sweep ' || s.name || ': is being removed here' FROM arc.sweep a JOIN main.sweep s ON s.name = a.name WHERE s.removing IS NOT NULL)sql")
          .all([](const Statement& row) { return row.text(0); });
  if (!conflicts.empty())
    throw Error{Code::kAlreadyExists, fmt::format("nothing was merged:\n{}", fmt::join(conflicts, "\n"))};
}

void Merger::map_sweeps() {
  db_.execute(R"sql(
    CREATE TEMP TABLE sweep_map (there INTEGER PRIMARY KEY, here INTEGER NOT NULL, fresh INTEGER NOT NULL);
    CREATE TEMP TABLE trial_map (there INTEGER PRIMARY KEY, here INTEGER NOT NULL, fresh INTEGER NOT NULL, runs INTEGER NOT NULL);
    CREATE TEMP TABLE run_map (there INTEGER PRIMARY KEY, here INTEGER NOT NULL, attempts INTEGER NOT NULL);
    CREATE TEMP TABLE metric_map (there INTEGER PRIMARY KEY, here INTEGER NOT NULL);
    INSERT INTO main.metric (name) SELECT name FROM arc.metric WHERE name NOT IN (SELECT name FROM main.metric) ORDER BY id;
    INSERT INTO metric_map SELECT a.id, m.id FROM arc.metric a JOIN main.metric m ON m.name = a.name;
    INSERT INTO sweep_map SELECT a.id, s.id, 0 FROM arc.sweep a JOIN main.sweep s ON s.name = a.name;
    INSERT INTO sweep_map
      SELECT id, (SELECT MAX(last_sweep, COALESCE((SELECT MAX(id) FROM main.sweep), 0)) FROM main.store) + ROW_NUMBER() OVER (ORDER BY id), 1
      FROM arc.sweep WHERE id NOT IN (SELECT there FROM sweep_map))sql");
  merged_.sweeps =
      db_.prepared("SELECT name FROM arc.sweep JOIN sweep_map ON there = id AND fresh ORDER BY id")
          .all([](const Statement& row) { return row.text(0); });
  merged_.known =
      db_.prepared("SELECT name FROM arc.sweep JOIN sweep_map ON there = id AND NOT fresh ORDER BY id")
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
        ORDER BY t.state = 'completed' DESC, t.id LIMIT 1)sql")
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

void Merger::map_trial(const Trial& trial) {
  const auto same = same_as(trial);
  bool fresh = !same, runs = fresh;
  TrialId here = same ? same->id : 0;
  if (fresh) {
    here = static_cast<TrialId>(
        db_.prepared(
               R"sql(SELECT 1 + MAX((SELECT last_trial FROM main.store), COALESCE((SELECT MAX(id) FROM main.trial), 0),
                                         COALESCE((SELECT MAX(here) FROM trial_map), 0)))sql")
            .one([](const Statement& row) { return row.integer(0); })
            .value());
    ++merged_.new_trials;
  } else if (same->state == "completed" || trial.state != "completed") {
    ++merged_.there;
    if (same->state == "completed" && trial.state == "completed" && same->curves != trial.curves)
      merged_.notes.push_back(fmt::format(
          "{} was trained on both sides, with other values: those that are here stay", place_of(trial.id)));
  } else if (same->state == "leased" || same->state == "running") {
    ++merged_.there;
    merged_.notes.push_back(
        fmt::format("{} is completed in the archive and under way here: it runs on", place_of(trial.id)));
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
  copy("checkpoint", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)");
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
  const std::string fresh = "a.sweep_id IN (SELECT there FROM sweep_map WHERE fresh)";
  copy("sweep", {{"id", "(SELECT here FROM sweep_map WHERE there = a.id)"}},
       "a.id IN (SELECT there FROM sweep_map WHERE fresh) ORDER BY a.id");
  static const std::set<std::string> not_so{"sweep_count", "sweep_trial", "sweep_former"};
  copy("provenance_text", {}, "1 ORDER BY sha256", "INSERT OR IGNORE");
  std::vector<std::string> tables =
      db_.prepared(
             "SELECT name FROM main.sqlite_schema s WHERE type = 'table' AND EXISTS (SELECT 1 FROM "
             "pragma_table_info(s.name, 'main') WHERE name = 'sweep_id') "
             "ORDER BY name <> 'sweep_row', name")  // others refer to rows
          .all([](const Statement& row) { return row.text(0); });
  for (const std::string& table : tables)
    if (!not_so.contains(table)) copy(table, {{"sweep_id", kMappedSweep}}, fresh);
  copy("sweep_trial", {{"sweep_id", kMappedSweep}, {"trial_id", kMappedTrial}},
       fresh + " ORDER BY a.sweep_id, a.row, a.seed_index");
  copy("sweep_former", {{"sweep_id", kMappedSweep}, {"trial_id", kMappedTrial}}, fresh);
  db_.execute(
      "UPDATE main.sweep_count SET gpu_ms = (SELECT c.gpu_ms FROM arc.sweep_count c JOIN sweep_map m ON "
      "m.there = c.sweep_id WHERE m.here = sweep_count.sweep_id) "
      "WHERE sweep_id IN (SELECT here FROM sweep_map WHERE fresh)");
}

void Merger::copy_rest() {
  copy("model_count", {}, "1", "INSERT OR IGNORE");
  copy("data_pin", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)", "INSERT OR IGNORE");
  copy("weights_pin", {{"run_id", kMappedRun}}, "a.run_id IN (SELECT there FROM run_map)",
       "INSERT OR IGNORE");
  // another release may have marked what it knew of: the next scheduler looks at every trial again
  db_.execute("UPDATE main.store SET due_as_of = 0 WHERE due_as_of <> (SELECT due_as_of FROM arc.store)");
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
  refuse_conflicts();
  map_sweeps();
  const auto trials = db_.prepared(R"sql(
      SELECT t.id, t.config_hash, t.result_version, t.data_fingerprint, t.reusable, t.state, t.data, COALESCE(run.curves, 0)
      FROM arc.trial t LEFT JOIN arc.run ON run.id = t.run_id ORDER BY t.id)sql")
                          .all(read_trial);
  for (const Trial& trial : trials) map_trial(trial);
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
  write_checkpoints();
  return std::move(merged_);
}

}  // namespace

Merged merge_archive(Database& into, const fs::path& archive, const fs::path& checkpoints,
                     const std::string& host) {
  const UpToDate current{archive, into.file().string() + ".import"};
  {
    Database other{current.file(), Database::Mode::kReadOnly};
    if (!archive_kind(other))
      throw Error{
          Code::kInvalidArgument,
          fmt::format("{}: a results file, not an archive; make one of its sweeps: ablate archive SWEEP… "
                      "--store {} -o FILE",
                      archive.string(), archive.string())};
  }
  into.execute("ATTACH " + quoted(current.file().string()) + " AS arc");
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
