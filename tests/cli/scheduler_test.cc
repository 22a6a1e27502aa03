// SPDX-License-Identifier: Apache-2.0
// The real program against a real scheduler in this process; no worker, so nothing trains.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ablate/v1/sweeps.grpc.pb.h"
#include "base/error.h"
#include "scheduler/server.h"
#include "storage/database.h"
#include "tests/cli/pseudo_terminal.h"
#include "tests/cli/run_ablate.h"

namespace abl::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class WithScheduler : public testing::Test {
 protected:
  WithScheduler() {
    std::filesystem::create_directories(home_.folder() / "run");
    std::filesystem::permissions(home_.folder() / "run", std::filesystem::perms::owner_all);
    scheduler::ServerOptions options;
    options.scheduler.store = home_.folder() / "results.db";
    options.listen = {"unix:" + (home_.folder() / "run" / "scheduler.sock").string()};
    server_.emplace(options);
  }
  nlohmann::json json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Outcome outcome = home_.run(arguments);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }

  Home home_;
  std::optional<scheduler::SchedulerServer> server_;
  std::filesystem::path sweep_ = home_.file("sweep.yaml", kSweep);
};

TEST_F(WithScheduler, UpSaysWhoseTheSchedulerIsThatItDidNotStart) {
  for (const bool detached : {false, true}) {
    std::vector<std::string> words{"up"};
    if (detached) words.emplace_back("--detach");
    const Outcome outcome = home_.run(words);
    EXPECT_EQ(outcome.code, exit_code(Code::kUnavailable)) << outcome.out;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("a scheduler that 'ablate up' did not start has " +
                                             (home_.folder() / "run" / "scheduler.sock").string()),
                                   HasSubstr(fmt::format("process {} (", ::getpid())),
                                   HasSubstr("ablate-worker --scheduler")));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(home_.run({"ls"}).code, kExitOk) << "it was left alone";
}

TEST_F(WithScheduler, ASweepIsSubmittedOnce) {
  const auto first = json({"submit", sweep_}), second = json({"submit", sweep_});
  EXPECT_TRUE(first.at("created").get<bool>());
  EXPECT_EQ(first.at("new_trials"), 4);
  EXPECT_FALSE(second.at("created").get<bool>());
  const Outcome list = home_.run({"ls"});
  EXPECT_THAT(list.out, AllOf(HasSubstr("two-rows"), HasSubstr("active"), HasSubstr("0/4")));
  EXPECT_EQ(home_.run({"ls", "--names"}).out, "two-rows\n");
}

TEST_F(WithScheduler, ASweepIsFoundByWhatIsSaidOfIt) {
  home_.run({"submit", sweep_, "--tag", "paper"});
  std::string text = kSweep;
  text.replace(text.find("two-rows"), 8, "tow-rows");
  home_.run({"submit", home_.file("other.yaml", text)});
  EXPECT_EQ(home_.run({"ls", "--names"}).out, "tow-rows\ntwo-rows\n");
  EXPECT_EQ(home_.run({"ls", "--names", "--tag", "paper"}).out, "two-rows\n");
  const auto notes = home_.file("notes.md", "Groups above 8 *diverge*.\n");
  const Outcome pinned =
      home_.run({"annotate", "two-rows", "--pin", "--tag", "msf/1", "--untag", "paper", "--notes", notes});
  EXPECT_THAT(pinned.out, HasSubstr("two-rows: tags msf/1, pinned\n"));
  EXPECT_EQ(home_.run({"ls", "--names"}).out, "two-rows\ntow-rows\n");
  EXPECT_THAT(home_.run({"ls"}).out, HasSubstr("pinned; msf/1"));
  EXPECT_THAT(home_.run({"show", "two-rows"}).out,
              AllOf(HasSubstr("tags: msf/1"), HasSubstr("Groups above 8 *diverge*.")));
  home_.run({"cancel", "two-rows"});
  EXPECT_THAT(home_.run({"annotate", "two-rows", "--archive"}).out, HasSubstr("archived"));
  const Outcome list = home_.run({"ls", "--names"});
  EXPECT_EQ(list.out, "tow-rows\n");
  EXPECT_THAT(list.err, HasSubstr("1 archived sweep not listed: ablate ls --archived"));
  EXPECT_EQ(home_.run({"ls", "--names", "--archived"}).out, "two-rows\n");
  EXPECT_EQ(home_.run({"ls", "--names", "two-rows"}).out, "two-rows\n") << "it was asked for by name";

  const auto refused = [&](std::vector<std::string> words, const char* why) {
    const Outcome outcome = home_.run(words);
    EXPECT_EQ(outcome.code, exit_code(Code::kInvalidArgument)) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refused({"annotate", "two-rows"}, "nothing to change");
  refused({"annotate", "two-rows", "--pin", "--unpin"}, "excludes --unpin");
  refused({"annotate", "two-rows", "--tag", "two words"}, "invalid tag 'two words'");
  refused({"annotate", "two-rows", "--notes", home_.file("bytes.md", "\xff\xfe")}, "not UTF-8 text");
  EXPECT_NE(home_.run({"annotate", "two-rows", "--notes", "nowhere.md"}).code, kExitOk);
  EXPECT_THAT(home_.run({"annotate", "tow-row", "--pin"}).err, HasSubstr("did you mean 'tow-rows'"));
}

TEST_F(WithScheduler, AListTellsScriptsWhetherSweepsHaveAllTheirValues) {
  home_.run({"submit", sweep_});
  std::string text = kSweep;
  text.replace(text.find("two-rows"), 8, "tow-rows");
  home_.run({"submit", home_.file("other.yaml", text)});
  EXPECT_EQ(home_.run({"ls", "two-rows", "--names"}).out, "two-rows\n");
  EXPECT_EQ(home_.run({"ls"}).code, kExitOk);
  EXPECT_EQ(home_.run({"ls", "--exit-code"}).code, kExitFailed) << "nothing has run yet";
  const auto change = [&](const char* sql) {
    storage::Database{home_.folder() / "results.db", storage::Database::Mode::kWrite}.execute(sql);
  };
  change("UPDATE trial SET state = 'completed'");
  EXPECT_EQ(home_.run({"ls", "--exit-code"}).code, kExitOk);
  change("UPDATE sweep_trial SET unfilled = 1 WHERE sweep_id = 1 AND row = 0");
  const Outcome lacks = home_.run({"ls", "--exit-code"});
  EXPECT_EQ(lacks.code, kExitFailed) << "a completed trial did not report a metric";
  EXPECT_THAT(lacks.out, AllOf(HasSubstr("incomplete"), HasSubstr("missing")))
      << "the list is printed all the same";
  EXPECT_EQ(home_.run({"ls", "--exit-code", "--json"}).code, kExitFailed);
  EXPECT_EQ(home_.run({"ls", "tow-rows", "--exit-code"}).code, kExitOk) << "of the listed ones";
  const Outcome unknown = home_.run({"ls", "two-row"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_EQ(unknown.err, "error: unknown sweep 'two-row'; did you mean 'two-rows'?\n");
}

TEST_F(WithScheduler, EverySweepIsListedHoweverManyThereAre) {
  constexpr auto kMany = R"sql(
      WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 25000)
      INSERT INTO sweep (name, file, text, canonical, canonical_hash, baseline, paper_heading, state, state_ms, priority, created_ms)
      SELECT 'n' || x, '', '', '{}', '', '', '', 'active', 0, 0, 0 FROM n)sql";
  storage::Database{home_.folder() / "results.db", storage::Database::Mode::kWrite}.execute(kMany);
  const Outcome list = home_.run({"ls", "--names"});
  EXPECT_EQ(std::ranges::count(list.out, '\n'), 25'000);
  EXPECT_THAT(list.out, testing::EndsWith("\nn1\n"));
  const auto all = json({"ls"});
  EXPECT_EQ(all.at("left_out"), 0);
  EXPECT_EQ(all.at("next"), "");
}

constexpr const char* kPaperRows = R"(ablate: 1
name: paper-rows
base:
  model: {preset: simple-vit-ti}
  data: {name: cifar10}
  recipe: {use: cifar-lite}
rows:
  - {id: before, group: Others, not_trained: {kind: cited, why: "as its authors report it"}, paper: {acc: "81.0"}}
  - {id: a, group: Ours, set: {}, paper: {acc: {text: "80.1", mark: bold}}}
  - {id: b, group: Ours, set: {model.depth: 3}, paper: {acc: {text: "79.9", mark: doubtful, why: "a slip"}}}
  - {id: after, group: Ours, not_trained: {kind: task, why: "segmentation"}}
seeds: 2
table:
  baseline: {Ours: a}
  notes: ["Read with care."]
  columns: [{name: acc, metric: val/top1}]
)";

TEST_F(WithScheduler, RowsThatAreNotTrainedStandInTheTableAndQueueNothing) {
  const auto submitted = json({"submit", home_.file("paper.yaml", kPaperRows)});
  EXPECT_EQ(submitted.at("new_trials"), 4);
  EXPECT_EQ(submitted.at("sweep").at("trials").at("total"), 4);
  EXPECT_EQ(json({"show", "paper-rows"}).at("trials").size(), 4u);
  EXPECT_THAT(home_.run({"ls"}).out, HasSubstr("0/4"));
  const auto table = json({"table", "paper-rows"});
  ASSERT_EQ(table.at("rows").size(), 4u);
  EXPECT_EQ(table.at("rows")[0].at("group"), "Others");
  EXPECT_EQ(table.at("rows")[0].at("not_trained"), "cited");
  EXPECT_EQ(table.at("rows")[0].at("cells")[0].at("of"), 0);
  EXPECT_EQ(table.at("rows")[0].at("baseline"), "");
  EXPECT_EQ(table.at("rows")[2].at("baseline"), "a");
  EXPECT_EQ(table.at("rows")[1].at("cells")[0].at("paper_mark"), "bold");
  EXPECT_EQ(table.at("rows")[2].at("cells")[0].at("paper_why"), "a slip");
  EXPECT_EQ(table.at("notes")[0], "Read with care.");
  EXPECT_EQ(table.at("notes")[1], "row before: not trained here: as its authors report it");
  EXPECT_FALSE(json({"submit", home_.file("paper.yaml", kPaperRows)}).at("created").get<bool>());
}

TEST_F(WithScheduler, ASweepIsCompleteWhenTheRowsThatAreTrainedAre) {
  home_.run({"submit", home_.file("paper.yaml", kPaperRows)});
  storage::Database{home_.folder() / "results.db", storage::Database::Mode::kWrite}.execute(
      "UPDATE trial SET state = 'completed'");
  EXPECT_EQ(home_.run({"ls", "paper-rows", "--exit-code"}).code, kExitOk);
}

TEST_F(WithScheduler, ASweepOfWhichNoRowIsTrainedIsRefusedInOneLine) {
  std::string text = kPaperRows;
  for (const char* set : {"set: {}", "set: {model.depth: 3}"})
    text.replace(text.find(set), std::string{set}.size(), "not_trained: {kind: task, why: detection}");
  const auto file = home_.file("none.yaml", text);
  const Outcome outcome = home_.run({"submit", file});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no row is trained (row before: as its authors report it)"));
  EXPECT_EQ(home_.run({"plan", file}).code, kExitOk);
  EXPECT_EQ(json({"ls"}).at("sweeps").size(), 0u);
}

TEST_F(WithScheduler, AnotherContentUnderTheSameNameIsRefused) {
  home_.run({"submit", sweep_});
  std::string text = kSweep;
  text.replace(text.find("epochs: 1"), 9, "epochs: 2");
  const Outcome outcome = home_.run({"submit", home_.file("other.yaml", text)});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("two-rows"), HasSubstr("epochs")));
}

TEST_F(WithScheduler, AWrongFileIsRefusedWithThePlacesOfItsProblems) {
  std::string text = kSweep;
  text.replace(text.find("seeds:"), 6, "sedes:");
  const auto file = home_.file("bad.yaml", text);
  for (const char* command : {"submit", "plan", "validate"}) {
    const Outcome outcome = home_.run({command, file});
    EXPECT_EQ(outcome.code, kExitUsage) << command;
    EXPECT_THAT(outcome.err, testing::StartsWith(file.string() + ":10:")) << command;
  }
}

TEST_F(WithScheduler, WithJsonTheProblemsOfASubmittedFileHaveTheirPlaces) {
  std::string text = kSweep;
  text.replace(text.find("seeds:"), 6, "sedes:");
  const auto file = home_.file("bad.yaml", text);
  for (const char* command : {"submit", "plan"}) {
    const Outcome outcome = home_.run({command, file, "--json"});
    EXPECT_EQ(outcome.code, kExitUsage) << command;
    const auto error = nlohmann::json::parse(outcome.out).at("error");
    EXPECT_EQ(error.at("code"), "INVALID_ARGUMENT");
    EXPECT_EQ(error.at("problems").at(0).at("line"), 10) << command;
    EXPECT_EQ(error.at("problems").at(0).at("nearest"), "seeds") << command;
  }
  const Outcome absent = home_.run({"show", "absent", "--json"});
  EXPECT_EQ(absent.code, kExitUsage);
  EXPECT_EQ(nlohmann::json::parse(absent.out).at("error").at("code"), "NOT_FOUND");
}

/// What a client sees of calls that a scheduler drops when it stops.
class Dropping final : public ablate::v1::Sweeps::Service {
  grpc::Status ListSweeps(grpc::ServerContext*, const ablate::v1::ListSweepsRequest*,
                          ablate::v1::ListSweepsResponse*) override {
    return grpc::Status::CANCELLED;
  }
};

TEST(Client, ASchedulerThatStopsBeforeItAnswersIsNoInterruptionOfOurs) {
  Home home;
  const std::string address = "unix:" + (home.folder() / "s").string();
  Dropping service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto outcome = home.run({"ls", "--scheduler", address});
  EXPECT_EQ(outcome.code, kExitUnavailable);
  EXPECT_THAT(outcome.err, HasSubstr("stopped before it had answered"));
  server->Shutdown();
}

TEST_F(WithScheduler, AFileThatIsNoTextIsRefusedBeforeItIsSent) {
  const auto file = home_.file("bad.yaml", "# \u00e4\nname: \u00e4\xff\xfe");
  for (const char* command : {"submit", "plan", "validate"}) {
    const Outcome outcome = home_.run({command, file});
    EXPECT_EQ(outcome.code, kExitUsage) << command;
    EXPECT_EQ(outcome.err, file.string() + ":2:8: the file is not UTF-8 text: byte 0xff\n") << command;
  }
}

/// Two rows of so many seeds.
std::string sweep_with_seeds(int count) {
  std::string seeds = "0", text = kSweep;
  for (int seed = 1; seed < count; ++seed) seeds += ", " + std::to_string(seed);
  return text.replace(text.find("seeds: [0, 1]"), 13, "seeds: [" + seeds + "]");
}

TEST_F(WithScheduler, ALongSweepIsPrintedWholeAndPageByPage) {
  home_.run({"submit", home_.file("long.yaml", sweep_with_seeds(1500))});
  for (const std::vector<std::string>& source :
       {std::vector<std::string>{}, {"--store", home_.folder() / "results.db"}}) {
    std::vector<std::string> show{"show", "two-rows"};
    show.insert(show.end(), source.begin(), source.end());
    const auto detail = json(show);
    std::set<std::pair<std::string, std::string>> trials;
    for (const auto& trial : detail.at("trials")) trials.emplace(trial.at("row"), trial.at("seed"));
    EXPECT_EQ(trials.size(), 3000u);
    EXPECT_EQ(detail.at("left_out"), 0);
    EXPECT_EQ(detail.at("next"), 0);
    EXPECT_EQ(detail.at("summary").at("trials").at("total"), 3000);
    EXPECT_EQ(detail.at("file"), (home_.folder() / "long.yaml").string());
    const std::string text = home_.run(show).out;
    EXPECT_EQ(std::ranges::count(text, '\n'), 4 + 1 + 3000)
        << "the sweep and when it will be complete, headings, a line for each trial";
    EXPECT_EQ(text.find("row "), text.rfind("row ")) << "headings once";
  }
}

TEST_F(WithScheduler, OnATerminalALongSweepIsShownByItsFirstTrials) {
  ABL_NEEDS_PSEUDO_TERMINAL();
  home_.run({"submit", home_.file("long.yaml", sweep_with_seeds(1500))});
  const std::string shown = on_terminal(std::string{ABLATE_BIN_DIR} + "/ablate show two-rows",
                                        {"NO_COLOR=1", "ABLATE_HOME=" + home_.folder().string()});
  EXPECT_THAT(shown, AllOf(HasSubstr("0/3000 trials"), HasSubstr("2,800 more trials not shown"),
                           HasSubstr("| less")));
  EXPECT_LT(std::ranges::count(shown, '\n'), 300);
}

TEST_F(WithScheduler, ShowAndTableSpeakOfEveryTrialAndRow) {
  home_.run({"submit", sweep_});
  EXPECT_EQ(json({"show", "two-rows"}).at("trials").size(), 4u);
  EXPECT_THAT(home_.run({"show", "two-rows"}).out, HasSubstr("queued"));
  const Outcome table = home_.run({"table", "two-rows"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("* baseline"), HasSubstr("Orig."), HasSubstr("MSF, full"),
                               HasSubstr("79.79"), HasSubstr("0/2")));
  const Outcome stored = home_.run({"table", "two-rows", "--store", home_.folder() / "results.db"});
  EXPECT_EQ(stored.out, table.out) << "the results file says the same";
}

TEST_F(WithScheduler, ATableHasTheRowsAndColumnsThatWereChosen) {
  home_.run({"submit", sweep_});
  const auto ids = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments{"table", "two-rows"}, found;
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto table = json(arguments);
    for (const auto& row : table.at("rows")) found.push_back(row.at("id"));
    return found;
  };
  const auto rows = ids({});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(ids({"--sort", "-row"}),
              testing::ElementsAre(std::max(rows[0], rows[1]), std::min(rows[0], rows[1])));
  EXPECT_THAT(ids({"--find", "msf FULL"}), testing::SizeIs(1));
  EXPECT_THAT(ids({"--complete"}), testing::IsEmpty()) << "nothing has run";
  EXPECT_THAT(home_.run({"table", "two-rows"}).out, HasSubstr("79.79"));
  EXPECT_THAT(home_.run({"table", "two-rows", "--find", "Orig."}).out, Not(HasSubstr("79.79")));
  const Outcome unknown = home_.run({"table", "two-rows", "--without", "nothing"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("the table of two-rows has no column 'nothing'"));
}

TEST_F(WithScheduler, EveryAnswerSaysThatTheResultsFileIsGoneAndWhereItsRescueIs) {
  home_.run({"submit", sweep_});
  EXPECT_EQ(home_.run({"ls"}).err, "");
  for (const char* end : {"", "-wal", "-shm"})
    std::filesystem::remove(home_.folder() / ("results.db" + std::string{end}));
  EXPECT_EQ(home_.run({"retry", "two-rows"}).code, kExitUsage) << "now it knows";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"ls"},
                                                  {"show", "two-rows"},
                                                  {"table", "two-rows"},
                                                  {"workers"},
                                                  {"ls", "--json"}}) {
    const Outcome outcome = home_.run(command);
    EXPECT_EQ(outcome.code, kExitOk);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("note: the scheduler can store nothing: "),
                                   HasSubstr("results.db was deleted"), HasSubstr("results.db.rescued-")))
        << command[0];
  }
}

TEST_F(WithScheduler, WithoutASchedulerItIsSaidWhatWasRunningWhenItStopped) {
  home_.run({"submit", sweep_});
  server_.reset();
  EXPECT_THAT(home_.run({"ls"}).err, testing::Not(HasSubstr("running")));
  storage::Database{home_.folder() / "results.db", storage::Database::Mode::kWrite}.execute(
      "UPDATE trial SET state = 'running' WHERE id < 3");
  EXPECT_THAT(home_.run({"ls"}).err, HasSubstr("; 2 trials were running when the scheduler stopped"));
}

TEST_F(WithScheduler, ARowWithoutANameIsNotEveryRow) {
  home_.run({"submit", sweep_});
  const Outcome outcome = home_.run({"rerun", "two-rows", ""});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("a row without a name"));
}

TEST_F(WithScheduler, AMisspeltSweepIsNamedWithTheNearest) {
  home_.run({"submit", sweep_});
  for (const char* command : {"show", "table", "cancel", "watch", "export"}) {
    const Outcome outcome = home_.run({command, "two-row"});
    EXPECT_EQ(outcome.code, kExitUsage) << command;
    EXPECT_THAT(outcome.err, HasSubstr("two-rows")) << command;
  }
}

TEST_F(WithScheduler, LogsNameWhatIsNotThere) {
  home_.run({"submit", sweep_});
  EXPECT_THAT(home_.run({"logs", "two-rows/msv/0"}).err, HasSubstr("has no row 'msv'; did you mean 'msf'?"));
  EXPECT_THAT(home_.run({"logs", "two-rows/msf/7"}).err, HasSubstr("has no seed '7': it has 0, 1"));
  const Outcome waiting = home_.run({"logs", "two-rows/msf/1"});
  EXPECT_EQ(waiting.code, kExitUsage);
  EXPECT_THAT(waiting.err, HasSubstr("two-rows/msf/1 has no run yet: it is queued"));
}

TEST_F(WithScheduler, PauseResumeCancelAndRetryChangeTheState) {
  home_.run({"submit", sweep_});
  EXPECT_EQ(json({"pause", "two-rows"}).at("state"), "SWEEP_STATE_PAUSED");
  EXPECT_EQ(json({"resume", "two-rows"}).at("state"), "SWEEP_STATE_ACTIVE");
  EXPECT_EQ(json({"cancel", "two-rows"}).at("state"), "SWEEP_STATE_CANCELLED");
  EXPECT_THAT(home_.run({"show", "two-rows"}).out, HasSubstr("two-rows: cancelled, 0/4 trials, 4 cancelled"));
  const Outcome watched = home_.run({"watch", "two-rows"});
  EXPECT_EQ(watched.code, kExitFailed) << "it did not complete";
  EXPECT_THAT(watched.out, HasSubstr("cancelled"));
}

TEST_F(WithScheduler, OneTrialIsCancelledAndRetriedByRowAndSeed) {
  home_.run({"submit", sweep_});
  const auto trials = json({"show", "two-rows"}).at("trials");
  const std::string row = trials.at(0).at("row");
  EXPECT_EQ(json({"cancel", "two-rows", "--row", row, "--seed", "0"}).at("trials").at("cancelled"), 1);
  const Outcome no_row = home_.run({"retry", "two-rows", "--seed", "0"});
  EXPECT_EQ(no_row.code, kExitUsage);
  EXPECT_THAT(no_row.err, HasSubstr("--seed requires --row"));
  EXPECT_EQ(json({"retry", "two-rows", "--row", row, "--seed", "0"}).at("retried"), 1);
  for (const std::vector<std::string>& half :
       {std::vector<std::string>{"--row", row}, {"--row", ""}, {"--row="}, {"--seed", "0"}}) {
    std::vector<std::string> arguments{"cancel", "two-rows"};
    arguments.insert(arguments.end(), half.begin(), half.end());
    EXPECT_EQ(home_.run(arguments).code, kExitUsage) << half.front();
  }
  EXPECT_NE(home_.run({"cancel", "two-rows", "--row", "", "--seed", "0"}).code, kExitOk);
  EXPECT_EQ(json({"show", "two-rows"}).at("summary").at("state"), "SWEEP_STATE_ACTIVE");
}

TEST_F(WithScheduler, ASubmissionOfACancelledOrPausedSweepSaysSoAndHowItGoesOn) {
  home_.run({"submit", sweep_});
  home_.run({"pause", "two-rows"});
  EXPECT_THAT(home_.run({"submit", sweep_}).out,
              HasSubstr("paused: run 'ablate resume two-rows' to continue"));
  home_.run({"cancel", "two-rows"});
  const Outcome outcome = home_.run({"submit", sweep_});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_EQ(
      outcome.out,
      "two-rows is there already, with the same content, and it is cancelled: run it again with 'ablate "
      "retry two-rows'\n");
  EXPECT_EQ(home_.run({"retry", "two-rows"}).code, kExitOk);
  EXPECT_EQ(json({"show", "two-rows"}).at("summary").at("state"), "SWEEP_STATE_ACTIVE");
}

TEST_F(WithScheduler, ASubmissionOfASweepThatIsThereSaysWhatIsHeldAndWhatItChanged) {
  EXPECT_EQ(home_.run({"submit", sweep_, "--owner", "ann"}).code, kExitOk);
  const Outcome again =
      home_.run({"submit", sweep_, "--owner", "bob", "--max-running", "2", "--weight", "3"});
  EXPECT_THAT(again.out, HasSubstr("the same content, at priority 0, of weight 3, with at most 2 trials at "
                                   "once\n"));
  EXPECT_THAT(again.err, HasSubstr("two-rows stays with its owner ann"));
  EXPECT_THAT(home_.run({"submit", sweep_, "--max-running", "0"}).out,
              HasSubstr("with no limit of trials at once"));
  storage::Database db{home_.folder() / "results.db", storage::Database::Mode::kWrite};
  db.execute("UPDATE trial SET state = 'held'");
  db.execute("UPDATE sweep SET held = 'all trials of two-rows fail: boom (3 of 3)'");
  const Outcome held = home_.run({"submit", sweep_, "--owner", "ann"});
  EXPECT_EQ(
      held.out,
      "two-rows is there already, with the same content, at priority 0; 4 trials held: run what is held "
      "with 'ablate retry two-rows --held'\nheld: all trials of two-rows fail: boom (3 of 3)\n");
  EXPECT_EQ(held.err, "") << "it is its owner";
  EXPECT_THAT(home_.run({"table", "two-rows"}).out, HasSubstr("'ablate retry two-rows --held' runs them"));

  EXPECT_EQ(home_.run({"cancel", "two-rows"}).code, kExitOk);
  for (const char* command : {"ls", "show", "table", "submit"}) {
    const Outcome cancelled =
        home_.run(command == std::string{"ls"}       ? std::vector<std::string>{command}
                  : command == std::string{"submit"} ? std::vector<std::string>{command, sweep_}
                                                     : std::vector<std::string>{command, "two-rows"});
    EXPECT_EQ(cancelled.code, kExitOk) << command << cancelled.err;
    EXPECT_THAT(cancelled.out, testing::Not(HasSubstr("--held"))) << command << ": nothing is held any more";
  }
}

TEST_F(WithScheduler, TheOwnerOfASweepIsTheUserOfTheSystemWhereTheEnvironmentNamesNone) {
  home_.run({"submit", sweep_}, {{"USER", ""}});
  EXPECT_NE(json({"show", "two-rows"}).at("summary").at("owner"), "");
}

TEST_F(WithScheduler, ACommandsFolderIsThatOfItsFileUnderEveryName) {
  const std::string text =
      "ablate: 1\nname: mine\ncommand: {argv: [./train]}\nrows: [{id: a}]\n"
      "table: {columns: [{name: acc, metric: accuracy}]}\n";
  std::filesystem::create_directories(home_.folder() / "real" / "deep");
  std::filesystem::create_symlink(home_.folder() / "real", home_.folder() / "link");
  home_.file("real/mine.yaml", text);
  home_.run({"submit", home_.folder() / "real" / "mine.yaml"});
  EXPECT_FALSE(json({"submit", home_.folder() / "link" / "mine.yaml"}).at("created").get<bool>());
  const Outcome moved = home_.run({"submit", home_.file("real/deep/mine.yaml", text)});
  EXPECT_EQ(moved.code, kExitUsage) << "another folder has another ./train";
  EXPECT_THAT(moved.err, HasSubstr("folder: " + (home_.folder() / "real" / "deep").string() + " here, "));
}

TEST_F(WithScheduler, AReasonCannotCommandTheTerminalThatOnlyErrorsGoTo) {
  home_.run({"submit", sweep_});
  storage::Database{home_.folder() / "results.db", storage::Database::Mode::kWrite}.execute(
      "UPDATE trial SET state = 'failed', reason = 'x' || char(27) || '[31mred'");
  const std::string watch = std::string{ABLATE_BIN_DIR} + "/ablate watch two-rows";
  EXPECT_THAT(home_.run({"watch", "two-rows"}).err, HasSubstr("x\x1b[31mred")) << "exact in a pipe";
  ABL_NEEDS_PSEUDO_TERMINAL();
  const std::string terminal =
      on_terminal(watch + " > /dev/null || true", {"NO_COLOR=1", "ABLATE_HOME=" + home_.folder().string()});
  EXPECT_THAT(terminal, AllOf(HasSubstr("xred"), testing::Not(HasSubstr("\x1b"))));
}

TEST_F(WithScheduler, AnExportOfNothingHasItsHeadings) {
  home_.run({"submit", sweep_});
  EXPECT_EQ(home_.run({"export", "two-rows"}).out, "sweep,row,seed,trial,run,metric,step,value,time_ms\n");
}

}  // namespace
}  // namespace abl::cli
