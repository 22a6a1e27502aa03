// SPDX-License-Identifier: Apache-2.0
// The real program, as scripts and people meet it: exit codes, messages, help, completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file_lock.h"
#include "storage/database.h"
#include "tests/cli/listener.h"
#include "tests/cli/pseudo_terminal.h"
#include "tests/cli/run_ablate.h"

namespace abl::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::vector<std::string> kCommands{"up",         "down",   "validate", "plan",    "submit",    "ls",
                                         "show",       "watch",  "logs",     "cancel",  "pause",     "resume",
                                         "retry",      "table",  "export",   "workers", "dashboard", "data",
                                         "completion", "papers", "annotate"};

class Program : public testing::Test {
 protected:
  Home home_;
};

TEST_F(Program, HelpOfEveryCommandHasAnExampleExitCodesAndJson) {
  for (const auto& command : kCommands) {
    const Outcome help = home_.run({command, "--help"});
    EXPECT_EQ(help.code, kExitOk) << command;
    EXPECT_THAT(help.out, AllOf(HasSubstr("Example:\n  "), HasSubstr("ablate " + command),
                                HasSubstr("Exit codes:\n  0 "), HasSubstr("--json")));
  }
}

TEST_F(Program, HelpListsEveryCommand) {
  const Outcome help = home_.run({"--help"});
  EXPECT_EQ(help.code, kExitOk);
  for (const auto& command : kCommands) EXPECT_THAT(help.out, HasSubstr("\n  " + command + " "));
}

TEST_F(Program, AMisspeltCommandIsNamedWithTheNearest) {
  const Outcome outcome = home_.run({"sumbit", "sweep.yaml"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err, "error: unknown command 'sumbit'; did you mean 'submit'?\n");
}

TEST_F(Program, APlaceThatCannotBeUsedIsNamed) {
  const std::string home =
      home_.folder() / std::string(300, 'h');  // no rights would be the same; root has them
  const Outcome outcome = home_.run({"ls"}, {{"ABLATE_HOME", home}});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("error: cannot use " + home), HasSubstr("File name too long")));
}

TEST_F(Program, JsonMayStandBeforeTheCommand) {
  const auto file = home_.file("sweep.yaml", kSweep);
  const Outcome before = home_.run({"--json", "plan", file}), after = home_.run({"plan", file, "--json"});
  EXPECT_EQ(before.code, kExitOk) << before.err;
  EXPECT_EQ(nlohmann::json::parse(before.out), nlohmann::json::parse(after.out));  // a map has no order
  EXPECT_EQ(home_.run({"--json", "sumbit"}).err, "error: unknown command 'sumbit'; did you mean 'submit'?\n");
  EXPECT_EQ(home_.run({"--json", "plan", "--jsno"}).err,
            "error: unknown flag '--jsno'; did you mean '--json'?\n");
  EXPECT_EQ(home_.run({"--jsno", "ls"}).err, "error: unknown flag '--jsno'; did you mean '--json'?\n");
}

TEST_F(Program, AMisspeltFlagIsNamedWithTheNearestEvenWhereMoreIsMissing) {
  const Outcome outcome = home_.run({"plan", "--jsno"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err, "error: unknown flag '--jsno'; did you mean '--json'?\n");
}

TEST_F(Program, AResultsFileWithoutASweepSaysHowACopyIsMade) {
  const auto copy = home_.folder() / "copy.db";
  storage::Database{copy, storage::Database::Mode::kWrite};
  const Outcome outcome = home_.run({"ls", "--store", copy});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("copy.db has no sweeps"), HasSubstr("copied while in use"),
                                 HasSubstr(".backup")));
}

TEST_F(Program, HelpIsACommandToo) {
  EXPECT_EQ(home_.run({"help"}).out, home_.run({"--help"}).out);
  EXPECT_EQ(home_.run({"help", "table"}).out, home_.run({"table", "--help"}).out);
  EXPECT_EQ(home_.run({"help", "tabel"}).err, "error: unknown command 'tabel'; did you mean 'table'?\n");
}

TEST_F(Program, AMisspeltNameOfADataSetIsNoted) {
  EXPECT_THAT(
      home_.run({"up", "--data", "cifarten=/nope"}).err,
      HasSubstr("--data cifarten=/nope: trials that name cifar10 will not find it; did you mean 'cifar10'?"));
  EXPECT_THAT(home_.run({"up", "--data", "cifar10=/nope"}).err, Not(HasSubstr("did you mean")));
}

TEST_F(Program, AnEmptyHomeIsRefused) {
  const Outcome outcome = home_.run({"up", "--home", ""});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--home: empty; expected a folder"));
}

TEST_F(Program, AFileWithoutAnEndIsRefused) {
  const Outcome outcome = home_.run({"validate", "/dev/zero"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/zero: more than 4 MiB"));
}

TEST_F(Program, ASweepMayComeThroughStandardInput) {
  const auto file = home_.file("sweep.yaml", kSweep),
             script = home_.file("run.sh", "exec \"$1\" validate - < \"$2\"\n");
  const Outcome outcome = home_.run({script, std::string{ABLATE_BIN_DIR} + "/ablate", file}, {}, "/bin/sh");
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("-: two-rows is valid"));
}

TEST_F(Program, OutputThatFindsNoRoomIsSaidWithTheReason) {
  const auto script = home_.file("run.sh", "exec \"$1\" $2 > /dev/full\n");
  for (const char* words : {"--help", "--version", "papers", "papers msf"}) {
    const Outcome outcome =
        home_.run({script, std::string{ABLATE_BIN_DIR} + "/ablate", words}, {}, "/bin/sh");
    EXPECT_EQ(outcome.code, exit_code(Code::kResourceExhausted)) << words;
    EXPECT_THAT(outcome.err, HasSubstr("cannot write standard output: No space left on device")) << words;
  }
}

TEST_F(Program, AWrongWordOfAFlagIsNamedWithTheNearest) {
  const Outcome outcome = home_.run({"table", "s", "--format", "markdwon"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err,
            "error: --format: 'markdwon' is not text, markdown, csv, latex, html or json; did you mean "
            "'markdown'?; see 'ablate table --help'\n");
}

TEST_F(Program, AShortNameOfAFormatIsKnownForWhatItMeans) {
  EXPECT_THAT(home_.run({"table", "s", "--format", "tex"}).err, HasSubstr("did you mean 'latex'?"));
  EXPECT_THAT(home_.run({"table", "s", "--format", "md"}).err, HasSubstr("did you mean 'markdown'?"));
}

TEST_F(Program, WhatEndsADrainIsNamedToWhoCallsItOtherwise) {
  EXPECT_THAT(home_.run({"workers", "undrain", "w"}).err, HasSubstr("did you mean 'resume'?"));
}

TEST_F(Program, AWrongWeightIsToldItsBounds) {
  for (const char* weight : {"-1", "0", "1e300", "nan", "inf", "2x"}) {
    const Outcome outcome = home_.run({"submit", "sweep.yaml", "--weight", weight});
    EXPECT_EQ(outcome.code, kExitUsage) << weight;
    EXPECT_EQ(outcome.err, "error: --weight: '" + std::string{weight} +
                               "' is not a number above 0, at most 1000000; see 'ablate submit --help'\n");
  }
}

TEST_F(Program, AWrongWordOfAVariableNamesTheVariable) {
  const Outcome outcome = home_.run({"ls"}, {{"ABLATE_LOG_FORMAT", "xml"}});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err, "error: $ABLATE_LOG_FORMAT: 'xml' is not text or json; see 'ablate ls --help'\n");
}

TEST_F(Program, AResultsFileThatIsNamedAndIsNotThereIsBadInput) {
  for (const char* command : {"doctor", "dashboard"}) {
    const Outcome outcome = home_.run({command, "--store", "nope.db"});
    EXPECT_EQ(outcome.code, kExitUsage) << command;
    EXPECT_EQ(outcome.err, "error: --store nope.db: no such file; expected a results file\n");
  }
  EXPECT_THAT(home_.run({"dashboard"}).err, HasSubstr("pass --store FILE"));
}

TEST_F(Program, AFileOfATableHasTheNameOfWhatIsWritten) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"table", "s", "--plot", "bars", "-o", "x.png"},
        {"table", "s", "-o", "x.png"},
        {"table", "s", "-o", "x.tex"},
        {"table", "s", "--format", "latex", "-o", "x.csv"}}) {
    const Outcome outcome = home_.run(arguments);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("-o x."), HasSubstr("expected")));
  }
}

TEST_F(Program, JsonAndAnotherFormatExcludeEachOther) {
  for (const char* command : {"table", "export"}) {
    const Outcome outcome = home_.run({command, "s", "--json", "--format", "csv"});
    EXPECT_EQ(outcome.code, kExitUsage) << command;
    EXPECT_THAT(outcome.err, HasSubstr("--json and --format csv exclude each other"));
  }
}

TEST_F(Program, WhatIsChosenIsOfATableThatIsPrinted) {
  for (const std::vector<std::string>& other : {std::vector<std::string>{"--tuning"}, {"--plot", "bars"}}) {
    std::vector<std::string> arguments{"table", "s", "--sort", "-acc"};
    arguments.insert(arguments.end(), other.begin(), other.end());
    const Outcome outcome = home_.run(arguments);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr("apply to printed tables only: expected no --tuning or --plot"));
  }
}

TEST_F(Program, WhatARetryIsOfIsOneThing) {
  const Outcome outcome = home_.run({"retry", "s", "--missing", "--held"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err,
            "error: --held, --missing and --before-mend exclude each other: expected one of them\n");
}

TEST_F(Program, AnExportIntoAFolderIsRefusedInALine) {
  const Outcome outcome = home_.run({"export", "s", "-o", "/"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err, "error: cannot write /: it is a folder; expected a file\n");
}

TEST_F(Program, WithJsonAnErrorIsAnObjectToo) {
  for (const auto& [arguments, code, name] :
       std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{"ls"}, kExitUnavailable, "UNAVAILABLE"},
           {{"show", "s"}, kExitUnavailable, "UNAVAILABLE"},
           {{"submit", home_.file("sweep.yaml", kSweep)}, kExitUnavailable, "UNAVAILABLE"},
           {{"plan", "absent.yaml"}, kExitUsage, "NOT_FOUND"},
           {{"sumbit"}, kExitUsage, "INVALID_ARGUMENT"},
           {{"table", "s", "--format", "nonsense"}, kExitUsage, "INVALID_ARGUMENT"},
           {{"table"}, kExitUsage, "INVALID_ARGUMENT"},
           {{"up", "--data", "cifar10=/absent"}, kExitUsage, "NOT_FOUND"},
           {{"up", "--detach", "--data", "cifar10=/absent"}, kExitUsage, "NOT_FOUND"},
           {{"dashboard"}, kExitUsage, "NOT_FOUND"},
           {{"verify", "1"}, kExitUnavailable, "UNAVAILABLE"},
           {{"data", "pack", "--root", "/x"}, kExitUsage, "INVALID_ARGUMENT"}}) {
    auto words = arguments;
    words.emplace_back("--json");
    const Outcome outcome = home_.run(words);
    const std::string what = testing::PrintToString(words);
    EXPECT_EQ(outcome.code, code) << what;
    const auto error = nlohmann::json::parse(outcome.out, nullptr, false);
    ASSERT_TRUE(error.is_object() && error.contains("error")) << what << outcome.out << outcome.err;
    EXPECT_EQ(error["error"].at("code"), name) << what;
    EXPECT_THAT(outcome.err, HasSubstr(error["error"].at("message").get<std::string>())) << what;
    EXPECT_TRUE(error["error"].at("problems").empty()) << what;
  }
}

TEST_F(Program, WithJsonTheProblemsOfAFileHaveTheirPlaces) {
  std::string text = kSweep;
  text.replace(text.find("seeds:"), 6, "sedes:");
  const auto file = home_.file("bad.yaml", text);
  const Outcome outcome = home_.run({"plan", file, "--json"});
  EXPECT_EQ(outcome.code, kExitUsage);
  const auto problem = nlohmann::json::parse(outcome.out).at("error").at("problems").at(0);
  EXPECT_EQ(problem.at("file"), file.string());
  EXPECT_EQ(problem.at("line"), 10);
  EXPECT_EQ(problem.at("nearest"), "seeds");
}

TEST_F(Program, ASweepFileThatIsTooLargeIsRefusedBeforeItIsReadOrSent) {
  const auto file = home_.file("large.yaml", std::string((4 << 20) + 1, '#'));
  for (const char* command : {"validate", "plan", "submit"}) {
    const Outcome outcome = home_.run({command, file});
    EXPECT_EQ(outcome.code, kExitUsage) << command;
    EXPECT_THAT(outcome.err,
                HasSubstr(file.string() +
                          ": the file has 4,194,305 bytes; a sweep file has at most 4,194,304 (4 MiB)"))
        << command;
  }
}

TEST_F(Program, UsageErrorsAreOneLineAndExitCodeTwo) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"plan"},
                                                    {"plan", "a", "b"},
                                                    {"up", "--port", "abc"},
                                                    {"up", "--port"},
                                                    {"ls", "-q"},
                                                    {"logs", "nonsense"}}) {
    const Outcome outcome = home_.run(arguments);
    EXPECT_EQ(outcome.code, kExitUsage) << testing::PrintToString(arguments);
    EXPECT_THAT(outcome.err, StartsWith("error: "));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

TEST_F(Program, PapersListsEveryTableWithWhatIsTrainedAndWhatIsFree) {
  const Outcome outcome = home_.run({"papers"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("msf/table-1 "), HasSubstr("31 tables; 368 of 476 rows can be trained here")));
  const auto json = nlohmann::json::parse(home_.run({"papers", "xcit", "--json"}).out).at("tables");
  ASSERT_EQ(json.size(), 6u);
  EXPECT_EQ(json[4].at("name"), "xcit/table-5");
  EXPECT_EQ(json[4].at("trained"), 8);
  EXPECT_EQ(json[4].at("trials"), 48) << "with those whose weights they take";
  EXPECT_EQ(json[4].at("free"), nlohmann::json::array({"params"}));
  EXPECT_EQ(json[4].at("not_trained")[0].at("kind"), "cited");
  EXPECT_EQ(home_.run({"papers", "msff"}).code, kExitUsage);
}

TEST_F(Program, PapersShowsATableOfPrintedValuesAlone) {
  const Outcome outcome = home_.run({"papers", "xcit/table-3"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("trained by another method (MoBY)"), HasSubstr("76.1"),
                                 HasSubstr("a convolutional backbone")));
}

TEST_F(Program, PapersSaysOfNoCellThatItHasSeeds) {
  const Outcome outcome = home_.run({"papers", "msf/table-6"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("── ViT-S ──"), HasSubstr("80.72")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("80.72  1 "))) << "n of a metric, not of a count";
  EXPECT_THAT(home_.run({"papers", "msf/table-7"}).out, HasSubstr("44.01"))
      << "the paper's alone, once for a line";
}

TEST_F(Program, ASweepWithoutATrainedRowCanBePlanned) {
  const auto file = home_.file("cited.yaml", R"(
ablate: 1
name: cited
rows:
  - {id: a, not_trained: {kind: cited, why: "by others"}, paper: {acc: "76.1"}}
  - {id: b, not_trained: {kind: cited, why: "by others"}, paper: {acc: "77.8"}}
table:
  columns: [{name: acc, printed: true}]
)");
  const Outcome outcome = home_.run({"plan", file.string()});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("0 of 2 rows"), HasSubstr("0 distinct trials"),
                                 HasSubstr("– not trained: by others")));
}

TEST_F(Program, AFileThatIsNotThereIsNamed) {
  const Outcome outcome = home_.run({"validate", "absent.yaml"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err, "error: cannot read absent.yaml: No such file or directory\n");
}

TEST_F(Program, ATableOfAPaperIsASweepFileByItsName) {
  for (const char* name : {"msf/table-1", "msf/table-1.yaml"}) {
    const Outcome outcome = home_.run({"validate", name});
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("msf-table-1 is valid: 18 rows"));
  }
}

TEST_F(Program, AMisspeltTableOfAPaperIsToldTheNearest) {
  const Outcome outcome = home_.run({"plan", "msf/tabel-1"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err,
            "error: unknown table 'msf/tabel-1'; 'ablate papers' lists them; did you mean 'msf/table-1'?\n");
  EXPECT_THAT(home_.run({"validate", "mfs/table-1"}).err, HasSubstr("did you mean 'msf/table-1'?"));
  EXPECT_THAT(home_.run({"validate", "other/table-1.yaml"}).err, HasSubstr("cannot read other/table-1.yaml"));
}

TEST_F(Program, AFileThatIsNotThereDoesNotKeepTheOthersFromBeingJudged) {
  const auto file = home_.file("sweep.yaml", kSweep);
  const Outcome outcome = home_.run({"validate", "absent.yaml", file});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("absent.yaml"));
  EXPECT_THAT(outcome.out, HasSubstr("two-rows is valid"));

  const Outcome json = home_.run({"validate", "--json", "absent.yaml", file});
  EXPECT_EQ(json.code, kExitUsage);
  ASSERT_EQ(std::ranges::count(json.out, '\n'), 2) << json.out;
  const auto problem = nlohmann::json::parse(json.out.substr(0, json.out.find('\n'))).at("problems").at(0);
  EXPECT_EQ(problem.at("message"), "cannot read absent.yaml: No such file or directory");
}

TEST_F(Program, ValidateWorksWithoutASchedulerAndSaysSo) {
  const Outcome outcome = home_.run({"validate", home_.file("sweep.yaml", kSweep)});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("two-rows is valid: 2 rows, 2 seeds, 4 distinct trials"));
  EXPECT_THAT(outcome.err, HasSubstr("note: checked without a scheduler"));
}

TEST_F(Program, EveryProblemOfAFileIsALineWithItsPlace) {
  std::string text = kSweep;
  text.replace(text.find("seeds:"), 6, "sedes:").replace(text.find("dim: 32"), 7, "dmi: 32");
  const auto file = home_.file("bad.yaml", text);
  const Outcome outcome = home_.run({"validate", file});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(file.string() + ":4:"), HasSubstr("dmi"),
                                 HasSubstr(file.string() + ":10:"), HasSubstr("did you mean 'seeds'?")));

  const auto json = nlohmann::json::parse(home_.run({"validate", file, "--json"}).out);
  EXPECT_GE(json.at("problems").size(), 2u);
}

TEST_F(Program, PlanWorksWithoutASchedulerOrAStore) {
  const Outcome outcome = home_.run({"plan", home_.file("sweep.yaml", kSweep)});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("MSF, full"),
                                 HasSubstr("2 rows × 2 seeds: 4 distinct trials, 0 stored, 4 to run")));
  EXPECT_THAT(outcome.err, HasSubstr("planned without a scheduler"));
}

TEST_F(Program, ASchedulerThatDoesNotAnswerIsExitCodeThreeAndSaysWhatToDo) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"ls"},
                                                    {"show", "s"},
                                                    {"watch", "s"},
                                                    {"table", "s"},
                                                    {"cancel", "s"},
                                                    {"workers"},
                                                    {"logs", "1"},
                                                    {"export", "s"}}) {
    const Outcome outcome = home_.run(arguments);
    EXPECT_EQ(outcome.code, kExitUnavailable) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.err,
              "error: no scheduler answers at unix:" + home_.folder().string() +
                  "/run/scheduler.sock: start one with 'ablate up', or name another with --scheduler\n");
  }
}

/// What is left of a program that was killed.
void leave_socket(const std::filesystem::path& file) {
  std::filesystem::create_directories(file.parent_path());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  file.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(fd);
}

TEST_F(Program, WithoutASchedulerTheResultsOfTheHomeAreRead) {
  { storage::Database{home_.folder() / "results.db", storage::Database::Mode::kWrite}; }
  const Outcome outcome = home_.run({"ls", "--json"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_TRUE(nlohmann::json::parse(outcome.out).at("sweeps").empty()) << outcome.out;
  EXPECT_EQ(outcome.err,
            "note: no scheduler runs here: read from " + home_.folder().string() + "/results.db\n");
  EXPECT_EQ(home_.run({"ls", "--scheduler", "unix:/nowhere.sock"}).code, kExitUnavailable);
  leave_socket(home_.folder() / "run" / "scheduler.sock");
  EXPECT_EQ(home_.run({"ls"}).code, kExitOk) << "a scheduler that was killed left its socket";
}

TEST_F(Program, AnExplicitSchedulerIsNotReplacedByThisProgramsJudgement) {
  const Outcome outcome =
      home_.run({"validate", home_.file("sweep.yaml", kSweep), "--scheduler", "unix:/nowhere.sock"});
  EXPECT_EQ(outcome.code, kExitUnavailable);
  EXPECT_THAT(outcome.err, HasSubstr("unix:/nowhere.sock"));
}

TEST_F(Program, UpRefusesAPortInUseBeforeItStartsAnything) {
  const Listener listener;
  const Outcome outcome = home_.run({"up", "--port", std::to_string(listener.port())});
  EXPECT_EQ(outcome.code, kExitUnavailable) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("port " + std::to_string(listener.port()) + " on 127.0.0.1 is in use"));
}

TEST_F(Program, UpRefusesADataFolderThatIsNotThere) {
  const Outcome outcome = home_.run({"up", "--data", "cifar10=/absent"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err, "error: --data: no folder or packed file /absent for cifar10\n");
}

TEST_F(Program, OutputThatCannotBeWrittenIsAnError) {
  const auto file = home_.file("sweep.yaml", kSweep);
  const std::string program = std::string{ABLATE_BIN_DIR} + "/ablate";
  EXPECT_EQ(run_program({"sh", "-c", program + " validate '" + file.string() + "' >/dev/full 2>&2; echo $?"},
                        "", std::chrono::seconds{20}),
            "3\n");
}

TEST_F(Program, ASchedulerGoesOnWhenNobodyReadsWhatItSays) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const std::string address = "unix:" + (home_.folder() / "scheduler.sock").string();
  ChildOptions options{.argv = {std::string{ABLATE_BIN_DIR} + "/ablate-scheduler", "--store",
                                home_.folder() / "results.db", "--listen", address, "--log-level", "debug"}};
  options.stdout_fd = options.stderr_fd = ends[1];
  ChildProcess scheduler{options};
  ::close(ends[1]);
  const auto answers = [&] { return home_.run({"ls"}, {{"ABLATE_SCHEDULER", address}}).code == kExitOk; };
  while (!answers()) ASSERT_FALSE(scheduler.poll()) << "it ended before it answered";
  scheduler.terminate();  // which it says
  EXPECT_TRUE(scheduler.wait().ok());
}

TEST_F(Program, OfARunningWorkerItIsToldThatItRuns) {
  const auto lock = home_.folder() / "worker" / "worker.lock";
  ChildOptions options{.argv = {std::string{ABLATE_BIN_DIR} + "/ablate-worker", "--scheduler",
                                "unix:" + (home_.folder() / "none.sock").string(), "--home",
                                home_.folder() / "worker", "--slots", "1"}};
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  options.stdout_fd = options.stderr_fd = ends[1];
  ChildProcess worker{options};
  ::close(ends[1]);
  std::string said;
  for (char next = 0; said.find(" with 1 slot") == said.npos; said += next)  // then it works
    ASSERT_EQ(::read(ends[0], &next, 1), 1) << said;
  EXPECT_TRUE(FileLock::is_held(lock));
  worker.kill();
  worker.wait();
  ::close(ends[0]);
  EXPECT_FALSE(FileLock::is_held(lock));
}

TEST_F(Program, DownWhereNothingRunsIsNoError) {
  const Outcome outcome = home_.run({"down", "--json"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_EQ(outcome.out, "{\"stopped\":false,\"pid\":0}\n");
}

TEST_F(Program, AStoreThatIsNoResultsFileIsRefused) {
  const Outcome outcome = home_.run({"ls", "--store", home_.file("notes.txt", std::string(4096, 'x'))});
  EXPECT_EQ(outcome.code, kExitUsage) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("notes.txt"));
}

TEST_F(Program, CompletionScriptsAreValidAndKnowEveryCommandAndFlag) {
  const Outcome bash = home_.run({"completion", "bash"});
  EXPECT_EQ(bash.code, kExitOk);
  EXPECT_NO_THROW(run_program({"bash", "-n"}, bash.out, std::chrono::seconds{20}));
  for (const auto& command : kCommands) EXPECT_THAT(bash.out, HasSubstr(command));
  for (const char* shell : {"zsh", "fish"}) {
    const Outcome script = home_.run({"completion", shell});
    EXPECT_EQ(script.code, kExitOk);
    EXPECT_THAT(script.out, AllOf(HasSubstr("stop-running"), HasSubstr("ablate ls --names")));
  }
}

TEST_F(Program, BashCompletesCommandsFlagsAndWords) {
  home_.file("complete.bash", home_.run({"completion", "bash"}).out);
  const auto complete = [&](const std::string& words, int word) {
    const std::string script = "source '" + (home_.folder() / "complete.bash").string() + "'; COMP_WORDS=(" +
                               words + "); COMP_CWORD=" + std::to_string(word) +
                               "; _ablate; echo \"${COMPREPLY[*]}\"";
    return run_program({"bash", "-c", script}, "", std::chrono::seconds{20});
  };
  EXPECT_EQ(complete("ablate wo", 1), "workers\n");
  EXPECT_EQ(complete("ablate pause --st", 2), "--stop-running\n");
  EXPECT_EQ(complete("ablate table s --format la", 4), "latex\n");
  EXPECT_EQ(complete("ablate completion z", 2), "zsh\n");
}

TEST_F(Program, OutputThatIsNoTerminalHasNoEscapeSequences) {
  for (const auto& environment : {std::map<std::string, std::string>{}, {{"NO_COLOR", "1"}}}) {
    const Outcome outcome = home_.run({"plan", home_.file("sweep.yaml", kSweep)}, environment);
    EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\x1b")));
  }
}

TEST_F(Program, ALabelCannotCommandATerminalAndIsExactInAPipe) {
  std::string text = kSweep;
  text.replace(text.find("\"MSF, full\""), 11, R"("x\e[31mred\u202e")");
  const auto file = home_.file("sweep.yaml", text);
  EXPECT_THAT(home_.run({"plan", file}).out, HasSubstr("x\x1b[31mred\u202e"));
  ABL_NEEDS_PSEUDO_TERMINAL();
  const std::string program = std::string{ABLATE_BIN_DIR} + "/ablate";
  const std::string terminal = on_terminal(program + " plan " + file.string(),
                                           {"NO_COLOR=1", "ABLATE_HOME=" + home_.folder().string()});
  EXPECT_THAT(terminal, AllOf(HasSubstr(" xred "), Not(HasSubstr("\x1b[31m")), Not(HasSubstr("\u202e"))));
}

TEST_F(Program, NoColorSwitchesColoursOffOnATerminal) {
  ABL_NEEDS_PSEUDO_TERMINAL();
  const std::string misspelt = std::string{ABLATE_BIN_DIR} + "/ablate sumbit || true";
  EXPECT_THAT(on_terminal(misspelt, {"NO_COLOR="}), HasSubstr("\x1b[31merror: \x1b[0m"));
  EXPECT_THAT(on_terminal(misspelt, {"NO_COLOR=1"}),
              AllOf(HasSubstr("error: unknown command"), Not(HasSubstr("\x1b["))));
}

}  // namespace
}  // namespace abl::cli
