// SPDX-License-Identifier: Apache-2.0
// What a stored sweep becomes that is extended.
#include "storage/removal.h"
#include "storage/table.h"
#include "tests/error_of.h"
#include "tests/scheduler/fixtures.h"
#include "views/views.h"

namespace abl::scheduler {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct File {
  std::string name = "s";
  std::vector<std::string> rows{"a", "b"};
  std::string seeds = "2";
  std::string version = "v1";
  std::string more;  ///< further sections
  std::string columns = "{name: acc, metric: val/top1}";
  bool reuse = false;
  std::map<std::string, std::string> lr{};  ///< of rows, otherwise their place
};

sweeps::SweepSpec spec_of(const File& file) {
  std::string text = fmt::format(
      "ablate: 1\nname: {}\ncommand: {{argv: [train, '{{params.lr}}'], folder: '{{run_dir}}', params: {{lr: "
      "0}}, "
      "version: {}, reuse: {}}}\nseeds: {}\ntable: {{columns: [{}]}}\n{}rows:\n",
      file.name, file.version, file.reuse, file.seeds, file.columns, file.more);
  for (const std::string& row : file.rows)
    text += fmt::format("  - {{id: {}, set: {{params.lr: {}}}}}\n", row,
                        file.lr.contains(row) ? file.lr.at(row) : std::to_string(row.front()));
  return sweeps::parse_sweep(text, file.name + ".yaml", "/somewhere");
}

class ExtensionTest : public CoordinatorTest {
 protected:
  ExtensionDone extend(const File& file, ExtensionWish wish = {.author = "ann"}) {
    std::promise<ExtensionDone> promise;
    extend_sweep(*coordinator, spec_of(file), std::move(wish),
                 [&](std::exception_ptr error, const ExtensionDone& done) {
                   if (error)
                     promise.set_exception(error);
                   else
                     promise.set_value(done);
                 });
    ExtensionDone done = promise.get_future().get();
    settle();
    return done;
  }
  std::pair<Code, std::string> refusal(const File& file, ExtensionWish wish = {}) {
    const sweeps::SweepSpec spec = spec_of(file);
    auto answer = answer_of([&](auto told) { extend_sweep(*coordinator, spec, wish, told); });
    settle();
    return answer;
  }
  std::pair<Code, std::string> submission(const File& file, const Standing& standing = {}) {
    const sweeps::SweepSpec spec = spec_of(file);
    auto answer = answer_of([&](auto told) { submit_sweep(*coordinator, spec, standing, told); });
    settle();
    return answer;
  }
  Code resume(const storage::Budget& budget) {
    const auto answer = answer_of([&](auto told) { resume_sweep(*coordinator, "s", budget, told); });
    settle();
    return answer.first;
  }
  FakeWorker connect_one(int slots = 1) {
    return connect({.slots = slots, .data = {}, .allows_commands = true});
  }
  /// Says what the run of an assignment measured, and that it has ended.
  void complete(FakeWorker& worker, std::uint32_t run, double value) {
    ablate::v1::RunBatch batch = batch_of(run, 1);
    batch.mutable_started()->set_bit_exact(true);
    say(worker, batch);
    say(worker, measured(run, 2, value));
    say(worker, ended(run, 3));
  }
  storage::SweepRecord sweep(const std::string& name = "s") {
    return read([&](storage::Database& db) { return storage::SweepStore{db}.get(name); });
  }
  storage::Table table(const std::string& name = "s") {
    return read([&](storage::Database& db) { return storage::read_table(db, name); });
  }
  std::vector<storage::FormerTrial> former(const std::string& name = "s") {
    return read([&](storage::Database& db) {
      const storage::SweepStore store{db};
      return store.former(store.get(name).id, 100);
    });
  }
};

TEST_F(ExtensionTest, OnlyTheGapsOfASweepRunThatIsExtended) {
  submit(spec_of({}));
  FakeWorker worker = connect_one();
  complete(worker, worker.take_assigned().at(0).run(), 80);
  const std::string identity = trial(1).identity.config_hash;
  const ExtensionDone done = extend({.rows = {"a", "b", "c"}, .seeds = "3"});
  EXPECT_TRUE(done.changed);
  EXPECT_THAT(done.changes, ElementsAre("row c: new", "seed 2: new"));
  EXPECT_EQ(done.trials.new_trials, 5u);
  EXPECT_EQ(done.trials.kept_trials, 4u);
  EXPECT_EQ(trial(1).state, storage::TrialState::kCompleted);
  EXPECT_EQ(trial(1).identity.config_hash, identity);
  EXPECT_EQ(sweep().trials.total(), 9u);
  EXPECT_EQ(sweep().revision, 2u);
  EXPECT_THAT(former(), IsEmpty());
}

TEST_F(ExtensionTest, ARowInFrontOfOthersMovesNoResultToAnotherRow) {
  submit(spec_of({}));
  FakeWorker worker = connect_one();
  complete(worker, worker.take_assigned().at(0).run(), 80);
  extend({.rows = {"c", "b", "a"}, .seeds = "[7, 1, 0]"});
  const storage::Table after = table();
  ASSERT_THAT(after.rows, SizeIs(3));
  EXPECT_EQ(after.rows[0].id, "c");
  EXPECT_EQ(after.rows[2].id, "a");
  ASSERT_THAT(after.rows[2].cells[0].values, SizeIs(1));
  EXPECT_EQ(after.rows[2].cells[0].values[0].seed, 0);
  EXPECT_EQ(after.rows[2].cells[0].values[0].value, 80);
  EXPECT_THAT(after.rows[1].cells[0].values, IsEmpty());
}

TEST_F(ExtensionTest, WhatTheFileLacksIsNotTakenOutAndTheRefusalSaysWhatToDo) {
  submit(spec_of({}));
  const auto [code, message] = refusal({.rows = {"a", "c"}, .seeds = "1"});
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_THAT(message, AllOf(HasSubstr("\nrow b: in the store and not in the file"), HasSubstr("\nseed 1: "),
                             HasSubstr("under another name")));
  EXPECT_EQ(sweep().rows, 2u);
  EXPECT_EQ(sweep().revision, 1u);
}

TEST_F(ExtensionTest, AMendedCommandRunsAgainAndItsOldValuesAreShownUntilTheNewOnesAreThere) {
  submit(spec_of({.rows = {"a"}, .seeds = "1"}));
  FakeWorker worker = connect_one();
  complete(worker, worker.take_assigned().at(0).run(), 80);
  const ExtensionDone done = extend({.rows = {"a"}, .seeds = "1", .version = "v2"});
  EXPECT_THAT(done.changes, ElementsAre(AllOf(HasSubstr("row a: version: v2 here, v1 in the store"),
                                              HasSubstr("the values of the older version are kept"))));
  EXPECT_EQ(done.trials.former_trials, 1u);
  const storage::Cell before = table().rows[0].cells[0];
  EXPECT_EQ(before.mean, 80);
  EXPECT_EQ(before.older, 1u);
  EXPECT_EQ(before.older_version, "v1");
  complete(worker, worker.take_assigned().at(0).run(), 85);
  const storage::Cell after = table().rows[0].cells[0];
  EXPECT_EQ(after.mean, 85);
  EXPECT_EQ(after.older, 0u);
  ASSERT_THAT(former(), SizeIs(1));
  EXPECT_EQ(former()[0].trial, 1u);
  EXPECT_EQ(former()[0].state, storage::TrialState::kCompleted);
  EXPECT_EQ(trial(1).state, storage::TrialState::kCompleted);
}

TEST_F(ExtensionTest, OnlyWhatChangedRunsAgain) {
  submit(spec_of({.seeds = "1"}));
  FakeWorker worker = connect_one(2);
  for (const auto& assign : worker.take_assigned()) complete(worker, assign.run(), 80);
  const ExtensionDone done = extend({.seeds = "1", .lr = {{"b", "5"}}});
  EXPECT_THAT(done.changes, ElementsAre(HasSubstr("row b: params.lr: 5 here, 98 in the store")));
  EXPECT_EQ(done.trials.new_trials, 1u);
  EXPECT_EQ(done.trials.kept_trials, 1u);
  EXPECT_EQ(table().rows[0].cells[0].mean, 80);
  EXPECT_EQ(table().rows[1].cells[0].mean, std::nullopt) << "values of another configuration are not its own";
}

TEST_F(ExtensionTest, ASweepThatGoesBackHasItsFormerRunsAgain) {
  submit(spec_of({.rows = {"a"}, .seeds = "1"}));
  FakeWorker worker = connect_one();
  complete(worker, worker.take_assigned().at(0).run(), 80);
  extend({.rows = {"a"}, .seeds = "1", .version = "v2"});
  const ExtensionDone back = extend({.rows = {"a"}, .seeds = "1", .version = "v1"});
  EXPECT_EQ(back.trials.new_trials, 0u);
  EXPECT_EQ(table().rows[0].cells[0].mean, 80);
  EXPECT_EQ(table().rows[0].cells[0].older, 0u);
  EXPECT_EQ(sweep().revision, 3u);
}

TEST_F(ExtensionTest, ARunThatTheTableHasNoMoreIsStoppedAndItsTrialCancelled) {
  submit(spec_of({.rows = {"a"}, .seeds = "1"}));
  FakeWorker worker = connect_one();
  const std::uint32_t run = worker.take_assigned().at(0).run();
  say(worker, started(run, 1, ""));
  const ExtensionDone done = extend({.rows = {"a"}, .seeds = "1", .version = "v2"});
  EXPECT_THAT(done.trials.unwanted, ElementsAre(run));
  EXPECT_THAT(worker.take_said(), testing::Contains(fmt::format("stop {} {}", run, kExtended)));
  say(worker, ended(run, 2, ablate::v1::RunEnded::STATUS_STOPPED));
  EXPECT_EQ(trial(1).state, storage::TrialState::kCancelled);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "the new one";
}

TEST_F(ExtensionTest, ATrialThatAnotherSweepWantsStaysThere) {
  submit(spec_of({.rows = {"a"}, .seeds = "1", .reuse = true}));
  submit(spec_of({.name = "other", .rows = {"a"}, .seeds = "1", .reuse = true}));
  extend({.rows = {"a"}, .seeds = "1", .version = "v2", .reuse = true});
  EXPECT_EQ(trial(1).state, storage::TrialState::kQueued);
  EXPECT_EQ(sweep("other").trials.queued, 1u);
  EXPECT_EQ(sweep("s").trials.queued, 1u);
  FakeWorker worker = connect_one(2);
  for (const auto& assign : worker.take_assigned()) complete(worker, assign.run(), assign.trial());
  EXPECT_EQ(table("other").rows[0].cells[0].mean, 1);
  EXPECT_EQ(table("s").rows[0].cells[0].mean, 2);
}

TEST_F(ExtensionTest, WhatIsOnlyPrintedRunsNothing) {
  submit(spec_of({.seeds = "1"}));
  const ExtensionDone done = extend(
      {.seeds = "1", .columns = "{name: acc, metric: val/top1, heading: top-1}, {name: loss, metric: loss}"});
  EXPECT_EQ(done.trials.new_trials, 0u);
  EXPECT_EQ(done.trials.kept_trials, 2u);
  EXPECT_THAT(done.changes, ElementsAre(HasSubstr("the table alone: nothing runs again")));
  EXPECT_EQ(table().columns.size(), 2u);
  EXPECT_EQ(table().columns[0].heading, "top-1");
}

TEST_F(ExtensionTest, ACompletedTrialThatLacksANewColumnsMetricIsUnfilled) {
  submit(spec_of({.rows = {"a"}, .seeds = "1"}));
  FakeWorker worker = connect_one();
  complete(worker, worker.take_assigned().at(0).run(), 80);
  EXPECT_EQ(sweep().trials.unfilled, 0u);
  extend(
      {.rows = {"a"}, .seeds = "1", .columns = "{name: acc, metric: val/top1}, {name: loss, metric: loss}"});
  EXPECT_EQ(sweep().trials.unfilled, 1u);
}

TEST_F(ExtensionTest, WhatTrialsGetIsAnotherForThoseThatWait) {
  submit(spec_of({.rows = {"a"}, .seeds = "2"}));
  FakeWorker worker = connect_one();
  const auto first = worker.take_assigned().at(0).trial();
  extend({.rows = {"a"}, .seeds = "2", .more = "retry: {max: 3}\nlimits: {time: 60s}\n"});
  EXPECT_EQ(trial(first).max_retries, 0) << "it runs";
  EXPECT_EQ(trial(first == 1 ? 2 : 1).max_retries, 3);
  EXPECT_EQ(trial(first == 1 ? 2 : 1).time_limit, 60s);
}

TEST_F(ExtensionTest, APausedSweepStaysPausedACancelledOneIsRefusedAndARemovedOneIsNotThere) {
  submit(spec_of({.seeds = "1"}));
  answer_of([&](auto answer) { pause_sweep(*coordinator, "s", false, answer); });
  extend({.rows = {"a", "b", "c"}, .seeds = "1"});
  EXPECT_EQ(sweep().state, storage::SweepState::kPaused);
  FakeWorker worker = connect_one();
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  answer_of([&](auto answer) { cancel_sweep(*coordinator, "s", answer); });
  EXPECT_EQ(refusal({.seeds = "2"}).first, Code::kFailedPrecondition);
  answer_of([&](auto answer) { remove_sweep(*coordinator, "s", answer); });
  EXPECT_EQ(refusal({.seeds = "2"}).first, Code::kNotFound);
}

TEST_F(ExtensionTest, OfTwoWhoExtendAtOnceTheSecondLooksAgain) {
  submit(spec_of({.seeds = "1"}));
  const ExtensionDone seen = extend({.seeds = "2"}, {.dry_run = true});
  EXPECT_TRUE(seen.changed);
  EXPECT_EQ(seen.trials.new_trials, 2u);
  EXPECT_EQ(sweep().trials.total(), 2u) << "it was only asked";
  EXPECT_EQ(sweep().revision, 1u);
  extend({.rows = {"a", "b", "c"}, .seeds = "1"}, {.expected = seen.stored});
  EXPECT_EQ(refusal({.rows = {"a", "b", "c"}, .seeds = "2"}, {.expected = seen.stored}).first,
            Code::kAborted);
  EXPECT_FALSE(extend({.rows = {"a", "b", "c"}, .seeds = "1"}).changed) << "the same file again";
}

TEST_F(ExtensionTest, ItsHistoryIsKept) {
  submit(spec_of({.seeds = "1"}));
  extend({.seeds = "2"}, {.author = "ann"});
  extend({.rows = {"a", "b", "c"}, .seeds = "2"}, {.author = "bob"});
  const auto revisions = read([&](storage::Database& db) {
    const storage::SweepStore store{db};
    return store.revisions(store.get("s").id);
  });
  ASSERT_THAT(revisions, SizeIs(3));
  EXPECT_EQ(revisions[1].author, "ann");
  EXPECT_EQ(revisions[1].changes_json, R"(["seed 1: new"])");
  EXPECT_EQ(revisions[2].author, "bob");
  EXPECT_EQ(revisions[2].new_trials, 2u);
  EXPECT_EQ(revisions[0].text_sha256, sha256_hex(spec_of({.seeds = "1"}).text));
}

TEST_F(ExtensionTest, EachRevisionsFileCanBeRead) {
  const auto text = [&](std::uint32_t revision) {
    return read([&](storage::Database& db) { return views::sweep_text(db, "s", revision); });
  };
  submit(spec_of({.seeds = "1"}));
  EXPECT_EQ(text(1).text(), spec_of({.seeds = "1"}).text) << "of one that was never extended too";
  EXPECT_EQ(text(0).revision().revision(), 1u);
  EXPECT_EQ(text(0).revision().by(), sweep().owner);
  EXPECT_EQ(error_of([&] { text(2); }),
            "sweep s has no revision 2: it was never extended, and has revision 1 alone");
  extend({.seeds = "2"}, {.author = "ann"});
  EXPECT_EQ(text(1).text(), spec_of({.seeds = "1"}).text);
  EXPECT_EQ(text(2).text(), spec_of({.seeds = "2"}).text);
  EXPECT_EQ(text(0).text(), text(2).text());
  EXPECT_EQ(text(2).revision().by(), "ann");
  EXPECT_THAT(text(2).revision().changes(), testing::ElementsAre("seed 1: new"));
  EXPECT_EQ(text(2).revision().text_sha256(), sha256_hex(text(2).text()));
  EXPECT_EQ(error_of([&] { text(3); }), "sweep s has no revision 3: it has 1 to 2");
}

TEST_F(ExtensionTest, ARemovedSweepTakesItsFormerTrialsWithIt) {
  submit(spec_of({.rows = {"a"}, .seeds = "1"}));
  FakeWorker worker = connect_one();
  complete(worker, worker.take_assigned().at(0).run(), 80);
  extend({.rows = {"a"}, .seeds = "1", .version = "v2"});
  complete(worker, worker.take_assigned().at(0).run(), 85);
  answer_of([&](auto answer) { remove_sweep(*coordinator, "s", answer); });
  for (int step = 0; step < 20; ++step)
    writer->call([&](storage::Database& db) { storage::Removal{db}.step(clock.now(), 1000); });
  EXPECT_EQ(read([](storage::Database& db) {
              return db.prepared("SELECT (SELECT COUNT(*) FROM trial) + (SELECT COUNT(*) FROM run)")
                  .one([](const storage::Statement& row) { return row.integer(0); });
            }),
            0);
}

TEST_F(ExtensionTest, TheSchedulerGoesOnWithAnExtendedSweepAfterARestart) {
  submit(spec_of({.seeds = "1"}));
  extend({.rows = {"c", "a", "b"}, .seeds = "2"});
  stop();
  start();
  settle();
  FakeWorker worker = connect_one(6);
  EXPECT_THAT(worker.take_assigned(), SizeIs(6));
}

TEST_F(ExtensionTest, ASubmittedFileThatDiffersIsRefusedWithTheWordThatWouldDo) {
  submit(spec_of({.seeds = "1"}));
  EXPECT_THAT(submission({.seeds = "2"}).second,
              AllOf(HasSubstr("'ablate extend FILE'"), HasSubstr("seeds")));
  EXPECT_THAT(submission({.rows = {"a"}, .seeds = "1"}).second, testing::Not(HasSubstr("ablate extend")));
}

// --- budgets ---

TEST_F(ExtensionTest, BeyondItsGpuHoursNothingOfASweepIsLeasedAndWhatRunsComesToItsEnd) {
  submission({.seeds = "2"}, {.budget = {.gpu_time = 100s}});
  FakeWorker worker = connect_one();
  const auto first = worker.take_assigned().at(0);
  worker.take_said();
  for (int i = 0; i < 12; ++i) pass(10s), heartbeat(worker, {first.run()});
  EXPECT_THAT(worker.take_said(), IsEmpty()) << "nobody stops it";
  EXPECT_THAT(sweep().spent, HasSubstr("GPU hours"));
  complete(worker, first.run(), 80);
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_EQ(sweep().gpu_time, 120s);
  EXPECT_THAT(trial(2).reason, HasSubstr("budget spent"));
  EXPECT_EQ(resume({}), Code::kFailedPrecondition);
  stop();
  start();  // it is stored
  FakeWorker again = connect_one();
  EXPECT_THAT(again.take_assigned(), IsEmpty());
  EXPECT_EQ(resume({.gpu_time = 500s}), Code::kOk);
  settle();
  EXPECT_THAT(again.take_assigned(), SizeIs(1));
}

TEST_F(ExtensionTest, ABudgetIsLookedAtWhenARunEndsBeforeItsSlotIsGivenAway) {
  submission({.seeds = "3"}, {.budget = {.gpu_time = 1s}});
  FakeWorker worker = connect_one();
  const auto first = worker.take_assigned().at(0);
  clock.pass(2s);  // without a tick
  complete(worker, first.run(), 80);
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_THAT(sweep().spent, HasSubstr("GPU hours"));
}

TEST_F(ExtensionTest, FromAMomentOnNothingOfASweepIsLeasedAlsoWhereTheClockIsSetBack) {
  submission({.seeds = "2"}, {.budget = {.until = clock.now() + 5s}});
  pass(6s);
  clock.set(-60s);
  pass(2s);
  FakeWorker worker = connect_one();
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_THAT(trial(1).reason, HasSubstr("it was to run until"));
  EXPECT_EQ(resume({.until = Time{}}), Code::kOk);
  settle();
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "the limit is taken away";
}

TEST_F(ExtensionTest, ATrialOfASpentBudgetRunsForASweepThatHasMore) {
  submission({.rows = {"a"}, .seeds = "1", .reuse = true}, {.budget = {.until = clock.now() + 1s}});
  pass(2s);
  submit(spec_of({.name = "other", .rows = {"a"}, .seeds = "1", .reuse = true}));
  FakeWorker worker = connect_one();
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

}  // namespace
}  // namespace abl::scheduler
