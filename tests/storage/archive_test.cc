// SPDX-License-Identifier: Apache-2.0
#include "storage/archive.h"
#include "storage/probe_store.h"

#include <sqlite3.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/file.h"
#include "base/sha256.h"
#include "storage/provenance_store.h"
#include "storage/table.h"
#include "storage/up_to_date.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Every cell of a table as text, row by row.
std::vector<std::string> cells(Database& db, const std::string& sweep) {
  std::vector<std::string> texts;
  for (const TableRow& row : read_table(db, sweep).rows)
    for (const Cell& cell : row.cells) texts.push_back(cell.text + "|" + cell.paper);
  return texts;
}

class ArchiveTest : public StoreTest {
 protected:
  fs::path file = folder / "study.db";

  /// Completes every waiting trial of a sweep, with curves of so many points.
  void fill(const std::string& sweep, int points = 100) {
    for (const auto& claim : sweeps.claims(sweeps.get(sweep).id)) {
      if (claim.state != TrialState::kQueued) continue;
      const RunId id = run(claim.trial);
      Series top1{.name = "val/top1"}, loss{.name = "train/loss"};
      for (int step = 1; step <= points; ++step)
        for (Series* series : {&top1, &loss}) {
          series->steps.push_back(static_cast<std::uint32_t>(step));
          series->values.push_back(claim.trial + std::sin(step));
          series->times_ms.push_back(step);
        }
      loss.values[1] = std::numeric_limits<double>::quiet_NaN();
      metrics.append(id, {top1, loss});
      metrics.append_log(id, "a log that stays where it is\n");
      end(id, RunState::kCompleted);
    }
  }
  Archived make(const std::vector<std::string>& names, const ArchiveOptions& options = {}) {
    return make_archive(folder / "results.db", names, options, file);
  }
  Merged merge(Database& into) { return merge_archive(into, file, folder / "imported", "here"); }
  RunId lease_in(Database& other, TrialId trial) {
    return TrialStore{other}.lease(trial, "bob", "h", now, now + std::chrono::seconds{30})->run;
  }
  RunId complete_in(Database& other, TrialId trial, double value) {
    const RunId id = lease_in(other, trial);
    TrialStore{other}.start(id, {.total_steps = 100, .data_fingerprint = "f1"}, now);
    MetricStore{other}.append(id, {{.name = "val/top1", .steps = {100}, .values = {value}, .times_ms = {0}}});
    TrialStore{other}.end(id, {.state = RunState::kCompleted}, now);
    return id;
  }
};

TEST_F(ArchiveTest, HoldsTheChosenSweepsAloneWithTheSameTable) {
  submit(sweep_of("wanted", 3, 2));
  submit(sweep_of("other", 2, 1, "o"));
  fill("wanted");
  fill("other");
  const Archived made = make({"wanted"}, {.points = KeptPoints::kAll});
  EXPECT_EQ(made.sweeps, 1);
  EXPECT_EQ(made.completed, 6);
  EXPECT_EQ(made.points, 6 * 200);
  Database archive{file, Database::Mode::kReadOnly};
  EXPECT_EQ(cells(archive, "wanted"), cells(db, "wanted"));
  EXPECT_EQ(error_of([&] { SweepStore{archive}.get("other"); }).first, Code::kNotFound);
  EXPECT_EQ(SweepStore{archive}.get("wanted").text, sweeps.get("wanted").text);
  EXPECT_EQ(archive_kind(archive)->of_store, db.store_id());
  EXPECT_NE(archive.store_id(), db.store_id()) << "a scheduler on it is not a scheduler on that";
}

TEST_F(ArchiveTest, IsTheSameToTheByteForTheSameSweeps) {
  submit(sweep_of("wanted", 3, 2));
  fill("wanted");
  make({"wanted"});
  const std::string first = sha256_file(file);
  submit(sweep_of("later", 2, 1, "o"));
  fill("later");
  make({"wanted"});
  EXPECT_EQ(sha256_file(file), first);
}

TEST_F(ArchiveTest, ThinnedPointsLeaveEveryNumberOfTheTableAsItIs) {
  submit(sweep_of("wanted", 2, 2));
  fill("wanted", 5000);
  const Archived thin = make({"wanted"});
  EXPECT_LE(thin.points, 4 * 2 * ArchiveOptions::kThinTo);
  EXPECT_GT(thin.points, 0);
  {
    Database archive{file, Database::Mode::kReadOnly};
    EXPECT_EQ(cells(archive, "wanted"), cells(db, "wanted"));
    EXPECT_EQ(archive_kind(archive)->points, KeptPoints::kThin);
  }
  EXPECT_EQ(make({"wanted"}, {.points = KeptPoints::kNone}).points, 0);
  Database archive{file, Database::Mode::kReadOnly};
  EXPECT_EQ(cells(archive, "wanted"), cells(db, "wanted"));
}

TEST_F(ArchiveTest, WhatRunsElsewhereWaitsInIt) {
  submit(sweep_of("wanted", 2, 1));
  run(1);
  lease(2);
  make({"wanted"});
  Database archive{file, Database::Mode::kReadOnly};
  const SweepRecord sweep = SweepStore{archive}.get("wanted");
  EXPECT_EQ(sweep.trials.queued, 2u);
  EXPECT_EQ(sweep.trials.open(), 2u);
  EXPECT_EQ(TrialStore{archive}.get(1).attempt, 0);
}

TEST_F(ArchiveTest, ItsTrialsAreFoundByIdentityAndNotRunAgain) {
  submit(sweep_of("wanted", 3, 2));
  fill("wanted");
  const auto table = cells(db, "wanted");
  make({"wanted"});
  Database other{folder / "other.db", Database::Mode::kWrite};
  SweepStore elsewhere{other};
  const auto before = sweep_of("before", 2, 1, "own");  // has numbers that the archive's trials have too
  elsewhere.insert(before.sweep, before.trials, now);
  const Merged merged = merge(other);
  EXPECT_THAT(merged.sweeps, ElementsAre("wanted"));
  EXPECT_EQ(merged.new_trials, 6);
  EXPECT_EQ(cells(other, "wanted"), table);
  EXPECT_EQ(elsewhere.get("wanted").trials.completed, 6u);
  const auto again = sweep_of("again", 3, 3);  // one seed more
  const Submitted submitted = elsewhere.insert(again.sweep, again.trials, now);
  EXPECT_EQ(submitted.shared_trials, 6u);
  EXPECT_EQ(submitted.new_trials, 3u);
}

TEST_F(ArchiveTest, MergedTwiceNothingIsThereTwice) {
  submit(sweep_of("wanted", 2, 2));
  fill("wanted");
  make({"wanted"});
  Database other{folder / "other.db", Database::Mode::kWrite};
  merge(other);
  const auto table = cells(other, "wanted");
  const Merged second = merge(other);
  EXPECT_THAT(second.sweeps, IsEmpty());
  EXPECT_THAT(second.known, ElementsAre("wanted"));
  EXPECT_EQ(second.new_trials + second.filled + second.runs + second.points, 0);
  EXPECT_EQ(second.there, 4);
  EXPECT_EQ(cells(other, "wanted"), table);
}

TEST_F(ArchiveTest, TrialsThatWaitedGetTheResultsOfTheArchive) {
  const auto text = sweep_of("wanted", 2, 2);
  submit(text);
  Database other{folder / "other.db", Database::Mode::kWrite};
  SweepStore{other}.insert(text.sweep, text.trials, now);
  fill("wanted");
  make({"wanted"});
  const Merged merged = merge(other);
  EXPECT_EQ(merged.filled, 4);
  EXPECT_EQ(merged.new_trials, 0);
  EXPECT_EQ(SweepStore{other}.get("wanted").trials.completed, 4u);
  EXPECT_EQ(cells(other, "wanted"), cells(db, "wanted"));
  EXPECT_EQ(TrialStore{other}.fingerprint("cifar10"), "f1");
}

TEST_F(ArchiveTest, MergesBackIntoTheStoreThatItIsOf) {
  submit(sweep_of("wanted", 2, 2));
  fill("wanted");
  make({"wanted"});
  const Merged merged = merge(db);
  EXPECT_EQ(merged.there, 4);
  EXPECT_EQ(merged.runs, 0);
  EXPECT_THAT(merged.notes, IsEmpty());
}

TEST_F(ArchiveTest, ResultsOfBothSidesThatDifferAreSaidAndStay) {
  const auto text = sweep_of("wanted", 1, 1);
  submit(text);
  complete(1, 70);
  make({"wanted"});
  Database other{folder / "other.db", Database::Mode::kWrite};
  SweepStore{other}.insert(text.sweep, text.trials, now);
  complete_in(other, 1, 71);
  const Merged merged = merge(other);
  EXPECT_THAT(merged.notes,
              ElementsAre(HasSubstr(
                  "wanted/a/0 was trained here and there, with different values: those here stay")));
  EXPECT_THAT(cells(other, "wanted").front(), HasSubstr("71.00"));
}

TEST_F(ArchiveTest, TwoTrialsThatAreOneHereGiveItOneResult) {
  const auto one = sweep_of("one", 1, 1), two = sweep_of("two", 1, 1);
  submit(one);
  complete(1, 70);
  db.execute(
      "UPDATE trial SET reusable = 0 WHERE id = 1");  // as where it was trained again for another sweep
  submit(two);
  complete(2, 71);
  make({"one", "two"});
  Database other{folder / "other.db", Database::Mode::kWrite};
  for (const auto& text : {one, two}) SweepStore{other}.insert(text.sweep, text.trials, now);
  const Merged merged = merge(other);
  EXPECT_EQ(merged.filled, 1);
  EXPECT_EQ(merged.runs, 1);
  EXPECT_THAT(merged.notes,
              ElementsAre(HasSubstr("one/a/0: the archive has two results for what is one trial here")));
  EXPECT_THAT(cells(other, "one").front(), HasSubstr("71.00"));
  EXPECT_EQ(cells(other, "one"), cells(other, "two"));
  EXPECT_EQ(merge(other).runs, 0) << "and nothing the second time";
}

TEST_F(ArchiveTest, WhatRunsHereGoesOnThoughTheArchiveHasAResult) {
  const auto text = sweep_of("wanted", 1, 1);
  submit(text);
  complete(1, 70);
  make({"wanted"});
  Database other{folder / "other.db", Database::Mode::kWrite};
  SweepStore{other}.insert(text.sweep, text.trials, now);
  TrialStore elsewhere{other};
  const RunId id = lease_in(other, 1);
  const Merged merged = merge(other);
  EXPECT_EQ(merged.filled, 0);
  EXPECT_THAT(
      merged.notes,
      ElementsAre(HasSubstr("wanted/a/0 has a result in the archive and is running here: it goes on")));
  EXPECT_EQ(elsewhere.get(1).run, id);
  EXPECT_EQ(elsewhere.get(1).state, TrialState::kLeased);
}

/// A sweep as it is submitted, and as it is after more seeds.
class GrownArchiveTest : public ArchiveTest {
 protected:
  SweepText text = sweep_of("wanted", 2, 1), grown = sweep_of("wanted", 2, 3),
            otherwise = sweep_of("wanted", 3, 1);
  Database other{folder / "other.db", Database::Mode::kWrite};

  GrownArchiveTest() {
    text.sweep.canonical = "{}", grown.sweep.canonical = "{ }", otherwise.sweep.canonical = "{  }";
    for (SweepText* each : {&text, &grown, &otherwise}) each->sweep.canonical_hash = each->sweep.canonical;
    submit(text);
    SweepStore{other}.insert(text.sweep, text.trials, now);
  }
  void extend(Database& store, const SweepText& to) {
    SweepStore{store}.extend(SweepStore{store}.get("wanted").id, to.sweep, to.trials,
                             {.author = "eve", .changes = {"more"}}, now);
  }
};

TEST_F(GrownArchiveTest, ASweepThatWasExtendedInTheArchiveIsExtendedHereAndKeepsItsResults) {
  complete(1, 70);
  extend(db, grown);
  fill("wanted");
  make({"wanted"});
  const RunId id = complete_in(other, 2, 99);
  const Merged merged = merge(other);
  EXPECT_THAT(merged.grown, ElementsAre("wanted"));
  EXPECT_THAT(merged.sweeps, IsEmpty());
  EXPECT_EQ(merged.new_trials, 4);
  EXPECT_EQ(merged.filled, 1);
  const SweepRecord sweep = SweepStore{other}.get("wanted");
  EXPECT_EQ(sweep.revision, 2u);
  EXPECT_EQ(sweep.canonical_hash, grown.sweep.canonical_hash);
  EXPECT_EQ(sweep.trials.total(), 6u);
  EXPECT_EQ(sweep.trials.completed, 6u);
  EXPECT_EQ(TrialStore{other}.get(2).run, id) << "what was trained here stays";
  EXPECT_THAT(SweepStore{other}.revisions(sweep.id), SizeIs(2));
  EXPECT_EQ(cells(other, "wanted")[0], cells(db, "wanted")[0]);
  const Merged again = merge(other);
  EXPECT_THAT(again.grown, IsEmpty());
  EXPECT_EQ(again.runs, 0);
}

TEST_F(GrownArchiveTest, ASweepThatHasGrownHereTakesTheResultsOfAnEarlierRevision) {
  complete(1, 70);
  complete(2, 71);
  make({"wanted"});
  extend(other, grown);
  const Merged merged = merge(other);
  EXPECT_EQ(merged.filled, 2);
  EXPECT_EQ(merged.new_trials, 0);
  EXPECT_THAT(merged.notes,
              ElementsAre(HasSubstr("sweep wanted was extended here after the archive was made")));
  EXPECT_EQ(SweepStore{other}.get("wanted").trials.total(), 6u);
  EXPECT_EQ(SweepStore{other}.get("wanted").revision, 2u);
}

TEST_F(GrownArchiveTest, ASweepThatGrewInTwoWaysIsAConflictThatSaysSinceWhen) {
  extend(db, grown);
  make({"wanted"});
  extend(other, otherwise);
  const auto [code, message] = error_of([&] { merge(other); });
  EXPECT_EQ(code, Code::kAlreadyExists);
  EXPECT_THAT(message, HasSubstr("sweep wanted: was extended in two ways since revision 1"));
  EXPECT_EQ(SweepStore{other}.get("wanted").trials.total(), 3u);
}

TEST_F(GrownArchiveTest, ARowThatTheArchiveHasNoMoreLeavesItsTrialsAsFormerOnes) {
  SweepText fewer = sweep_of("wanted", 1, 1);
  fewer.sweep.canonical = fewer.sweep.canonical_hash = "{   }";
  complete(1, 70);
  extend(db, fewer);
  make({"wanted"});
  merge(other);
  EXPECT_EQ(SweepStore{other}.get("wanted").trials.total(), 1u);
  EXPECT_EQ(TrialStore{other}.get(2).state, TrialState::kCancelled);
  EXPECT_EQ(other.prepared("SELECT COUNT(*) FROM sweep_former").one([](const Statement& row) {
    return row.integer(0);
  }),
            1);
}

TEST_F(ArchiveTest, WhereBothTrainedAPartOfASweepItSaysOfBothWhereItComesFrom) {
  const auto text = sweep_of("wanted", 2, 1);
  const SweepId sweep = submit(text).sweep;
  ProvenanceStore{db}.add(sweep, {.facts_json = R"({"host":"there"})", .diff = "a diff"}, now);
  complete(1, 70);
  make({"wanted"});
  Database other{folder / "other.db", Database::Mode::kWrite};
  const SweepId here = SweepStore{other}.insert(text.sweep, text.trials, now).sweep;
  ProvenanceStore{other}.add(here, {.facts_json = R"({"host":"here"})"}, now);
  for (int twice = 0; twice < 2; ++twice) {
    merge(other);
    const auto from = ProvenanceStore{other}.of(here);
    ASSERT_THAT(from, SizeIs(2));
    EXPECT_THAT(from[0].facts_json, HasSubstr("here"));
    EXPECT_EQ(from[1].diff, "a diff");
  }
}

TEST_F(ArchiveTest, SaysWhatOfAFolderTravelsAndLeavesItOutWhereAsked) {
  const SweepId sweep = submit(sweep_of("wanted", 1, 1)).sweep;
  ProvenanceStore{db}.add(
      sweep,
      {.facts_json = R"({"host":"h"})",
       .diff = "diff --git a/train.py b/train.py\n+x\ndiff --git \"a/b\\303.py\" \"b/b\\303.py\"\n",
       .packages = "torch==2\n"},
      now);
  const Archived made = make({"wanted"});
  EXPECT_EQ(made.submissions, 1);
  EXPECT_EQ(made.packages, 1);
  ASSERT_THAT(made.diffs, SizeIs(1));
  EXPECT_EQ(made.diffs[0].sweep, "wanted");
  EXPECT_THAT(made.diffs[0].files, ElementsAre("train.py", "b\\303.py"));
  EXPECT_EQ(make({"wanted"}, {.provenance = false}).submissions, 0);
  EXPECT_THAT(read_file(file), testing::Not(HasSubstr("train.py")));
}

TEST_F(ArchiveTest, ABitThatWasFlippedOrAFileThatWasCutIsSaidInALine) {
  submit(sweep_of("wanted", 3, 2));
  fill("wanted", 500);
  make({"wanted"}, {.points = KeptPoints::kAll});
  const std::string whole = read_file(file);
  Database other{folder / "other.db", Database::Mode::kWrite};
  const auto refused = [&](std::string bytes) {
    write_file(file, bytes);
    const auto [code, message] = error_of([&] { merge(other); });
    EXPECT_THAT(message, testing::Not(HasSubstr("\n")));
    return code;
  };
  EXPECT_EQ(error_of([&] { UpToDate{file, folder / "copy"}; }).first, Code::kOk);
  int found = 0;
  for (std::size_t at = 200; at < whole.size(); at += whole.size() / 40) {  // beyond the header
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    const Code code = refused(flipped);
    EXPECT_TRUE(code == Code::kOk || code == Code::kDataLoss) << at;
    found += code == Code::kDataLoss;
  }
  EXPECT_GT(found, 20) << "of 40: the others are bytes that nothing is read from";
  for (const std::size_t size : {std::size_t{5000}, whole.size() / 2, whole.size() - 1})
    EXPECT_NE(refused(whole.substr(0, size)), Code::kOk) << size;
}

TEST_F(ArchiveTest, AConflictMergesNothingAndNamesAll) {
  submit(sweep_of("wanted", 1, 1));
  fill("wanted");
  make({"wanted"});
  Database other{folder / "other.db", Database::Mode::kWrite};
  auto text = sweep_of("wanted", 2, 1, "x");
  text.sweep.canonical_hash = "another";
  SweepStore{other}.insert(text.sweep, text.trials, now);
  TrialStore elsewhere{other};
  const RunId id = lease_in(other, 1);
  elsewhere.start(id, {.total_steps = 100, .data_fingerprint = "f2"}, now);
  const auto [code, message] = error_of([&] { merge(other); });
  EXPECT_EQ(code, Code::kAlreadyExists);
  EXPECT_THAT(message, HasSubstr("sweep wanted: another content"));
  EXPECT_THAT(message, HasSubstr("data cifar10: the archive's results are of another content"));
  EXPECT_EQ(SweepStore{other}.count(), 1u);
}

TEST_F(ArchiveTest, BringsItsCheckpointsWithThem) {
  submit(sweep_of("wanted", 1, 1));
  const RunId id = run(1);
  const std::string bytes(3'000'000, 'w');
  write_file(folder / "step-100.ckpt", bytes);
  trials.add_checkpoint({.run = id, .step = 50, .host = "here", .path = folder / "gone.ckpt", .sha256 = "s"});
  trials.add_checkpoint({.run = id,
                         .step = 100,
                         .host = "here",
                         .path = folder / "step-100.ckpt",
                         .sha256 = sha256_hex(bytes)});
  end(id, RunState::kCompleted);
  const Archived made = make({"wanted"}, {.checkpoints = KeptCheckpoints::kLast, .host = "here"});
  EXPECT_EQ(made.checkpoints, 1);
  EXPECT_THAT(made.absent, IsEmpty());
  fs::remove(folder / "step-100.ckpt");
  Database other{folder / "other.db", Database::Mode::kWrite};
  EXPECT_EQ(merge_archive(other, file, folder / "imported", "there").checkpoints, 1);
  const auto checkpoints = TrialStore{other}.checkpoints_of(1);
  ASSERT_THAT(checkpoints, SizeIs(1)) << "of older ones nobody needs to know";
  EXPECT_EQ(checkpoints.front().host, "there");
  EXPECT_EQ(read_file(checkpoints.front().path), bytes);
}

TEST_F(ArchiveTest, BringsWhatProbesFound) {
  submit(sweep_of("other", 1, 1, "o"));  // so that numbers differ
  submit(sweep_of("wanted", 1, 1));
  const RunId id = complete(2, 70);
  ProbeStore{db}.put(id, {.request = {.name = "norms"}, .values = {{"last", 2.5}}}, 100,
                     {{.name = "map", .sha256 = "a", .width = 1, .height = 1, .png = "x"}}, now);
  make({"wanted"}, {});
  Database other{folder / "other.db", Database::Mode::kWrite};
  SweepStore{other}.insert(sweep_of("third", 2, 2, "t").sweep, sweep_of("third", 2, 2, "t").trials, now);
  complete_in(other, 1, 1), complete_in(other, 2, 1);
  merge(other);
  const auto run = other.prepared("SELECT run_id FROM probe").one([](const Statement& row) {
    return static_cast<RunId>(row.integer(0));
  });
  ASSERT_EQ(run, 3u);
  const auto found = ProbeStore{other}.find(*run, "norms");
  EXPECT_EQ(found->step, 100u);
  EXPECT_EQ(found->pictures.at(0).png, "x");
  EXPECT_EQ(MetricStore{other}.summaries(*run, 10).at(0).last, 2.5);
}

TEST_F(ArchiveTest, BringsProbesOfWhatIsThereWithTheSameResult) {
  submit(sweep_of("wanted", 2, 1));
  complete(1, 70), complete(2, 71);
  make({"wanted"}, {});
  Database other{folder / "other.db", Database::Mode::kWrite};
  merge(other);
  for (const RunId run : {1, 2})
    ProbeStore{db}.put(run, {.request = {.name = "norms"}, .values = {{"last", run}}}, 100,
                       {{.name = "map", .sha256 = "a", .width = 1, .height = 1, .png = "x"}}, now);
  ProbeStore{other}.put(2, {.request = {.name = "norms"}, .values = {{"last", 9}}}, 100, {}, now);
  fs::remove(file);
  make({"wanted"}, {});
  merge(other);
  EXPECT_EQ(ProbeStore{other}.find(1, "norms")->pictures.at(0).png, "x");
  EXPECT_EQ(MetricStore{other}.summaries(1).at(0).last, 1);
  EXPECT_EQ(MetricStore{other}.summaries(2).at(0).last, 9) << "what is here stays";
}

TEST_F(ArchiveTest, ACheckpointThatIsNotWhatItWasIsLeftOutAndSaid) {
  submit(sweep_of("wanted", 1, 1));
  const RunId id = run(1);
  write_file(folder / "step-100.ckpt", "other bytes");
  trials.add_checkpoint({.run = id,
                         .step = 100,
                         .host = "here",
                         .path = folder / "step-100.ckpt",
                         .sha256 = sha256_hex("bytes")});
  end(id, RunState::kCompleted);
  const Archived made = make({"wanted"}, {.checkpoints = KeptCheckpoints::kLast, .host = "here"});
  EXPECT_EQ(made.checkpoints, 0);
  EXPECT_THAT(made.absent, SizeIs(1));
}

TEST_F(ArchiveTest, WhereAMergeFailsHalfwayNothingOfItIsThere) {
  submit(sweep_of("wanted", 2, 2));
  const RunId id = run(1);
  write_file(folder / "c", "bytes");
  trials.add_checkpoint(
      {.run = id, .step = 100, .host = "here", .path = folder / "c", .sha256 = sha256_hex("bytes")});
  end(id, RunState::kCompleted);
  make({"wanted"}, {.checkpoints = KeptCheckpoints::kLast, .host = "here"});
  write_file(folder / "no-folder", "");
  Database other{folder / "other.db", Database::Mode::kWrite};
  EXPECT_ANY_THROW(merge_archive(other, file, folder / "no-folder", "here"));
  EXPECT_EQ(SweepStore{other}.count(), 0u);
}

TEST_F(ArchiveTest, WhatIsNoArchiveIsRefused) {
  submit(sweep_of("wanted", 1, 1));
  Database other{folder / "other.db", Database::Mode::kWrite};
  const auto refused = [&](const fs::path& what) {
    return error_of([&] { merge_archive(other, what, folder / "imported", "here"); });
  };
  EXPECT_THAT(refused(folder / "results.db").second, HasSubstr("not an archive"));
  EXPECT_EQ(refused(folder / "none.db").first, Code::kNotFound);
  write_file(folder / "text.db", std::string(5000, 'x'));
  EXPECT_NE(refused(folder / "text.db").first, Code::kOk);
  EXPECT_NE(error_of([&] { make_archive(folder / "text.db", {"wanted"}, {}, file); }).first, Code::kOk);
  EXPECT_EQ(error_of([&] { make({"wnted"}); }).first, Code::kNotFound);
  EXPECT_FALSE(fs::exists(file)) << "it appears as a whole or not at all";
  for (const auto& entry : fs::directory_iterator{folder.path()})
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("study.db")))
        << "nothing is left behind";
}

TEST_F(ArchiveTest, NoNameInItBecomesAStatement) {
  submit(sweep_of("wanted", 1, 1));
  make({"wanted"});
  {
    Database hostile{file, Database::Mode::kWrite};
    hostile.execute(
        R"(CREATE TABLE "sweep_row SELECT * FROM main.sweep_row; DELETE FROM main.store; --" (sweep_id))");
    hostile.execute(R"(ALTER TABLE sweep_row ADD COLUMN "x"") SELECT 1; DELETE FROM main.store; --" TEXT)");
  }
  Database other{folder / "other.db", Database::Mode::kWrite};
  merge(other);
  EXPECT_EQ(SweepStore{other}.count(), 1u);
  EXPECT_THAT(other.store_id(), SizeIs(32));
}

TEST_F(ArchiveTest, ADigestThatIsNoneLeadsNowhere) {
  submit(sweep_of("wanted", 1, 1));
  const RunId id = run(1);
  write_file(folder / "c", "bytes");
  trials.add_checkpoint(
      {.run = id, .step = 100, .host = "here", .path = folder / "c", .sha256 = sha256_hex("bytes")});
  end(id, RunState::kCompleted);
  make({"wanted"}, {.checkpoints = KeptCheckpoints::kLast, .host = "here"});
  Database{file, Database::Mode::kWrite}.execute("UPDATE checkpoint SET sha256 = '../../elsewhere'");
  Database other{folder / "other.db", Database::Mode::kWrite};
  EXPECT_EQ(error_of([&] { merge(other); }).first, Code::kDataLoss);
  EXPECT_FALSE(fs::exists(folder / "elsewhere"));
  EXPECT_EQ(SweepStore{other}.count(), 0u);
}

TEST_F(ArchiveTest, SaysWhereItsSweepsComeFrom) {
  const SweepId sweep = submit(sweep_of("wanted", 1, 1)).sweep;
  ProvenanceStore{db}.add(sweep, {.facts_json = R"({"user":"eve"})", .diff = "+a\n"}, now);
  make({"wanted"});
  Database other{folder / "other.db", Database::Mode::kWrite};
  merge(other);
  const auto records = ProvenanceStore{other}.of(SweepStore{other}.get("wanted").id);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records.front().diff, "+a\n");
}

TEST_F(ArchiveTest, OfAnOlderFileIsMadeWithoutChangingIt) {
  // as an older program left it
  sqlite3* raw = nullptr;
  const fs::path old = folder / "old.db";
  ASSERT_EQ(sqlite3_open(old.c_str(), &raw), SQLITE_OK);
  const std::string sql = read_file(fs::path{ABLATE_SOURCE_DIR} / "tests/storage/frozen/v8.sql");
  ASSERT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  const std::string before = sha256_file(old);
  make_archive(old, {"first"}, {}, file);
  EXPECT_EQ(sha256_file(old), before);
  Database archive{file, Database::Mode::kReadOnly};
  EXPECT_EQ(SweepStore{archive}.get("first").rows, 3u);
  EXPECT_EQ(SweepStore{archive}.get("first").trials.total(), 6u);
  for (const auto& entry : fs::directory_iterator{folder.path()})
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("study.db.")))
        << "nothing is left behind";
}

TEST_F(StoreTest, TextsOfSweepsFromOneFolderAreStoredOnceAndGoWithTheLast) {
  const SweepId one = submit(sweep_of("one", 1, 1)).sweep, two = submit(sweep_of("two", 1, 1, "x")).sweep;
  ProvenanceStore store{db};
  store.add(one, {.facts_json = "{}", .diff = "same", .packages = "torch"}, now);
  store.add(two, {.facts_json = "{}", .diff = "same"}, now);
  const auto texts = [&] {
    return db.prepared("SELECT COUNT(*) FROM provenance_text")
        .one([](const Statement& row) { return row.integer(0); })
        .value();
  };
  EXPECT_EQ(texts(), 2);
  store.forget(one);
  EXPECT_EQ(texts(), 1);
  EXPECT_EQ(store.of(two).front().diff, "same");
  for (int i = 0; i < 2 * ProvenanceStore::kMost; ++i)
    store.add(two, {.facts_json = "{}", .diff = std::to_string(i)}, now);
  EXPECT_THAT(store.of(two), SizeIs(ProvenanceStore::kMost));
  EXPECT_EQ(store.of(two).front().diff, "same") << "as it was submitted first";
  EXPECT_EQ(store.of(two).back().diff, std::to_string(2 * ProvenanceStore::kMost - 1));
  EXPECT_EQ(texts(), ProvenanceStore::kMost);
}

}  // namespace
}  // namespace abl::storage
