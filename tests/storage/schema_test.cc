// SPDX-License-Identifier: Apache-2.0
#include "storage/schema.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cmath>

#include "storage/table.h"
#include "storage/worker_store.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A store of the newest version with something in it, to be brought to one that does not exist yet.
class SchemaTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  const std::filesystem::path file = folder / "results.db";
  static inline const int kNow = migrations().back().to, kNext = kNow + 1;
  const std::filesystem::path copy = folder / fmt::format("results.db.v{}.bak", kNow);
  sqlite3* db = nullptr;

  SchemaTest() {
    Database{file, Database::Mode::kWrite}.execute("INSERT INTO metric (name) VALUES ('val/top1')");
    sqlite3_open(file.c_str(), &db);
    sqlite3_busy_timeout(db, 50);
  }
  ~SchemaTest() override { sqlite3_close(db); }

  static std::vector<Migration> with(const char* next) {
    std::vector<Migration> steps{migrations().begin(), migrations().end()};
    steps.push_back({kNext, next});
    return steps;
  }
  std::filesystem::path file_of_version(std::size_t version, const char* content) const {
    const std::filesystem::path old = folder / "old.db";
    sqlite3* raw = nullptr;
    sqlite3_open(old.c_str(), &raw);
    migrate(raw, old, migrations().first(version));
    EXPECT_EQ(sqlite3_exec(raw, content, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
    sqlite3_close(raw);
    return old;
  }
  static std::string names(const std::filesystem::path& of) {
    sqlite3* raw = nullptr;
    sqlite3_open(of.c_str(), &raw);
    std::string text = Statement{raw, "SELECT group_concat(name) FROM metric"}
                           .one([](const Statement& row) { return row.text(0); })
                           .value();
    sqlite3_close(raw);
    return text;
  }
};

TEST_F(SchemaTest, StepsAreNumberedWithoutGaps) {
  int expected = 1;
  for (const Migration& step : migrations()) EXPECT_EQ(step.to, expected++);
}

TEST_F(SchemaTest, OlderFileIsCopiedAndThenBroughtUpToDate) {
  migrate(db, file,
          with("ALTER TABLE metric ADD COLUMN help TEXT; INSERT INTO metric (name) VALUES ('new')"));
  EXPECT_EQ(file_kind(db).version, kNext);
  EXPECT_EQ(file_kind(db).application_id, kApplicationId);
  EXPECT_EQ(names(file), "new,val/top1");
  EXPECT_EQ(names(copy), "val/top1") << "the copy is the file as it was";
  Database{copy, Database::Mode::kReadOnly};
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(copy).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(SchemaTest, FileOfEveryEarlierVersionIsBroughtUpToDate) {
  for (int version = 1; version < kNow; ++version) {
    const std::filesystem::path old = folder / fmt::format("v{}.db", version);
    sqlite3* raw = nullptr;
    sqlite3_open(old.c_str(), &raw);
    migrate(raw, old, migrations().first(static_cast<std::size_t>(version)));
    sqlite3_close(raw);
    EXPECT_EQ(error_of([&] { Database{old, Database::Mode::kReadOnly}; }).first, Code::kFailedPrecondition);
    Database{old, Database::Mode::kWrite};
    EXPECT_TRUE(std::filesystem::exists(old.string() + fmt::format(".v{}.bak", version)));
    Database{old, Database::Mode::kReadOnly};
  }
}

TEST_F(SchemaTest, TrialsOfAnOlderFileSayWhichWeightsTheyNeed) {
  const std::filesystem::path old = folder / "old.db";
  sqlite3* raw = nullptr;
  sqlite3_open(old.c_str(), &raw);
  migrate(raw, old, migrations().first(2));
  const std::string trial =
      R"(INSERT INTO trial (config_hash, result_version, data_fingerprint, reusable, seed, data,
      gpus, max_retries, state, command_json, config) VALUES (hex(randomblob(8)), 1, '', 1, 0, 'd', 0, 0, 'queued', )";
  for (const char* rest :
       {R"('', '{"recipe":{"start_weights":"deit","start_sha256":"ab","teacher_weights":"regnet"}}'))",
        R"('', '{"recipe":{"epochs":1}}'))", R"('["sh"]', '{"recipe":{"start_weights":"mine"}}'))"})
    ASSERT_EQ(sqlite3_exec(raw, (trial + rest).c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(raw);
  for (const char* rest : {R"(1, '')", R"(2, '{"weights":{"regnet":"cd","deit":"xx","other":"yy"}}')",
                           R"(3, '{"weights":{"regnet":"later"}}')"})
    ASSERT_EQ(sqlite3_exec(
                  raw,
                  (std::string{"INSERT INTO run (trial_id, state, worker, host, leased_ms, lease_expires_ms, "
                               "attempt, environment_json) VALUES (1, 'completed', 'w', 'h', 0, 0, "} +
                   rest + ")")
                      .c_str(),
                  nullptr, nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(raw);
  sqlite3_close(raw);
  Database upgraded{old, Database::Mode::kWrite};
  EXPECT_EQ(
      upgraded
          .prepared("SELECT group_concat(trial_id || ' ' || name || ' ' || sha256, ', ') FROM trial_weights")
          .one([](const Statement& row) { return row.text(0); }),
      "1 deit ab, 1 regnet ");
  EXPECT_EQ(upgraded.prepared("SELECT group_concat(name || ' ' || sha256 || ' ' || run_id) FROM weights_pin")
                .one([](const Statement& row) { return row.text(0); }),
            "regnet cd 2")
      << "what the first run had, of a name that stands alone";
}

TEST_F(SchemaTest, AUnitThatASmallerMayReplaceIsSaidInAColumnOfItsOwn) {
  const std::filesystem::path old = file_of_version(4, R"sql(
      INSERT INTO sweep (id, name, file, text, canonical, canonical_hash, baseline, paper_heading, state, state_ms, priority, created_ms)
      VALUES (1, 's', 'f', 't', '{}', 'h', '', '', 'active', 0, 0, 0);
      INSERT INTO sweep_column (sweep_id, position, name, heading, kind, source, take, unit, better, digits)
      VALUES (1, 0, 'params', 'params', 'count', 'params.weights', 'last', 'M?', 'none', -1),
             (1, 1, 'flops', 'FLOPs', 'count', 'flops.macs', 'last', 'G', 'none', -1);
      )sql");
  Database upgraded{old, Database::Mode::kWrite};
  EXPECT_EQ(upgraded.prepared("SELECT group_concat(unit || ' ' || unit_fits, ', ') FROM sweep_column")
                .one([](const Statement& row) { return row.text(0); }),
            "M 1, G 0");
}

TEST_F(SchemaTest, ARunOfAnOlderFileHasTheSlotsThatItsWorkerNoted) {
  const std::filesystem::path old = file_of_version(5, R"sql(
      INSERT INTO trial (id, config_hash, result_version, data_fingerprint, reusable, config, seed, data, command_json, gpus, max_retries,
                         state)
      VALUES (1, 'h', 5, '', 1, '{}', 0, '', '', 2, 0, 'running'), (2, 'i', 5, '', 1, '{}', 0, '', '', 0, 0, 'queued');
      INSERT INTO run (id, trial_id, attempt, state, worker, host, leased_ms, lease_expires_ms)
      VALUES (1, 2, 1, 'lost', 'w', 'h', 0, 0), (2, 1, 1, 'running', 'w', 'h', 0, 0);
      INSERT INTO worker (name, host, instance, version, slots_json, data_json, result_version, allows_commands, connected,
                          last_heartbeat_ms)
      VALUES ('w', 'h', '', '', '[{"index":0,"device":"cuda:0","run":2},{"index":1,"device":"cuda:1","run":1},{"index":2,"run":2}]',
              '[]', 0, 0, 1, 0), ('idle', 'h', '', '', '[]', '[]', 0, 0, 1, 0);
      )sql");
  Database upgraded{old, Database::Mode::kWrite};
  EXPECT_THAT(TrialStore{upgraded}.slots_in_use("w"),
              testing::ElementsAre(testing::Pair(0u, testing::ElementsAre(2u)),
                                   testing::Pair(2u, testing::ElementsAre(2u))));
  EXPECT_EQ(WorkerStore{upgraded}.list()[1].slots_json,
            R"([{"index":0,"device":"cuda:0"},{"index":1,"device":"cuda:1"},{"index":2}])");
}

TEST_F(SchemaTest, OfAnOlderFilePredictionsStayForRowsThatWaitAndAnArchiveHasNoDigest) {
  const std::filesystem::path old = file_of_version(9, R"sql(
      INSERT INTO sweep (id, name, file, text, canonical, canonical_hash, baseline, paper_heading, state, state_ms, priority, created_ms)
      VALUES (1, 's', 'f', 't', '{}', 'h', '', '', 'active', 0, 0, 0);
      INSERT INTO sweep_row (sweep_id, position, id, label, set_json, config_hash, model_hash)
      VALUES (1, 0, 'a', 'a', '{}', 'h', ''), (1, 1, 'b', 'b', '{}', 'i', '');
      INSERT INTO predicted (hash, gpus, seconds) VALUES ('h', 0, 1), ('i', 0, 2), ('gone', 0, 3);
      INSERT INTO measured (hash, gpus, runs, mean_ms) VALUES ('h', 0, 1, 1000);
      INSERT INTO archive VALUES ('x', 'thin', 'none');
      )sql");
  Database upgraded{old, Database::Mode::kWrite};
  const auto text = [&](const char* sql) {
    return upgraded.prepared(sql).one([](const Statement& row) { return row.text(0); }).value_or("nothing");
  };
  EXPECT_EQ(text("SELECT group_concat(hash) FROM predicted"), "i");
  EXPECT_EQ(text("SELECT digest FROM archive"), "");
}

TEST_F(SchemaTest, RunsOfAnOlderFileHaveTheirExtremesTheirDigestAndWhatTheyLack) {
  const std::filesystem::path old = file_of_version(3, R"sql(
      INSERT INTO sweep (id, name, file, text, canonical, canonical_hash, baseline, paper_heading, state, state_ms, priority, created_ms)
      VALUES (1, 's', 'f', 't', '{}', 'h', '', '', 'active', 0, 0, 0);
      INSERT INTO sweep_row (sweep_id, position, id, label, set_json, config_hash, model_hash)
      VALUES (1, 0, 'a', 'a', '{}', 'h', ''), (1, 1, 'b', 'b', '{}', 'i', '');
      INSERT INTO sweep_column (sweep_id, position, name, heading, kind, source, take, unit, better, digits)
      VALUES (1, 0, 'fid', 'fid', 'metric', 'distance', 'best', '', 'lower', 0),
             (1, 1, 'acc', 'acc', 'metric', 'acc', 'last', '', 'none', 0);
      INSERT INTO sweep_seed (sweep_id, position, seed) VALUES (1, 0, 0);
      INSERT INTO trial (id, config_hash, result_version, data_fingerprint, reusable, config, seed, data, command_json, gpus, max_retries,
                         state)
      VALUES (1, 'h', 5, '', 1, '{}', 0, '', '', 0, 0, 'completed'), (2, 'i', 5, '', 1, '{}', 0, '', '', 0, 0, 'completed');
      INSERT INTO run (id, trial_id, attempt, state, worker, host, leased_ms, lease_expires_ms)
      VALUES (1, 1, 1, 'completed', 'w', 'h', 0, 0), (2, 2, 1, 'completed', 'w', 'h', 0, 0);
      UPDATE trial SET run_id = id;
      INSERT INTO sweep_trial (sweep_id, row, seed_index, seed, trial_id) VALUES (1, 0, 0, 0, 1), (1, 1, 0, 0, 2);
      INSERT INTO metric (id, name) VALUES (1, 'distance'), (2, 'seconds');
      INSERT INTO point (run_id, metric_id, step, value, kind, time_ms)
      VALUES (1, 1, 1, 40, NULL, 0), (1, 1, 2, 10, NULL, 0), (1, 1, 3, 25, NULL, 0), (1, 1, 4, 10, NULL, 0), (1, 1, 5, NULL, 'NaN', 0),
             (2, 1, 1, 40, NULL, 0), (2, 1, 2, 10, NULL, 0), (2, 1, 3, 25, NULL, 0), (2, 1, 4, 10, NULL, 0), (2, 1, 5, NULL, 'NaN', 0),
             (2, 2, 5, 7, NULL, 0);
      INSERT INTO metric_summary (run_id, metric_id, count, finite, sum, min, max, last, last_kind, last_step, best, best_step)
      VALUES (1, 1, 5, 4, 85, 10, 40, NULL, 'NaN', 5, 40, 1), (2, 1, 5, 4, 85, 10, 40, NULL, 'NaN', 5, 40, 1),
             (2, 2, 1, 1, 7, 7, 7, 7, NULL, 5, 7, 5);
      )sql");
  Database upgraded{old, Database::Mode::kWrite};
  const MetricSummary summary = MetricStore{upgraded}.summaries(1)[0];
  EXPECT_EQ(summary.best, 10) << "it was 40, by the name";
  EXPECT_EQ(summary.best_step, 2u) << "the earliest of equals";
  EXPECT_EQ(summary.max_step, 1u);
  const Table table = read_table(upgraded, "s");
  EXPECT_EQ(table.rows[0].cells[0].text, "1/1 diverged")
      << "its last point is not finite, whatever the column takes";
  EXPECT_EQ(table.rows[0].cells[1].text, "missing");
  ASSERT_EQ(table.equal_rows.size(), 1u);
  EXPECT_EQ(SweepStore{upgraded}.get("s").trials.unfilled, 2u);
  EXPECT_FALSE(TrialStore{upgraded}.get(1).before_mend()) << "until a scheduler knows of a mend";
  const RunId next = [&] {  // a digest that was made afterwards equals one that was kept from the start
    NewSweep sweep{.name = "next", .canonical_hash = "n", .rows = {{.id = "a"}}, .seeds = {0}};
    SweepStore{upgraded}.insert(sweep, {{.config = "{}", .config_hash = "j"}}, Time{});
    return TrialStore{upgraded}.lease(3, "w", "h", Time{}, Time{}).value().run;
  }();
  MetricStore{upgraded}.append(next, {{.name = "distance",
                                       .steps = {1, 2, 3, 4, 5},
                                       .values = {40, 10, 25, 10, std::nan("")},
                                       .times_ms = {1, 2, 3, 4, 5}}});
  EXPECT_EQ(upgraded.prepared("SELECT COUNT(DISTINCT curves) FROM run").one([](const Statement& row) {
    return row.integer(0);
  }),
            1);
}

TEST_F(SchemaTest, StepThatFailsLeavesTheFileAsItWas) {
  const auto [code, message] = error_of([&] {
    migrate(db, file, with("INSERT INTO metric (name) VALUES ('half'); CREATE TABLE metric (nonsense)"));
  });
  EXPECT_NE(code, Code::kOk);
  EXPECT_THAT(message, AllOf(HasSubstr(file.string()), HasSubstr(fmt::format("schema {}", kNext)),
                             HasSubstr("stays as it was")));
  EXPECT_EQ(file_kind(db).version, kNow);
  EXPECT_EQ(names(file), "val/top1");
  Database{file, Database::Mode::kWrite};  // still a store
}

TEST_F(SchemaTest, StepThatLeavesDanglingRowsIsUndone) {
  const auto [code, message] = error_of(
      [&] { migrate(db, file, with("INSERT INTO sweep_seed (sweep_id, position, seed) VALUES (9, 0, 0)")); });
  EXPECT_EQ(code, Code::kDataLoss) << message;
  EXPECT_EQ(file_kind(db).version, kNow);
}

TEST_F(SchemaTest, FileThatCannotBeCopiedIsNotChanged) {
  std::filesystem::create_directories(copy / "in the way");
  EXPECT_ANY_THROW(migrate(db, file, with("INSERT INTO metric (name) VALUES ('new')")));
  EXPECT_EQ(file_kind(db).version, kNow);
  EXPECT_EQ(names(file), "val/top1");
}

TEST_F(SchemaTest, FileInUseByAWriterIsNotMigratedUnderIt) {
  Database other{file, Database::Mode::kWrite};
  const Transaction busy{other, Transaction::kImmediate};
  EXPECT_EQ(error_of([&] { migrate(db, file, with("SELECT 1")); }).first, Code::kUnavailable);
}

TEST_F(SchemaTest, NewFileIsMadeByEveryStepWithoutACopy) {
  sqlite3* fresh = nullptr;
  sqlite3_open((folder / "new.db").c_str(), &fresh);
  migrate(fresh, folder / "new.db", with("CREATE TABLE second (id INTEGER PRIMARY KEY) STRICT"));
  EXPECT_EQ(file_kind(fresh).version, kNext);
  sqlite3_close(fresh);
  EXPECT_FALSE(std::filesystem::exists(folder / "new.db.v0.bak"));
}

}  // namespace
}  // namespace abl::storage
