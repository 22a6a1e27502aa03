// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tuning.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "storage/removal.h"
#include "storage/table.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using storage::RowTuning;
using storage::TunedPoint;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TunedPoint point(int number, std::vector<std::optional<double>> values, int rung = 0) {
  TunedPoint tried{.point = number,
                   .rung = rung,
                   .tuning_row = {},
                   .values = {{"lr", std::to_string(number)}},
                   .rung_value = "1",
                   .values_by_seed = std::move(values),
                   .trials = {},
                   .trouble = {}};
  tried.trials.completed = static_cast<std::uint32_t>(tried.values_by_seed.size());
  return tried;
}
RowTuning row_of(std::vector<TunedPoint> points) {
  return {.position = 0, .row = "a", .label = "a", .points = std::move(points), .choice = {}};
}
sweeps::Tune lower() {
  sweeps::Tune tune;
  tune.metric = "val/loss";
  tune.better = protocol::Better::kLower;
  return tune;
}

TEST(TuningStep, ThePointWithTheBestMeanIsChosenAndOfEqualOnesTheFirst) {
  const auto step = next_step(row_of({point(0, {3, 1}), point(1, {1, 2}), point(2, {2, 1})}), lower(), {3});
  ASSERT_TRUE(step.choice);
  EXPECT_EQ(step.choice->point, 1);
  EXPECT_EQ(step.choice->value, 1.5);
  EXPECT_EQ(step.choice->completed, 3);
  sweeps::Tune higher = lower();
  higher.better = protocol::Better::kHigher;
  EXPECT_EQ(next_step(row_of({point(0, {3, 1}), point(1, {1, 2})}), higher, {2}).choice->point, 0);
}

TEST(TuningStep, APointWithoutAValueOfEachSeedIsNeverTheBest) {
  TunedPoint failed = point(0, {0.1, std::nullopt});
  failed.trouble = "seed 101 diverged";
  const auto step = next_step(row_of({failed, point(1, {5, 5})}), lower(), {2});
  ASSERT_TRUE(step.choice);
  EXPECT_EQ(step.choice->point, 1);
  EXPECT_EQ(step.choice->completed, 1);
  EXPECT_EQ(step.choice->budget, 2);
  EXPECT_THAT(step.choice->why, HasSubstr("1 of 2 points without a value (point 0: seed 101 diverged)"));
  const auto none = next_step(row_of({failed}), lower(), {1});
  ASSERT_TRUE(none.choice);
  EXPECT_FALSE(none.choice->point);
  EXPECT_THAT(none.choice->why, HasSubstr("cannot be tuned"));
}

TEST(TuningStep, NothingIsChosenWhileATrialWaitsRunsOrIsHeld) {
  for (auto state :
       {&storage::TrialCounts::queued, &storage::TrialCounts::running, &storage::TrialCounts::held}) {
    TunedPoint open = point(1, {1});
    open.trials = {};
    open.trials.*state = 1;
    EXPECT_TRUE(next_step(row_of({point(0, {1}), open}), lower(), {2}).waits);
  }
}

TEST(TuningStep, TheBetterPointsGoOnToTheNextRungAndTheBestOfTheLastIsChosen) {
  RowTuning row = row_of({point(0, {4}), point(1, {1}), point(2, {3}), point(3, {2})});
  const auto first = next_step(row, lower(), {4, 2});
  EXPECT_EQ(first.rung, 1);
  EXPECT_THAT(first.begin, ElementsAre(1, 3));
  EXPECT_FALSE(first.choice);
  row.points.push_back(point(1, {0.9}, 1));
  row.points.push_back(point(3, {0.8}, 1));
  const auto last = next_step(row, lower(), {4, 2});
  ASSERT_TRUE(last.choice);
  EXPECT_EQ(last.choice->point, 3) << "of those with all epochs, whatever was best before";
  EXPECT_EQ(last.choice->completed, 4);
}

constexpr const char* kTune =
    "tune: {params.lr: [0.1, 0.2, 0.3], budget: 3, metric: val/top1, on: seeds 100-101, held_out: "
    "{params.split: tune}}\n";

struct TunedFile {
  std::string name = "s", seeds = "2", tune = kTune;
  std::vector<std::string> rows = {"a", "b"};
};
sweeps::SweepSpec tuned_spec(const TunedFile& file) {
  std::string text = fmt::format(
      "ablate: 1\nname: {}\ncommand: {{argv: [train, '{{params.lr}}', '{{params.row}}', '{{params.split}}'], "
      "folder: '{{run_dir}}', params: {{lr: 0, row: x, split: all}}, version: v1, reuse: true}}\nseeds: {}\n"
      "table: {{columns: [{{name: acc, metric: val/top1}}]}}\n{}rows:\n",
      file.name, file.seeds, file.tune);
  for (const std::string& row : file.rows)
    text += fmt::format("  - {{id: {0}, set: {{params.row: {0}}}}}\n", row);
  return sweeps::parse_sweep(text, file.name + ".yaml", "/somewhere");
}

class TuningTest : public CoordinatorTest {
 protected:
  /// What a trial measures; nothing: it fails.
  using Measures = std::function<std::optional<double>(const nlohmann::json& params, std::int64_t seed)>;

  /// Trains whatever is assigned, until nothing is, or so many.
  int train(FakeWorker& worker, const Measures& measures, int most = 1000) {
    int trained = 0;
    while (trained < most) {
      const auto assigned = worker.take_assigned();
      if (assigned.empty()) break;
      for (const auto& assign : assigned) {
        ++trained;
        const auto config = nlohmann::json::parse(trial(assign.trial()).config);
        const auto value = measures(config.at("params"), config.at("seed").get<std::int64_t>());
        ablate::v1::RunBatch begun = batch_of(assign.run(), 1);
        begun.mutable_started()->set_bit_exact(true);
        say(worker, begun);
        if (value) say(worker, measured(assign.run(), 2, *value));
        say(worker, value ? ended(assign.run(), 3)
                          : ended(assign.run(), 2, ablate::v1::RunEnded::STATUS_FAILED, "exploded", false));
      }
    }
    return trained;
  }
  void complete(FakeWorker& worker, std::uint32_t run, double value) {
    ablate::v1::RunBatch begun = batch_of(run, 1);
    begun.mutable_started()->set_bit_exact(true);
    say(worker, begun);
    say(worker, measured(run, 2, value));
    say(worker, ended(run, 3));
  }
  static double lr_of(const nlohmann::json& params) { return std::stod(params.at("lr").dump()); }
  /// Row a is best at 0.2, row b at 0.3.
  static std::optional<double> usual(const nlohmann::json& params, std::int64_t seed) {
    const double best = params.at("row") == "a" ? 0.2 : 0.3;
    return 90 - 100 * std::abs(lr_of(params) - best) + 0.01 * static_cast<double>(seed % 10);
  }
  FakeWorker connect_one() { return connect({.slots = 1, .data = {}, .allows_commands = true}); }
  storage::SweepRecord sweep(const std::string& name = "s") {
    return read([&](storage::Database& db) { return storage::SweepStore{db}.get(name); });
  }
  storage::SweepTuning tuning(const std::string& name = "s") {
    return read([&](storage::Database& db) {
      return storage::TuningStore{db}.read(storage::SweepStore{db}.get(name).id).value();
    });
  }
  /// "a 0 lr=0.2 all": row, seed and what it trains, of each trial of a sweep.
  std::vector<std::string> trials(const std::string& name = "s") {
    return read([&](storage::Database& db) {
      const storage::SweepStore store{db};
      std::vector<std::string> all;
      for (const auto& claim : store.claims(store.get(name).id)) {
        const auto params =
            nlohmann::json::parse(storage::TrialStore{db}.get(claim.trial).config).at("params");
        all.push_back(fmt::format("{} {} lr={} {}", claim.row_id, claim.seed, params.at("lr").dump(),
                                  params.at("split").get<std::string>()));
      }
      return all;
    });
  }
  std::pair<Code, std::string> retry(const std::string& name, const std::string& row = "") {
    return settled(answer_of([&](auto told) { retry_sweep(*coordinator, name, row, {}, told); }));
  }
  std::pair<Code, std::string> cancel(const std::string& name) {
    return settled(answer_of([&](auto told) { cancel_sweep(*coordinator, name, told); }));
  }
  std::pair<Code, std::string> remove(const std::string& name) {
    return settled(answer_of([&](auto told) { remove_sweep(*coordinator, name, told); }));
  }
  std::pair<Code, std::string> rename(const std::string& name, const std::string& to) {
    return settled(answer_of([&](auto told) { rename_sweep(*coordinator, name, to, told); }));
  }
  std::pair<Code, std::string> extend(const TunedFile& file) {
    const sweeps::SweepSpec spec = tuned_spec(file);
    const ExtensionWish wish;
    return settled(answer_of([&](auto told) { extend_sweep(*coordinator, spec, wish, told); }));
  }
  std::pair<Code, std::string> settled(std::pair<Code, std::string> answer) {
    settle();
    return answer;
  }
  /// What the store's machine does after the end of the first trial of this tuning.
  std::int64_t cost_of_an_end(const std::string& tuning) {
    return writer->call([&](storage::Database& db) {
      const storage::SweepStore store{db};
      const auto claims = store.claims(store.get(tuning).id);
      const std::int64_t before = db.steps();
      tune_after(db, claims.front().trial, clock.now());
      return db.steps() - before;
    });
  }
};

TEST_F(TuningTest, ARowGetsItsTrialsAtItsBestValuesWhenItsLastTuningTrialHasEnded) {
  EXPECT_EQ(submit(tuned_spec({})).new_trials, 12u);
  EXPECT_THAT(trials(), IsEmpty());
  EXPECT_EQ(sweep().tuning->trials.total(), 12u);
  EXPECT_EQ(sweep().tuning->open, 2u);
  EXPECT_EQ(sweep("s.tuning").tunes, "s");
  EXPECT_FALSE(sweep().finished) << "it has not begun";
  FakeWorker worker = connect_one();
  train(worker, usual, 11);
  EXPECT_EQ(trials().size(), 2u) << "row a is tuned, row b not yet";
  train(worker, usual);
  EXPECT_THAT(trials(), ElementsAre("a 0 lr=0.2 all", "a 1 lr=0.2 all", "b 0 lr=0.3 all", "b 1 lr=0.3 all"));
  EXPECT_EQ(sweep().tuning->open, 0u);
  EXPECT_TRUE(sweep().finished);
  const auto tuned = tuning();
  ASSERT_THAT(tuned.rows, SizeIs(2));
  EXPECT_EQ(tuned.rows[0].choice->values.at("params.lr"), "0.2");
  EXPECT_EQ(tuned.rows[0].choice->completed, 3);
  EXPECT_NEAR(*tuned.rows[0].choice->value, 90.005, 1e-9);
  EXPECT_EQ(read([](storage::Database& db) { return storage::read_table(db, "s"); }).rows[0].cells[0].n, 2u);
}

TEST_F(TuningTest, ARowOfWhichEveryPointFailsIsNotTrainedAtTheDefaultAndIsTunedAnewByARetry) {
  submit(tuned_spec({}));
  FakeWorker worker = connect_one();
  train(worker, [](const nlohmann::json& params, std::int64_t seed) {
    return params.at("row") == "b" ? std::nullopt : usual(params, seed);
  });
  EXPECT_THAT(trials(), ElementsAre("a 0 lr=0.2 all", "a 1 lr=0.2 all"));
  EXPECT_EQ(sweep().tuning->failed, 1u);
  EXPECT_THAT(tuning().rows[1].choice->why, HasSubstr("cannot be tuned: 3 of 3 points without a value"));
  EXPECT_EQ(retry("s", "b").first, Code{});
  EXPECT_EQ(sweep().tuning->open, 1u);
  train(worker, usual);
  EXPECT_THAT(trials(), ElementsAre("a 0 lr=0.2 all", "a 1 lr=0.2 all", "b 0 lr=0.3 all", "b 1 lr=0.3 all"));
}

TEST_F(TuningTest, WhatWasChosenStaysThoughATuningTrialIsRetriedAndComesOutBetter) {
  submit(tuned_spec({.rows = {"a"}}));
  FakeWorker worker = connect_one();
  train(worker, [](const nlohmann::json& params, std::int64_t seed) {
    return lr_of(params) == 0.3 ? std::nullopt : usual(params, seed);
  });
  EXPECT_EQ(tuning().rows[0].choice->completed, 2);
  const std::string why = tuning().rows[0].choice->why;
  EXPECT_THAT(why, HasSubstr("failed"));
  EXPECT_EQ(retry("s.tuning").first, Code{});
  EXPECT_EQ(train(worker, [](const nlohmann::json&, std::int64_t) { return 99.0; }), 2);
  EXPECT_EQ(tuning().rows[0].choice->why, why);
  EXPECT_THAT(trials(), ElementsAre("a 0 lr=0.2 all", "a 1 lr=0.2 all"));
}

TEST_F(TuningTest, ASchedulerThatBeginsAnewGoesOnWhereTheTuningWas) {
  submit(tuned_spec({.rows = {"a"}}));
  {
    FakeWorker worker = connect_one();
    train(worker, usual, 5);
    disconnect(worker);
  }
  stop();
  start();
  pass(120s);
  FakeWorker worker = connect_one();
  train(worker, usual);
  EXPECT_THAT(trials(), ElementsAre("a 0 lr=0.2 all", "a 1 lr=0.2 all"));
}

TEST_F(TuningTest, TheSameTuningTrialIsNotTrainedAgainForAnotherSweep) {
  submit(tuned_spec({}));
  FakeWorker worker = connect_one();
  train(worker, usual);
  const Submission again = submit(tuned_spec({.name = "t", .seeds = "3"}));
  EXPECT_EQ(again.new_trials, 0u) << "its tuning is stored";
  EXPECT_THAT(trials("t"), SizeIs(6)) << "and so is what follows";
  EXPECT_EQ(sweep("t").trials.completed, 4u);
  EXPECT_EQ(train(worker, usual), 2) << "the third seed of each row";
}

TEST_F(TuningTest, ToCancelASweepEndsItsTuningAndARetryTakesItUpAgain) {
  submit(tuned_spec({.rows = {"a"}}));
  FakeWorker worker = connect_one();
  train(worker, usual, 2);
  EXPECT_EQ(cancel("s").first, Code{});
  EXPECT_EQ(sweep("s.tuning").state, storage::SweepState::kCancelled);
  EXPECT_THAT(trials(), IsEmpty());
  EXPECT_EQ(retry("s").first, Code{});
  disconnect(worker);
  pass(60s);
  FakeWorker other = connect_one();
  train(other, usual);
  EXPECT_THAT(trials(), ElementsAre("a 0 lr=0.2 all", "a 1 lr=0.2 all"));
}

TEST_F(TuningTest, ASweepThatIsExtendedTunesTheNewRowAndKeepsWhatWasChosen) {
  submit(tuned_spec({.rows = {"a"}}));
  FakeWorker worker = connect_one();
  train(worker, usual);
  EXPECT_EQ(extend({.seeds = "3"}).first, Code{});
  EXPECT_THAT(trials(), ElementsAre("a 0 lr=0.2 all", "a 1 lr=0.2 all", "a 2 lr=0.2 all"));
  EXPECT_EQ(train(worker, usual), 1 + 6 + 3) << "a seed of row a, row b's tuning, its seeds";
  EXPECT_THAT(trials(), SizeIs(6));
  const std::string other =
      "tune: {params.lr: [0.1, 0.2], budget: 2, metric: val/top1, on: seeds 100-101, held_out: "
      "{params.split: "
      "tune}}\n";
  const auto refused = extend({.seeds = "3", .tune = other});
  EXPECT_EQ(refused.first, Code::kFailedPrecondition);
  EXPECT_THAT(refused.second, HasSubstr("how rows are tuned is declared before there are results"));
}

TEST_F(TuningTest, WhatTheTuningTakesCountsToTheBudgetOfTheSweep) {
  const sweeps::SweepSpec spec = tuned_spec({});
  Standing standing;
  standing.budget.gpu_time = 3s;
  settled(answer_of([&](auto told) { submit_sweep(*coordinator, spec, standing, told); }));
  FakeWorker worker = connect_one();
  for (int i = 0; i < 5 && sweep().spent.empty(); ++i) {
    const auto assigned = worker.take_assigned();
    if (assigned.empty()) break;
    clock.pass(1s);
    complete(worker, assigned.at(0).run(), 50);
  }
  EXPECT_THAT(sweep("s.tuning").spent, HasSubstr("budget spent"));
  EXPECT_THAT(sweep().spent, HasSubstr("budget spent"));
  storage::Budget more;
  more.gpu_time = 10h;
  EXPECT_EQ(settled(answer_of([&](auto told) { resume_sweep(*coordinator, "s", more, told); })).first,
            Code{});
  train(worker, usual);
  EXPECT_EQ(sweep().tuning->open, 0u);
}

TEST_F(TuningTest, RowsWhoseTuningAloneIsCancelledCannotBeTunedAndSaySo) {
  submit(tuned_spec({.rows = {"a"}}));
  FakeWorker worker = connect_one();
  train(worker, usual, 2);
  EXPECT_EQ(cancel("s.tuning").first, Code{});
  EXPECT_EQ(sweep().tuning->open, 0u);
  EXPECT_EQ(tuning().rows[0].choice->completed, 0) << "a point has two seeds";
  EXPECT_EQ(sweep().tuning->failed, 1u);
}

TEST_F(TuningTest, ATuningThatEndsWithoutARunIsDecidedByTheNextTick) {
  submit(tuned_spec({.rows = {"a"}}));
  writer->call([](storage::Database& db) { db.execute("UPDATE trial SET state = 'failed'"); });
  EXPECT_EQ(sweep().tuning->open, 1u);
  pass(2s);
  EXPECT_EQ(sweep().tuning->failed, 1u);
}

TEST_F(TuningTest, ASweepWhoseTuningCannotBeReadHoldsUpNoOther) {
  submit(tuned_spec({.name = "bad", .rows = {"c"}}));
  submit(tuned_spec({.rows = {"a"}}));
  writer->call([](storage::Database& db) {
    db.execute(
        R"sql(UPDATE sweep_tuning SET tune = '{"metric": 3}' WHERE sweep_id = (SELECT id FROM sweep WHERE name = 'bad');
                     UPDATE trial SET state = 'failed')sql");
  });
  pass(2s);
  EXPECT_EQ(sweep().tuning->failed, 1u) << "the next one is decided";
  EXPECT_EQ(sweep("bad").tuning->failed, 1u);
  EXPECT_EQ(sweep("bad").tuning->open, 0u) << "it is said once, not each second";
}

TEST_F(TuningTest, TheEndOfAPointCostsTheSameHoweverManyPointsARowHas) {
  const auto cost_of = [&](const std::string& name, int points) {
    submit(tuned_spec(
        {.name = name,
         .tune = fmt::format("tune: {{params.lr: {{min: 0, max: 1}}, budget: {}, metric: val/top1, on: "
                             "seeds 100-101, held_out: {{params.split: tune}}}}\n",
                             points),
         .rows = {name}}));
    return cost_of_an_end(name + ".tuning");
  };
  cost_of("warm", 2);
  const auto few = cost_of("few", 4), many = cost_of("many", 120);
  EXPECT_LT(many, few + few / 2);
}

TEST_F(TuningTest, TheEndOfATuningTrialCostsItsRowHoweverManyRowsTheSweepHas) {
  const auto cost_of = [&](const std::string& name, int rows) {
    TunedFile file{.name = name, .rows = {}};
    for (int row = 0; row < rows; ++row) file.rows.push_back(fmt::format("{}{}", name, row));
    submit(tuned_spec(file));
    return cost_of_an_end(name + ".tuning");
  };
  cost_of("warm", 1);  // statements are prepared
  const auto few = cost_of("few", 2), many = cost_of("many", 60);
  EXPECT_LT(many, few + few / 2);
}

TEST_F(TuningTest, ADecisionCostsItsRowHoweverManyRowsTheSweepHas) {
  const auto cost_of = [&](const std::string& name, int rows) {
    TunedFile file{.name = name, .seeds = "{min: 2, max: 4, until: \"ci(acc) < 0.001\"}", .rows = {}};
    for (int row = 0; row < rows; ++row) file.rows.push_back(fmt::format("{}{}", name, row));
    submit(tuned_spec(file));
    const auto cost = writer->call([&](storage::Database& db) {
      const storage::TuningStore tuning{db};
      const storage::SweepStore store{db};
      storage::TrialId last = 0;
      for (const auto& claim : store.claims(store.get(name + ".tuning").id)) {
        const auto waiting = tuning.waiting_for(claim.trial);
        if (waiting.empty() || waiting.front().second != file.rows.front()) continue;
        complete_stored(db, last = claim.trial, 1);
      }
      const std::int64_t before = db.steps();
      tune_after(db, last, clock.now());
      return db.steps() - before;
    });
    EXPECT_EQ(sweep(name).tuning->open, static_cast<std::uint32_t>(rows - 1));
    EXPECT_EQ(sweep(name).trials.total(), 2u) << "the row begins with two seeds";
    return cost;
  };
  cost_of("warm", 2);
  const auto few = cost_of("few", 2), many = cost_of("many", 60);
  EXPECT_LT(many, few + few / 2);
}

TEST_F(TuningTest, ARowThatIsTunedGetsSeedsUntilEnoughIsKnown) {
  submit(tuned_spec({.seeds = "{min: 2, max: 4, until: \"ci(acc) < 0.001\"}", .rows = {"a"}}));
  FakeWorker worker = connect_one();
  train(worker, usual);
  EXPECT_EQ(trials(), (std::vector<std::string>{"a 0 lr=0.2 all", "a 1 lr=0.2 all", "a 2 lr=0.2 all",
                                                "a 3 lr=0.2 all"}));
}

TEST_F(TuningTest, ASearchThatIsExtendedTrainsTheNewPointsAloneAndFindsTheBestOfAll) {
  const auto search = [](int trials) {
    return sweeps::parse_sweep(
        fmt::format(
            "ablate: 1\nname: s\ncommand: {{argv: [train, '{{params.lr}}'], folder: '{{run_dir}}', params: "
            "{{lr: 0, row: a}}, version: v1, reuse: true}}\nsearch: {{over: {{params.lr: {{min: 0, max: "
            "1}}}}, "
            "trials: {}, metric: val/top1, seeds: [0, 1]}}\n",
            trials),
        "s.yaml", "/somewhere");
  };
  submit(search(2));
  FakeWorker worker = connect_one();
  EXPECT_EQ(train(worker, usual), 4);
  EXPECT_TRUE(sweep().finished);
  const double before = *tuning().rows.at(0).choice->value;
  const sweeps::SweepSpec more = search(8);
  const ExtensionWish wish;
  EXPECT_EQ(settled(answer_of([&](auto told) { extend_sweep(*coordinator, more, wish, told); })).first,
            Code{});
  EXPECT_EQ(train(worker, usual), 12);
  const auto choice = tuning().rows.at(0).choice.value();
  EXPECT_EQ(choice.completed, 8);
  EXPECT_GT(*choice.value, before);
  EXPECT_THAT(trials(), IsEmpty());
}

TEST_F(TuningTest, ASweepIsRemovedWithItsTuning) {
  submit(tuned_spec({}));
  FakeWorker worker = connect_one();
  train(worker, usual);
  EXPECT_EQ(remove("s.tuning").first, Code::kFailedPrecondition);
  EXPECT_EQ(rename("s", "r").first, Code{});
  EXPECT_EQ(sweep("r.tuning").tunes, "r");
  EXPECT_EQ(remove("r").first, Code{});
  stop();
  {
    storage::Database db{folder / "results.db", storage::Database::Mode::kWrite};
    while (storage::Removal{db}.step(clock.now()) != storage::Removal::Step::kDone) {
    }
    const auto left =
        db.prepared(
              "SELECT (SELECT COUNT(*) FROM sweep) + (SELECT COUNT(*) FROM trial) + (SELECT COUNT(*) "
              "FROM tuning_point) + (SELECT COUNT(*) FROM tuning_choice)")
            .one([](const storage::Statement& row) { return row.integer(0); });
    EXPECT_EQ(left, 0);
  }
  start();
}

}  // namespace
}  // namespace abl::scheduler
