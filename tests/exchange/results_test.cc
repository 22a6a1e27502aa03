// SPDX-License-Identifier: Apache-2.0
#include "exchange/results.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "protocol/event_file.h"
#include "tests/temporary_folder.h"

namespace abl::exchange {
namespace {

using protocol::first_record;
using protocol::scalar_record;
using protocol::text_record;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

/// What was read, as text: "sweep/row/seed metric@step=value".
class Kept final : public Sink {
 public:
  void point(const RunKey& run, const std::string& metric, std::uint32_t step, double value,
             std::int64_t time_ms) override {
    points.push_back(fmt::format("{}/{}/{} {}@{}={}", run.sweep, run.row, run.seed, metric, step, value));
    times.push_back(time_ms);
  }
  void setting(const RunKey& run, const std::string& key, const std::string& json) override {
    settings[fmt::format("{}/{} {}", run.row, run.seed, key)] = json;
  }
  std::vector<std::string> points;
  std::vector<std::int64_t> times;
  std::map<std::string, std::string> settings;
};

class ResultsTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  std::filesystem::path file(const std::string& name, const std::string& text) const {
    const auto path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    write_file(path, text);
    return path;
  }
  static Kept read(const std::filesystem::path& path, const Mapping& mapping = {}) {
    Kept kept;
    read_results(path, format_of(path), mapping, kept);
    return kept;
  }
  static std::string error_of(const std::filesystem::path& path, const Mapping& mapping = {}) {
    try {
      read(path, mapping);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(ResultsTest, LinesWithoutAStepAreStepsOfTheirRun) {
  EXPECT_THAT(read(file("wide.csv", "row,acc\na,0.1\na,0.2\nb,0.3\na,0.4\n")).points,
              ElementsAre("/a/0 acc@1=0.1", "/a/0 acc@2=0.2", "/b/0 acc@1=0.3", "/a/0 acc@3=0.4"));
  EXPECT_THAT(read(file("long.csv", "row,metric,value\na,acc,0.1\na,loss,2\na,acc,0.2\n")).points,
              ElementsAre("/a/0 acc@0=0.1", "/a/0 loss@0=2", "/a/0 acc@1=0.2"));
}

TEST_F(ResultsTest, ALineWithoutTheStepThatOthersHaveIsRefused) {
  EXPECT_THAT(error_of(file("t.csv", "row,epoch,acc\na,1,0.1\na,,0.2\n")),
              HasSubstr("t.csv:3:1: no epoch, which is the step of other lines"));
  EXPECT_THAT(read(file("t.csv", "row,epoch,acc\na,1,0.1\na,,\n")).points, ElementsAre("/a/0 acc@1=0.1"));
}

TEST_F(ResultsTest, TheStepOfJsonLinesDoesNotDependOnTheOrderOfKeys) {
  EXPECT_THAT(read(file("a.jsonl", R"({"epoch": 1, "step": 100, "loss": 2})"
                                   "\n"
                                   R"({"loss": 1, "epoch": 1, "step": 200})"
                                   "\n"))
                  .points,
              ElementsAre("/a/0 epoch@100=1", "/a/0 loss@100=2", "/a/0 loss@200=1", "/a/0 epoch@200=1"));
  const auto mixed =
      file("b.jsonl", "{\"epoch\": 1, \"acc\": 0.5}\n{\"step\": 9, \"epoch\": 1, \"loss\": 1}\n");
  EXPECT_THAT(error_of(mixed), HasSubstr("b.jsonl:1:1: no step, which is the step of other lines"));
  EXPECT_THAT(read(mixed, {.step = "epoch"}).points,
              ElementsAre("/b/0 acc@1=0.5", "/b/0 step@1=9", "/b/0 loss@1=1"));
  EXPECT_THAT(error_of(mixed, {.row = "eppch"}),
              HasSubstr("no column is called 'eppch'; did you mean 'epoch'?"));
}

TEST_F(ResultsTest, AColumnOfNumbersBelowATextIsNotLostWithoutAWord) {
  const auto path = file("t.csv", "row,acc,loss\na,n/a,1\nb,0.5,2\n");
  EXPECT_THAT(error_of(path), HasSubstr("t.csv:3:3: acc: a number, and line 2 has a text"));
  EXPECT_THAT(read(path, {.settings = {"acc"}}).points, ElementsAre("/a/0 loss@1=1", "/b/0 loss@1=2"));
  EXPECT_THAT(read(file("e.csv", "row,acc\na,\nb,0.5\n")).points, ElementsAre("/b/0 acc@1=0.5"));
}

TEST_F(ResultsTest, SpacesAroundANameAreNoOtherRow) {
  EXPECT_THAT(read(file("t.csv", "row,seed,acc\na,0,1\n\"a \",1,2\n a,2,3\n")).points,
              ElementsAre("/a/0 acc@1=1", "/a/1 acc@1=2", "/a/2 acc@1=3"));
}

TEST_F(ResultsTest, APercentageIsNoSettingWithoutAWord) {
  const auto table = file("t.csv", "row,acc\na,50%\nb,61.5 %\n");
  EXPECT_THAT(error_of(table), HasSubstr("t.csv:2:3: acc: expected a number, got '50%'; remove the % signs"));
  EXPECT_THAT(error_of(file("u.csv", "row,acc\na,50\nb,61.5 %\n")),
              HasSubstr("u.csv:3:3: acc: expected a number"));
  EXPECT_THAT(read(table, {.settings = {"acc"}}).settings, testing::Contains(Pair("a/0 acc", "\"50%\"")));
}

TEST_F(ResultsTest, RunsThatHaveNotFinishedArePassedOverAndCounted) {
  file("runs.csv", "Name,State,acc\na,finished,0.5\na2,Crashed,0.1\nb,running,0.2\nc,weird,0.3\n");
  Kept kept;
  EXPECT_THAT(read_results(folder / "runs.csv", Format::kCsv, {}, kept),
              ElementsAre(HasSubstr("runs.csv: skipped 2 lines of runs that failed or have not finished")));
  EXPECT_THAT(kept.points, testing::SizeIs(2));
}

TEST_F(ResultsTest, ASettingThatOneRunHasSeveralOfIsNamed) {
  file("points.csv", "model,seed,epoch,acc\nr18,0,1,0.5\nr18,0,2,0.6\nr50,0,1,0.7\n");
  Kept kept;
  EXPECT_THAT(read_results(folder / "points.csv", Format::kCsv, {}, kept),
              ElementsAre(HasSubstr(
                  "points.csv:4: model is 'r50' here and was 'r18' before in the same run; if it tells "
                  "rows apart, use --row model")));
}

TEST_F(ResultsTest, WhatExportWritesIsReadDigitForDigit) {
  const std::string points =
      "msf,\"a,\"\"b\",3,7,9,val/top1,10,0.30000000000000004,1700000000123\n"
      "msf,c,-1,8,10,loss,4294967295,nan,5\nmsf,c,-1,8,10,loss,2,-inf,6\n";
  const auto csv = read(file("points.csv", "sweep,row,seed,trial,run,metric,step,value,time_ms\n" + points));
  EXPECT_THAT(csv.points, ElementsAre("msf/a,\"b/3 val/top1@10=0.30000000000000004",
                                      "msf/c/-1 loss@4294967295=nan", "msf/c/-1 loss@2=-inf"));
  EXPECT_THAT(csv.times, ElementsAre(1700000000123, 5, 6));
  const auto json = read(file(
      "points.jsonl",
      R"({"sweep":"msf","row":"a,\"b","seed":3,"trial":7,"run":9,"metric":"val/top1","step":10,"value":0.30000000000000004,"time_ms":1700000000123})"
      "\n"
      R"({"sweep":"msf","row":"c","seed":-1,"trial":8,"run":10,"metric":"loss","step":4294967295,"value":"NaN","time_ms":5})"
      "\n\n"
      R"({"sweep":"msf","row":"c","seed":-1,"trial":8,"run":10,"metric":"loss","step":2,"value":-Infinity,"time_ms":6})"
      "\n"));
  EXPECT_EQ(json.points, csv.points);
  EXPECT_EQ(json.times, csv.times);
}

TEST_F(ResultsTest, AWideTableHasAColumnForEachMetricAndTextsAreSettings) {
  const auto kept =
      read(file("study.csv",
                "\xEF\xBB\xBFname;optimizer;seed;acc;loss\r\nbase;sgd;0;0.5;1.5\r\nbase;sgd;1;0.6;\r\n"
                "\"new;er\";adam;0;0.75;1e-3\r\n"));
  EXPECT_THAT(kept.points, ElementsAre("/base/0 acc@1=0.5", "/base/0 loss@1=1.5", "/base/1 acc@1=0.6",
                                       "/new;er/0 acc@1=0.75", "/new;er/0 loss@1=0.001"));
  EXPECT_THAT(kept.settings, testing::Contains(Pair("new;er/0 optimizer", "\"adam\"")));
}

TEST_F(ResultsTest, AColumnWithoutANameIsNothing) {
  EXPECT_THAT(read(file("pandas.csv", ",epoch,acc\n0,1,0.5\n1,2,0.6\n")).points,
              ElementsAre("/pandas/0 acc@1=0.5", "/pandas/0 acc@2=0.6"));
  EXPECT_THAT(read(file("named.csv", ",name,acc\n0,a,0.5\n1,b,0.6\n")).points,
              ElementsAre("/a/0 acc@1=0.5", "/b/0 acc@1=0.6"));
}

TEST_F(ResultsTest, AMappingSaysWhichColumnsMeanWhat) {
  const auto path = file("t.csv", "variant,rep,lr,iteration,accuracy,note\nx,4,0.1,30,0.5,fine\n");
  const Mapping mapping{.row = "variant", .seed = "rep", .step = "iteration", .settings = {"lr"}};
  const auto kept = read(path, mapping);
  EXPECT_THAT(kept.points, ElementsAre("/x/4 accuracy@30=0.5"));
  EXPECT_THAT(kept.settings, UnorderedElementsAre(Pair("x/4 lr", "0.1"), Pair("x/4 note", "\"fine\"")));
  EXPECT_THAT(error_of(path, {.row = "varaint"}),
              HasSubstr("t.csv:1:1: --row: no column is called 'varaint'; did you mean 'variant'?"));
  EXPECT_THAT(read(path, {.row = "variant", .metrics = {"lr"}}).points, ElementsAre("/x/0 lr@1=0.1"));
}

TEST_F(ResultsTest, ChartsOfWandbHaveAColumnForEachRun) {
  const auto kept = read(file(
      "wandb.csv",
      "\"Step\",\"calm-sun-1 - acc\",\"calm-sun-1 - acc__MIN\",\"calm-sun-1 - acc__MAX\",\"red-2 - acc\"\n"
      "\"10\",\"0.5\",\"0.5\",\"0.5\",\"\"\n\"20\",\"0.6\",\"0.6\",\"0.6\",\"0.7\"\n"));
  EXPECT_THAT(kept.points,
              ElementsAre("/calm-sun-1/0 acc@10=0.5", "/calm-sun-1/0 acc@20=0.6", "/red-2/0 acc@20=0.7"));
}

TEST_F(ResultsTest, HistoriesOfWandbAreObjectsALine) {
  const auto kept = read(
      file("run-1/history.jsonl",
           R"({"acc": 0.5, "nested": {"loss": NaN}, "_step": 3, "_timestamp": 1700000000.5, "_runtime": 2})"
           "\n"));
  EXPECT_THAT(kept.points, ElementsAre("/history/0 acc@3=0.5", "/history/0 nested.loss@3=nan"));
  EXPECT_THAT(kept.times, ElementsAre(1700000000500, 1700000000500));
  EXPECT_THAT(read(folder / "run-1/history.jsonl", {.as_row = "base"}).points.front(), "/base/0 acc@3=0.5");
}

TEST_F(ResultsTest, WhatIsNestedInALineHasAPathAndListsAreTexts) {
  const auto kept = read(file(
      "a.jsonl",
      R"({"a": {"b": {"c": 1.50}, "d": -2}, "list": [1, {"x": [], "y\"": "z"}, [true, null]], "e": {}, "n": null, "yes": true, "f": 3})"
      "\n"));
  EXPECT_THAT(kept.points, ElementsAre("/a/0 a.b.c@1=1.5", "/a/0 a.d@1=-2", "/a/0 f@1=3"));
  EXPECT_THAT(kept.settings,
              UnorderedElementsAre(Pair("a/0 list", R"("[1,{\"x\":[],\"y\\\"\":\"z\"},[true,null]]")"),
                                   Pair("a/0 yes", "\"true\"")));
  EXPECT_THAT(
      read(file("e.jsonl",
                R"({"event": "start", "step": 0, "x": 1})"
                "\n"
                R"({"values": {"acc": 0.5, "in": {"loss": 1}}, "step": 7, "event": "metric", "at": 9})"
                "\n"))
          .points,
      ElementsAre("/e/0 acc@7=0.5", "/e/0 in.loss@7=1"));
  EXPECT_THAT(read(file("long.jsonl", "{\"acc\": 1}\n{\"acc\": " + std::string(4080, ' ') +
                                          "2}\n{\"acc\":" + std::string(4087, ' ') +
                                          "3}\n{\"acc\": " + std::string(9000, ' ') + "4}"))
                  .points,
              ElementsAre("/long/0 acc@1=1", "/long/0 acc@2=2", "/long/0 acc@3=3", "/long/0 acc@4=4"));
  EXPECT_THAT(error_of(file("huge.jsonl", std::string((16 << 20) + 1, ' ') + "{}")),
              HasSubstr("huge.jsonl:1:1: a line of more than 16 MiB"));
  EXPECT_THAT(error_of(file("deep.jsonl", "{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}\n")),
              HasSubstr("deep.jsonl:1:1: nested deeper than 32"));
  EXPECT_THAT(error_of(file("no.jsonl", "{\"a\": 1}\n  7\n")), HasSubstr("no.jsonl:2:3: expected an object"));
}

TEST_F(ResultsTest, ErrorsNameFileLineAndColumn) {
  const auto of = [&](const std::string& text) {
    const std::string said = error_of(file("t.csv", text));
    const auto name = said.find("t.csv");
    return name == std::string::npos ? said : said.substr(name);
  };
  EXPECT_EQ(of("row,acc\na,0.5\nb,high\n"),
            "t.csv:3:3: acc: expected a number that a double holds, got 'high'; --setting acc takes the "
            "column as a setting");
  EXPECT_THAT(of("row,acc\na,1e400\n"), HasSubstr("t.csv:2:3: "));
  EXPECT_THAT(of("row,step,acc\na,1.5,0\n"),
              HasSubstr("t.csv:2:3: step: expected a whole number from 0 to 4294967295, got '1.5'"));
  EXPECT_THAT(of("row,step,acc\na,-1,0\n"), HasSubstr("t.csv:2:3: step: expected a whole number"));
  EXPECT_THAT(of("row,acc\na\n"), HasSubstr("t.csv:2:1: 1 fields; expected 2"));
  EXPECT_THAT(of("row,acc\n\"a\n"), HasSubstr("t.csv:2:1: a quote that is never closed"));
  EXPECT_THAT(of("row,acc\n\"a\"b,1\n"), HasSubstr("t.csv:2:4: text behind a closing quote"));
  EXPECT_THAT(of("row,acc\n\xFF,1\n"), HasSubstr("t.csv:2:1: not UTF-8"));
  EXPECT_THAT(of("acc,acc\n1,2\n"), HasSubstr("t.csv:1:5: column 'acc' is there twice"));
  EXPECT_THAT(of(""), HasSubstr("t.csv:1:1: an empty file"));
  EXPECT_THAT(error_of(file("bad.jsonl", "{\"acc\": 1}\n{\"acc\": }\n")),
              HasSubstr("bad.jsonl:2:9: not valid JSON"));
  EXPECT_THAT(error_of(file("big.jsonl", "{\"acc\": 1e400}\n")),
              HasSubstr("big.jsonl:1:1: a number is beyond what a double holds"));
  EXPECT_THAT(error_of(file("list.json", "[1, 2]")), HasSubstr("expected JSON Lines"));
  EXPECT_THAT(error_of(folder / "absent.csv"), HasSubstr("absent.csv"));
}

TEST_F(ResultsTest, EventFilesOfAFolderAreRunsByTheirPath) {
  const auto record = [](const std::string& tag, std::int64_t step, double value) {
    return scalar_record(tag, step, value, 1700000000.25);
  };
  file("logs/lr=0.1/seed-3/events.out.tfevents.1.host",
       first_record(1) + record("acc", 1, 0.1) + record("acc", 2, 1.0 / 3));
  file("logs/other/events.out.tfevents.1.host", first_record(1) + record("loss", 7, -0.0));
  file("logs/x_y/seed-0/events.out.tfevents.2.host",
       first_record(1) + text_record("ablate/run", "ablate", R"({"sweep":"s","row":"x/y","seed":5})", 1) +
           record("acc", 1, 1));
  const auto kept = read(folder / "logs");
  EXPECT_THAT(kept.points, ElementsAre("/lr=0.1/3 acc@1=0.1", "/lr=0.1/3 acc@2=0.3333333333333333",
                                       "/other/0 loss@7=-0", "s/x/y/5 acc@1=1"));
  EXPECT_EQ(kept.times.front(), 1700000000250);
}

TEST_F(ResultsTest, AnEventFileThatIsCutOffGivesWhatIsWholeAndADamagedOneIsRefused) {
  const std::string whole = first_record(1) + scalar_record("acc", 1, 0.5, 1),
                    second = scalar_record("acc", 2, 0.6, 1);
  const auto cut = file("a.tfevents", whole + second.substr(0, second.size() - 3));
  Kept kept;
  EXPECT_THAT(read_results(cut, Format::kTensorBoard, {}, kept), ElementsAre(HasSubstr("is cut off")));
  EXPECT_THAT(kept.points, testing::SizeIs(1));
  std::string damaged = whole + second;
  damaged[damaged.size() - 12] ^= 1;
  EXPECT_THAT(error_of(file("b.tfevents", damaged)),
              HasSubstr(fmt::format("the content of the record at byte {} is damaged", whole.size())));
  EXPECT_THAT(error_of(file("c.tfevents", "certainly no event file")),
              HasSubstr("byte 0: not an event file of TensorBoard"));
}

TEST_F(ResultsTest, AFolderOfMlflowHasSeedsByItsParameterOrOneAfterTheOther) {
  const auto run = [&](const std::string& id, const std::string& name, const std::string& start,
                       const std::string& seed, const std::string& metric) {
    const std::string place = "mlruns/0/" + id + "/";
    file(place + "meta.yaml",
         fmt::format("lifecycle_stage: active\nrun_name: {}\nstart_time: {}\n", name, start));
    file(place + "metrics/val/acc", metric);
    if (!seed.empty()) file(place + "params/seed", seed);
    file(place + "params/lr", "0.1");
  };
  run("aaa", "base", "2", "7", "1700000000123 0.25 1\n1700000000456 0.5 2\n");
  run("bbb", "base", "1", "", "1 nan 0\n");
  run("ccc", "gone", "3", "", "1 1 0\n");
  file("mlruns/0/ccc/meta.yaml", "lifecycle_stage: deleted\nrun_name: gone\n");
  const auto kept = read(folder / "mlruns");
  EXPECT_THAT(kept.points,
              ElementsAre("/base/0 val/acc@0=nan", "/base/7 val/acc@1=0.25", "/base/7 val/acc@2=0.5"));
  EXPECT_THAT(kept.settings, UnorderedElementsAre(Pair("base/0 lr", "0.1"), Pair("base/7 lr", "0.1")));
  file("mlruns/0/aaa/metrics/bad", "1 2\n1 x 3\n");
  EXPECT_THAT(error_of(folder / "mlruns"),
              HasSubstr("metrics/bad:2:1: expected TIME VALUE STEP, got '1 x 3'"));
}

TEST_F(ResultsTest, ValuesWithoutAStepAreStepsOfTheirMetric) {
  file("mlruns/0/aaa/meta.yaml", "lifecycle_stage: active\nrun_name: base\n");
  file("mlruns/0/aaa/metrics/acc", "1 0.1 0\n2 0.2 0\n3 0.3 0\n");
  file("mlruns/0/aaa/metrics/loss", "1 3 0\n2 2 5\n");
  file("mlruns/0/aaa/metrics/test", "1 9 0\n");
  EXPECT_THAT(read(folder / "mlruns").points,
              ElementsAre("/base/0 acc@0=0.1", "/base/0 acc@1=0.2", "/base/0 acc@2=0.3", "/base/0 loss@0=3",
                          "/base/0 loss@5=2", "/base/0 test@0=9"));
  file("logs/a/x.tfevents", first_record(1) + scalar_record("acc", 0, 1, 1) + scalar_record("loss", 0, 4, 1) +
                                scalar_record("acc", 0, 2, 2) + scalar_record("loss", 1, 3, 2));
  Kept kept;
  EXPECT_THAT(read_results(folder / "logs", Format::kTensorBoard, {}, kept),
              ElementsAre("1 tag was logged without a step: the values are numbered in order"));
  EXPECT_THAT(kept.points, ElementsAre("/a/0 acc@0=1", "/a/0 loss@0=4", "/a/0 acc@1=2", "/a/0 loss@1=3"));
}

TEST_F(ResultsTest, RunsOfOneNameInTwoExperimentsAreTwoRows) {
  for (const std::string experiment : {"1", "2"}) {
    file("mlruns/" + experiment + "/meta.yaml", "experiment_id: '1'\nname: study-" + experiment + "\n");
    for (const std::string& name : {std::string{"base"}, "only" + experiment}) {
      file("mlruns/" + experiment + "/" + name + "/meta.yaml", "run_name: " + name + "\n");
      file("mlruns/" + experiment + "/" + name + "/metrics/acc", "1 0." + experiment + " 1\n");
    }
  }
  EXPECT_THAT(read(folder / "mlruns").points,
              UnorderedElementsAre("/study-1/base/0 acc@1=0.1", "/study-2/base/0 acc@1=0.2",
                                   "/only1/0 acc@1=0.1", "/only2/0 acc@1=0.2"));
}

TEST_F(ResultsTest, AStoreOfMlflowIsReadLikeItsFolder) {
  const auto path = folder / "mlflow.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, R"sql(
      CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE runs (run_uuid TEXT, name TEXT, lifecycle_stage TEXT, start_time INTEGER, experiment_id INTEGER, status TEXT);
      CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan INTEGER);
      CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
      CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
      INSERT INTO experiments VALUES (0, 'Default'), (1, 'second');
      INSERT INTO runs VALUES ('u1', 'base', 'active', 1, 0, 'FINISHED'), ('u2', NULL, 'active', 2, 0, 'FINISHED'), ('u3', 'x', 'deleted', 3, 0, 'FINISHED'),
                              ('u4', 'twin', 'active', 4, 0, 'FINISHED'), ('u5', 'twin', 'active', 5, 1, 'FINISHED'), ('u6', 'broken', 'active', 6, 0, 'FAILED');
      INSERT INTO metrics VALUES ('acc', 0.1, 5, 'u1', 1, 0), ('acc', 0.2, 6, 'u1', 2, 0), ('acc', 0, 7, 'u2', 1, 1),
                                 ('f1', 0.7, 5, 'u4', 0, 0), ('f1', 0.8, 5, 'u4', 0, 0), ('f1', 0.6, 5, 'u5', 0, 0);
      INSERT INTO params VALUES ('seed', '3', 'u1'), ('opt', 'sgd', 'u1');
      INSERT INTO tags VALUES ('mlflow.runName', 'named', 'u2');)sql",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  const auto kept = read(path);
  EXPECT_THAT(kept.points,
              ElementsAre("/base/3 acc@1=0.1", "/base/3 acc@2=0.2", "/named/0 acc@1=nan",
                          "/Default/twin/0 f1@0=0.7", "/Default/twin/0 f1@1=0.8", "/second/twin/0 f1@0=0.6"));
  EXPECT_THAT(kept.settings, ElementsAre(Pair("base/3 opt", "\"sgd\"")));
}

TEST_F(ResultsTest, WhatAFolderIsDoesNotDependOnTheOrderOfItsFiles) {
  file("mlruns/0/r/artifacts/a.tfevents", first_record(1));
  file("mlruns/0/r/z/meta.yaml", "run_name: x\n");
  file("mlruns/0/a.tfevents", first_record(1));
  EXPECT_EQ(format_of(folder / "mlruns"), Format::kMlflow);
  file("logs/a/b.tfevents", first_record(1));
  EXPECT_EQ(format_of(folder / "logs"), Format::kTensorBoard);
}

TEST_F(ResultsTest, WhatIsSaidOfAFileHasNoCommandsToTerminals) {
  EXPECT_THAT(error_of(file("t.csv", "row,acc\na,1\nb,\x1b[31m\n")), testing::Not(HasSubstr("\x1b")));
}

TEST_F(ResultsTest, AFolderOfNothingKnownSaysWhatIsExpected) {
  file("stuff/readme.txt", "hello");
  EXPECT_THAT(error_of(folder / "stuff"),
              HasSubstr("neither TensorBoard's event files nor MLflow's meta.yaml"));
}

}  // namespace
}  // namespace abl::exchange
