// SPDX-License-Identifier: Apache-2.0
#include "storage/archive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/new_file.h"
#include "base/sha256.h"
#include "storage/metric_store.h"
#include "storage/resource_store.h"
#include "storage/sweep_store.h"
#include "storage/up_to_date.h"

namespace abl::storage {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPointWords[] = {"all", "thin", "none"};
constexpr const char* kCheckpointWords[] = {"none", "last", "best"};
constexpr std::size_t kPieceBytes = 1 << 20;

}  // namespace

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
  void thin_resources();
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
    INSERT OR IGNORE INTO keep_sweep SELECT by_id FROM src.sweep_tuning WHERE sweep_id IN (SELECT id FROM keep_sweep);
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
      "worker",  "transition", "log_chunk",        "measured",        "store",
      "archive", "point",      "checkpoint_piece", "data_pin",        "weights_pin",
      "shape",   "metric",     "model_count",      "provenance_text", "point_block"};
  for (const std::string& table : tables()) {
    if (left_out.contains(table) || (table == "sweep_provenance" && !options_.provenance)) continue;
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

/// Of what runs took of their machines as much as of their points; that over all samples stays whole.
void Maker::thin_resources() {
  if (options_.points == KeptPoints::kAll) return;
  if (options_.points == KeptPoints::kNone) return db_.execute("DELETE FROM main.resource_sample");
  for (const RunId run :
       db_.prepared("SELECT run_id FROM main.resource_use ORDER BY run_id").all([](const Statement& row) {
         return static_cast<RunId>(row.integer(0));
       }))
    ResourceStore{db_}.thin(run, ArchiveOptions::kThinTo);
}

void Maker::copy_points(Database& source) {
  if (options_.points == KeptPoints::kNone) return;
  if (options_.points == KeptPoints::kAll) {
    for (const char* table : {"point", "point_block"})
      copy_table(table, "run_id IN (SELECT id FROM keep_run)");
    return;
  }
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
  db_.prepared(
         "INSERT INTO main.archive (store_id, points, checkpoints) VALUES (:store, :points, :checkpoints)")
      .bind(":store", store_id)
      .bind(":points", kPointWords[static_cast<int>(options_.points)])
      .bind(":checkpoints", kCheckpointWords[static_cast<int>(options_.checkpoints)])
      .run();
}

void Maker::restore_triggers() {
  for (const std::string& sql : triggers_) db_.execute(sql);
}

/// The files that a diff names: "diff --git a/NAME b/NAME".
std::vector<std::string> files_of(const std::string& diff) {
  std::vector<std::string> files;
  std::istringstream lines{diff};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("diff --git ")) continue;
    const auto middle = line.find(" b/");
    const auto quoted = line.find(" \"b/");  // with characters that git writes as escapes
    files.push_back(quoted != std::string::npos   ? line.substr(quoted + 4, line.size() - quoted - 5)
                    : middle == std::string::npos ? line
                                                  : line.substr(middle + 3));
  }
  return files;
}

void note_provenance(Database& db, Archived& archived) {
  db.prepared(R"sql(
        SELECT s.name, d.bytes, p.packages IS NOT NULL FROM main.sweep_provenance p JOIN main.sweep s ON s.id = p.sweep_id
        LEFT JOIN main.provenance_text d ON d.sha256 = p.diff ORDER BY s.id, p.position)sql")
      .all([&](const Statement& row) {
        ++archived.submissions;
        archived.packages += row.integer(2);
        if (!row.is_null(1)) {
          const std::string diff = row.text(1);
          archived.diffs.push_back({.sweep = row.text(0), .bytes = diff.size(), .files = files_of(diff)});
        }
        return true;
      });
}

Archived write_archive(const fs::path& from, const std::vector<std::string>& sweeps,
                       const ArchiveOptions& options, const fs::path& to) {
  const UpToDate current{from, to};
  Database source{current.file(), Database::Mode::kReadOnly};
  std::vector<SweepId> chosen;
  for (const std::string& sweep : sweeps) chosen.push_back(SweepStore{source}.get_brief(sweep).id);
  NewFile whole{to, {.mode = 0644}};
  const fs::path work = to.string() + ".work";
  remove_database(work);
  struct Work {
    const fs::path& file;
    ~Work() { remove_database(file); }
  } gone_at_the_end{work};
  Archived archived;
  {
    Database db{work, Database::Mode::kWrite};
    db.prepared("ATTACH :file AS src").bind(":file", current.file().string()).run();
    Maker maker{db, options};
    db.execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF");
    {
      Transaction transaction{db, Transaction::kImmediate};
      maker.choose(chosen);
      maker.copy();
      maker.copy_points(source);
      maker.thin_resources();
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
    note_provenance(db, archived);
    db.execute("DETACH src");
    db.prepared("UPDATE archive SET digest = :digest").bind(":digest", content_digest(work)).run();
    // tables of few lines: smaller pages waste less
    db.execute(
        fmt::format("PRAGMA page_size = {}", options.checkpoints == KeptCheckpoints::kNone ? 1024 : 4096));
    db.prepared("VACUUM INTO :file").bind(":file", whole.part().string()).run();
  }
  whole.publish();
  std::error_code unknown;
  archived.bytes = fs::file_size(to, unknown);
  return archived;
}

}  // namespace

Archived make_archive(const fs::path& from, const std::vector<std::string>& sweeps,
                      const ArchiveOptions& options, const fs::path& to) {
  try {
    return write_archive(from, sweeps, options, to);
  } catch (const Error& error) {  // it names a file that only this knows
    if (error.code() != Code::kResourceExhausted) throw;
    throw Error{error.code(),
                fmt::format("{}: no space left for it, or for the file that it is made of; free some "
                            "space: nothing was written",
                            to.string())};
  }
}

}  // namespace abl::storage
