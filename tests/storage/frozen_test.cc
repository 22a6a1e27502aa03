// SPDX-License-Identifier: Apache-2.0
// Results files of earlier versions, as they are kept in tests/storage/frozen, and what they are to say
// today.
#include <fmt/format.h>
#include <sqlite3.h>

#include <fstream>
#include <sstream>

#include "base/file.h"
#include "storage/schema.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

const std::filesystem::path kFrozen =
    std::filesystem::path{ABLATE_SOURCE_DIR} / "tests" / "storage" / "frozen";

/// The lines that frozen/make.py expects.
class Said {
 public:
  explicit Said(Database& db) : db_{db} {}

  std::string all() {
    for (const SweepRecord& sweep : SweepStore{db_}.list())
      sweeps_ = fmt::format("{}\n", line(sweep)) + sweeps_;
    const std::string cells = rows(R"sql(
        SELECT 'cell ' || c.sweep || '/' || c.row || '/' || c."column" || ': ' ||
               CASE WHEN k.kind = 'setting' THEN c.setting
                    ELSE 'n=' || c.n || ' mean=' || IIF(c.mean IS NULL, '-', printf('%.6g', c.mean)) || ' sd=' || IIF(c.sd IS NULL, '-', printf('%.6g', c.sd))
                         || ' diverged=' || c.diverged END
        FROM table_cell c JOIN sweep s ON s.name = c.sweep
        JOIN sweep_row r ON r.sweep_id = s.id AND r.id = c.row
        JOIN sweep_column k ON k.sweep_id = s.id AND k.name = c."column"
        ORDER BY s.id, r.position, k.position)sql");
    const std::string runs = rows(R"sql(
        SELECT 'run ' || id || ': trial ' || trial_id || ', attempt ' || attempt || ', ' || state || ', '
               || (SELECT COUNT(*) FROM point WHERE run_id = run.id) || ' points, curves ' || curves || ', log ''' ||
               rtrim((SELECT CAST(bytes AS TEXT) FROM log_chunk WHERE run_id = run.id), char(10)) || ''''
        FROM run ORDER BY id)sql");
    const std::string points = rows(R"sql(
        SELECT DISTINCT 'point ' || run || ' ' || metric || ' ' || step || ': ' || IIF(value IS NULL, kind, printf('%.6g', value))
        FROM metric_point WHERE run IN (3, 4) ORDER BY run, metric, step)sql");
    return sweeps_ + cells + runs + points;
  }

 private:
  std::string rows(const char* sql) {
    std::string text;
    for (const std::string& line : db_.prepared(sql).all([](const Statement& row) { return row.text(0); }))
      text += line + "\n";
    return text;
  }
  static std::string line(const SweepRecord& sweep) {
    std::string text = fmt::format("sweep {} {}:", sweep.name, to_text(sweep.state));
    for (const auto& [name, count] : {std::pair{"cancelled", sweep.trials.cancelled},
                                      {"completed", sweep.trials.completed},
                                      {"failed", sweep.trials.failed},
                                      {"held", sweep.trials.held},
                                      {"queued", sweep.trials.queued},
                                      {"running", sweep.trials.running}})
      if (count > 0) text += fmt::format(" {}={}", name, count);
    return text;
  }
  Database& db_;
  std::string sweeps_;
};

void load(const std::filesystem::path& sql, const std::filesystem::path& into) {
  sqlite3* raw = nullptr;
  sqlite3_open(into.c_str(), &raw);
  EXPECT_EQ(sqlite3_exec(raw, read_file(sql).c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(raw);
  sqlite3_close(raw);
}

TEST(FrozenStoreTest, EveryVersionBeforeTheNewestIsKept) {
  for (const Migration& step : migrations().first(migrations().size() - 1))
    for (const char* ending : {"sql", "expected"}) {
      const auto file = kFrozen / fmt::format("v{}.{}", step.to, ending);
      EXPECT_TRUE(std::filesystem::exists(file))
          << file << " is not there: write it with tests/storage/frozen/make.py " << step.to
          << " before the next version changes anything";
    }
}

TEST(FrozenStoreTest, AFileOfEachVersionSaysTodayWhatItSaidThen) {
  for (const Migration& step : migrations()) {
    const auto sql = kFrozen / fmt::format("v{}.sql", step.to);
    if (!std::filesystem::exists(sql)) continue;
    SCOPED_TRACE(sql);
    EXPECT_LT(std::filesystem::file_size(sql), 100'000u);
    const TemporaryFolder folder;
    load(sql, folder / "results.db");
    Database db{folder / "results.db", Database::Mode::kWrite};
    EXPECT_EQ(Said{db}.all(), read_file(kFrozen / fmt::format("v{}.expected", step.to)));
    EXPECT_EQ(db.prepared("SELECT quick_check FROM pragma_quick_check").one([](const Statement& row) {
      return row.text(0);
    }),
              "ok");
    EXPECT_TRUE(db.prepared("PRAGMA foreign_key_check").all([](const Statement&) { return 0; }).empty());
  }
}

TEST(FrozenStoreTest, AFileOfEachVersionHasTheTablesOfANewOne) {
  const TemporaryFolder folder;
  constexpr const char* kSchema = R"sql(
      SELECT m.type || ' ' || m.name || COALESCE('.' || c.name || ' ' || c.type, '')
      FROM sqlite_schema m LEFT JOIN pragma_table_info(m.name) c ON m.type IN ('table', 'view') ORDER BY m.type, m.name, c.name)sql";
  const auto schema = [&](Database& db) {
    return db.prepared(kSchema).all([](const Statement& row) { return row.text(0); });
  };
  Database fresh{folder / "fresh.db", Database::Mode::kWrite};
  for (const Migration& step : migrations()) {
    const auto sql = kFrozen / fmt::format("v{}.sql", step.to);
    if (!std::filesystem::exists(sql)) continue;
    const auto old = folder / fmt::format("v{}.db", step.to);
    load(sql, old);
    Database db{old, Database::Mode::kWrite};
    EXPECT_EQ(schema(db), schema(fresh))
        << sql << ": where that version is not released yet and has changed, delete v" << step.to
        << ".* and write them anew with tests/storage/frozen/make.py " << step.to;
  }
}

TEST(FrozenStoreTest, WorkGoesOnInAFileOfEachVersion) {
  for (const Migration& step : migrations()) {
    const auto sql = kFrozen / fmt::format("v{}.sql", step.to);
    if (!std::filesystem::exists(sql)) continue;
    SCOPED_TRACE(sql);
    const TemporaryFolder folder;
    load(sql, folder / "results.db");
    Database db{folder / "results.db", Database::Mode::kWrite};
    SweepStore sweeps{db};
    TrialStore trials{db};
    const Time now{std::chrono::hours{500'000}};
    const auto text = sweep_of("new", 1, 1, "n");
    sweeps.insert(text.sweep, text.trials, now);
    const Lease lease = trials.lease(5, "w", "w", now, now + std::chrono::seconds{30}).value();
    EXPECT_EQ(lease.run, 10u);
    trials.start(lease.run, {.total_steps = 40, .data_fingerprint = "f1"}, now);
    MetricStore{db}.append(lease.run, {{.name = "val/top1", .steps = {40}, .values = {99}, .times_ms = {0}}});
    trials.end(lease.run, {.state = RunState::kCompleted}, now);
    EXPECT_EQ(sweeps.get("first").trials.completed, 4u);
    EXPECT_EQ(sweeps.get("new").trials.queued, 1u);
  }
}

}  // namespace
}  // namespace abl::storage
