// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/trainer_output.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "base/utf8.h"
#include "tests/agent/fixtures.h"

namespace abl::agent {
namespace {

using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

class TrainerOutputTest : public testing::Test {
 protected:
  FakeClock clock;
  TrainerOutput output{{.directory = "/runs/3/1", .host = "here", .resume_run = 5, .resume_step = 8}, clock};

  RunBatch said(const std::string& bytes) {
    output.read_stdout(bytes);
    RunBatch batch = output.batch();
    output.clear();
    return batch;
  }
};

TEST_F(TrainerOutputTest, MetricsAreTheNumbersAsPrinted) {
  const auto batch = said(
      "{\"event\":\"metric\",\"step\":1,\"values\":{\"a\":0.1,\"b\":12}}\n"
      "{\"event\":\"metric\",\"step\":4294967295,\"values\":{\"a\":2.2250738585072014e-308,\"extra\":1}, "
      "\"unknown\": []}\n");
  EXPECT_THAT(points({batch}, "a"), ElementsAre(Pair(1U, 0.1), Pair(4294967295U, 2.2250738585072014e-308)));
  EXPECT_THAT(points({batch}, "b"), ElementsAre(Pair(1U, 12.0)));
  EXPECT_EQ(batch.series(0).times_ms(0), clock.now().time_since_epoch().count());
  EXPECT_EQ(batch.log(), "");
}

TEST_F(TrainerOutputTest, NanAndInfinitiesAreTexts) {
  const auto batch = said(R"({"event":"metric","step":1,"values":{"a":"NaN","b":"Infinity","c":"-Infinity"}})"
                          "\n");
  EXPECT_TRUE(std::isnan(points({batch}, "a").at(0).second));
  EXPECT_EQ(points({batch}, "b").at(0).second, INFINITY);
  EXPECT_EQ(points({batch}, "c").at(0).second, -INFINITY);
}

TEST_F(TrainerOutputTest, NumbersThatAreNotFiniteAreTakenAsPythonsJsonDumpsWritesThem) {
  const auto batch = said(
      "{\"event\": \"metric\", \"step\": 3, \"values\": {\"acc\": 0.1, \"loss\": NaN, \"high\": Infinity, "
      "\"low\":-Infinity, \"NaN\": 2}, \"more\": {\"list\": [NaN, {\"a\": -Infinity}]}}\n");
  EXPECT_THAT(points({batch}, "acc"), ElementsAre(Pair(3U, 0.1)))
      << "the finite values of the line count too";
  EXPECT_TRUE(std::isnan(points({batch}, "loss").at(0).second));
  EXPECT_EQ(points({batch}, "high").at(0).second, INFINITY);
  EXPECT_EQ(points({batch}, "low").at(0).second, -INFINITY);
  EXPECT_THAT(points({batch}, "NaN"), ElementsAre(Pair(3U, 2.0))) << "a name is a text";
  EXPECT_EQ(batch.log(), "");
  EXPECT_EQ(batch.refused_lines(), 0U);
}

TEST_F(TrainerOutputTest, WhatStandsInATextStaysAsItIs) {
  EXPECT_EQ(said(R"({"event":"start","environment":{"lr":NaN,"note":"a \" NaN, Infinity"}})"
                 "\n")
                .started()
                .environment_json(),
            R"({"lr":"NaN","note":"a \" NaN, Infinity"})");
}

TEST_F(TrainerOutputTest, NumbersInTextsAndStepsWithAPointAreNumbers) {
  const auto batch =
      said(R"({"event":"metric","step":1.0,"values":{"a":"0.5","b":" +1e-3 ","c":"nan","d":"-inf"}})"
           "\n"
           R"({"event":"metric","step":"2","values":{"a":"7"}})"
           "\n");
  EXPECT_THAT(points({batch}, "a"), ElementsAre(Pair(1U, 0.5), Pair(2U, 7.0)));
  EXPECT_THAT(points({batch}, "b"), ElementsAre(Pair(1U, 1e-3)));
  EXPECT_TRUE(std::isnan(points({batch}, "c").at(0).second));
  EXPECT_EQ(points({batch}, "d").at(0).second, -INFINITY);
  EXPECT_EQ(batch.log(), "");
}

TEST_F(TrainerOutputTest, ACheckpointIsNoLongerThanAPathAndADigest) {
  const std::string begin = R"({"event":"checkpoint","step":1,"path":")";
  auto batch = said(begin + std::string(5000, 'p') + "\"}\n");
  EXPECT_EQ(batch.checkpoints_size(), 0);
  EXPECT_THAT(batch.log(), HasSubstr("\"path\" must be a path of at most 4096 bytes"));
  batch = said(begin + R"(p","sha256":")" + std::string(65, 'a') + "\"}\n");
  EXPECT_EQ(batch.checkpoints_size(), 0);
  EXPECT_THAT(batch.log(), HasSubstr("\"sha256\" must be 64 hexadecimal digits"));
  EXPECT_EQ(said(begin + R"(p","sha256":")" + std::string(64, 'a') + "\"}\n").checkpoints_size(), 1);
}

TEST_F(TrainerOutputTest, RefusedLinesOfMetricsAreCountedAndTheFirstIsKeptWithTheReason) {
  const std::string wrong = R"({"event":"metric","step":1,"values":{"a":"high"}})";
  auto batch = said(wrong + "\n" + R"({"event":"metric","step":-1,"values":{"a":1}})" + "\n" +
                    R"({"event":"metric","step":2,"values":{"a":1}})" + "\n");
  EXPECT_EQ(batch.refused_lines(), 2U);
  EXPECT_EQ(batch.refused_example(), wrong + R"( ("values.a" must be a number, NaN, Infinity or -Infinity))");
  EXPECT_THAT(points({batch}, "a"), ElementsAre(Pair(2U, 1.0)));
  EXPECT_EQ(said("epoch 1\n{\"event\":\"checkpoint\",\"step\":1}\n").refused_lines(), 0U)
      << "what carries no numbers is not counted, and a batch counts its own lines only";
  batch = said("{\"event\":\"metric\",\"step\":1,\"values\":{\"a\":\"" + std::string(500, 'x') + "\"}}\n");
  EXPECT_LT(batch.refused_example().size(), 300U);
  EXPECT_THAT(batch.refused_example(), HasSubstr("xx… (\"values.a\" must be"));
}

TEST_F(TrainerOutputTest, AMetricBehindAProgressBarIsRead) {
  auto batch =
      said("\r 10%|#    |\r 20%|##   | lr={0.1} {\"event\":\"metric\",\"step\":1,\"values\":{\"a\":1}}\n");
  EXPECT_EQ(batch.refused_lines(), 1U) << "where the object begins is not told";
  batch = said("\r 10%|#    |\r 20%|##   | 1/5 {\"event\":\"metric\",\"step\":1,\"values\":{\"a\":1}}\n");
  EXPECT_THAT(points({batch}, "a"), ElementsAre(Pair(1U, 1.0)));
  EXPECT_EQ(batch.refused_lines(), 0U);
  batch = said("\r 10%|# {\"event\":\"metric\",\"step\":1,\"values\":{\"a\":\"high\"}}\n");
  EXPECT_EQ(batch.refused_lines(), 1U);
  EXPECT_THAT(batch.log(), StartsWith("\r 10%|# {")) << "the whole line";
  EXPECT_EQ(said("\r 50%|## {it: 3}\n").refused_lines(), 0U);
}

TEST_F(TrainerOutputTest, AMetricBehindOtherTextIsCountedAsRefused) {
  const auto batch = said("INFO: {\"event\":\"metric\",\"step\":1,\"values\":{\"a\":1}}\n");
  EXPECT_EQ(batch.refused_lines(), 1U);
  EXPECT_THAT(batch.refused_example(), HasSubstr("(a metric must be on its own line)"));
}

TEST_F(TrainerOutputTest, PointsThatRepeatAStepWithAnotherValueAreCounted) {
  std::string lines;
  for (const char* value : {"1", "2", "3", "1", "NaN"})
    lines += fmt::format("{{\"event\":\"metric\",\"step\":0,\"values\":{{\"a\":{}}}}}\n", value);
  const auto batch = said(lines);
  EXPECT_THAT(points({batch}, "a"), ElementsAre(Pair(0U, 1.0)));
  EXPECT_EQ(batch.repeated_points(), 3U);
}

TEST_F(TrainerOutputTest, LinesThatWereMeantAsMetricsAreNamed) {
  for (const auto& [line, reason] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"({'event': 'metric', 'step': 1, 'values': {'a': 1}})", "strings need double quotes"},
           {R"({"event":"metric","step":1,"values":{"a":1})", "not valid JSON"},
           {R"({"event":"metric","step":1,"values":{"a":1e999}})", "beyond what 64 bits hold"},
           {R"({"event":"metrics","step":1,"values":{"a":1}})", "expected \"event\": \"metric\""},
           {R"({"step":1,"values":{"a":1}})", "expected \"event\": \"metric\""}}) {
    const auto batch = said(line + "\n");
    EXPECT_THAT(batch.log(), StartsWith(line + "\n[worker] the line above was not understood: ")) << line;
    EXPECT_THAT(batch.log(), HasSubstr(reason));
    EXPECT_EQ(batch.refused_lines(), 1U) << line;
    EXPECT_EQ(batch.series_size(), 0) << line;
  }
}

TEST_F(TrainerOutputTest, PointsOfABatchAscendAndTheLaterValueOfAStepCounts) {
  std::string lines;
  for (const auto& [step, value] : {std::pair{5, 1}, {3, 2}, {9, 3}, {3, 4}, {4, 5}})
    lines += fmt::format("{{\"event\":\"metric\",\"step\":{},\"values\":{{\"a\":{}}}}}\n", step, value);
  EXPECT_THAT(points({said(lines)}, "a"),
              ElementsAre(Pair(3U, 2.0), Pair(4U, 5.0), Pair(5U, 1.0), Pair(9U, 3.0)));
}

TEST_F(TrainerOutputTest, EventsWithKeysOfWrongTypesAreLogWithTheReasonAndNothingOfThemIsTaken) {
  for (const auto& [line, reason] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"({"event":"metric","step":"one","values":{"a":1}})", "\"step\" must be a whole number"},
           {R"({"event":"metric","step":true,"values":{"a":1}})", "\"step\" must be a whole number"},
           {R"({"event":"metric","step":NaN,"values":{"a":1}})", "\"step\" must be a whole number"},
           {R"({"event":"metric","step":-1,"values":{"a":1}})", "\"step\" must be a whole number"},
           {R"({"event":"metric","step":1.5,"values":{"a":1}})", "\"step\" must be a whole number"},
           {R"({"event":"metric","step":4294967296,"values":{"a":1}})", "\"step\" must be a whole number"},
           {R"({"event":"metric","values":{"a":1}})", "\"step\" must be a whole number"},
           {R"({"event":"metric","step":1,"values":[1]})", "\"values\" must be an object"},
           {R"({"event":"metric","step":1,"values":{"a":1,"b":"high"}})", "\"values.b\" must be a number"},
           {R"({"event":"checkpoint","step":1,"path":7})", "\"path\" must be a text"},
           {R"({"event":"start","environment":"torch"})", "\"environment\" must be an object"},
           {R"({"event":"log","text":null})", "\"text\" must be a text"},
           {R"({"event":"end","status":"done"})", "\"status\" must be completed, stopped or failed"},
           {R"({"event":"end","status":"failed","retryable":"no"})",
            "\"retryable\" must be true or false"}}) {
    const auto batch = said(line + "\n");
    EXPECT_THAT(batch.log(), StartsWith(line + "\n[worker] "));
    EXPECT_THAT(batch.log(), HasSubstr(reason));
    EXPECT_EQ(batch.series_size() + batch.checkpoints_size(), 0) << line;
    EXPECT_FALSE(batch.has_started()) << line;
  }
  EXPECT_FALSE(output.said_end());
}

TEST_F(TrainerOutputTest, EverythingElseIsLog) {
  EXPECT_EQ(said("epoch 1\n").log(), "epoch 1\n");
  EXPECT_EQ(said("{not json\n").log(), "{not json\n");
  EXPECT_EQ(said("[1, 2]\n").log(), "[1, 2]\n");
  EXPECT_EQ(said("{\"loss\": 1}\n").log(), "{\"loss\": 1}\n");
  EXPECT_THAT(said("{\"event\":\"probe\",\"path\":\"b\"}\n").log(),
              HasSubstr("\"step\" must be a whole number"));
  EXPECT_EQ(said("{\"event\":\"from the future\"}\n").log(), "{\"event\":\"from the future\"}\n");
  EXPECT_EQ(said("\xff\xfe\n").log(), "\xff\xfe\n") << "a log is bytes";
  EXPECT_EQ(said("{\"event\":\"metric\",\"step\":1,\"values\":{\"\xff\":1}}\n").series_size(), 0);
}

TEST_F(TrainerOutputTest, LogEventsAreLinesWithTheirLevel) {
  EXPECT_EQ(said(R"({"event":"log","level":"info","text":"ready"})"
                 "\n")
                .log(),
            "ready\n");
  EXPECT_EQ(said(R"({"event":"log","level":"warning","text":"no GPU"})"
                 "\n")
                .log(),
            "warning: no GPU\n");
  EXPECT_EQ(said(R"({"event":"log","level":"fatal","text":"no GPU"})"
                 "\n")
                .log(),
            "fatal: no GPU\n")
      << "a level that only the program knows";
}

TEST_F(TrainerOutputTest, LinesArriveInPieces) {
  output.read_stdout("{\"event\":\"metric\",\"st");
  EXPECT_TRUE(output.empty());
  EXPECT_THAT(points({said("ep\":1,\"values\":{\"a\":1}}\r\nrest")}, "a"), ElementsAre(Pair(1U, 1.0)));
  output.close();
  EXPECT_EQ(output.batch().log(), "rest\n");
}

TEST_F(TrainerOutputTest, ALineOfAMegabyteIsLogAndTheNextEventIsUnderstood) {
  const std::string huge = "{\"event\":\"metric\",\"x\":\"" + std::string(1 << 20, 'x') + "\"}";
  std::string log;
  std::uint32_t refused = 0;
  for (std::size_t i = 0; i < huge.size(); i += 65536) {
    const auto batch = said(huge.substr(i, 65536));
    refused += batch.refused_lines();
    EXPECT_LT(batch.ByteSizeLong(), 1U << 20);
    log += batch.log();
  }
  const auto batch = said("\n{\"event\":\"metric\",\"step\":1,\"values\":{\"a\":1}}\n");
  EXPECT_EQ(log + batch.log(), huge + "\n");
  EXPECT_EQ(refused, 1U) << "its numbers are missing";
  EXPECT_EQ(points({batch}, "a").size(), 1U);
}

TEST_F(TrainerOutputTest, NestingAsDeepAsALineDoesNoHarm) {
  const std::string deep = "{\"event\":\"start\",\"environment\":{\"a\":" + std::string(100'000, '[') +
                           std::string(100'000, ']') + "}}\n";
  EXPECT_LT(said(deep).started().environment_json().size(), 1000U);
}

TEST_F(TrainerOutputTest, StandardErrorIsLogByWholeLines) {
  output.read_stderr("half ");
  output.read_stdout("out\n");
  output.read_stderr("a line\n");
  EXPECT_EQ(output.batch().log(), "out\nhalf a line\n");
  output.clear();
  const std::string bar(9000, '\r');
  output.read_stderr(bar);
  EXPECT_EQ(output.batch().log(), bar) << "a progress bar without line ends is not held back for ever";
}

TEST_F(TrainerOutputTest, StartTellsWhatTheRunIs) {
  const auto batch = said(
      R"({"v":1,"event":"start","total_steps":400,"data_fingerprint":"shapes-1","bit_exact":true,"environment":{"torch":"2.13.0"}})"
      "\n");
  ASSERT_TRUE(batch.has_started());
  EXPECT_EQ(batch.started().total_steps(), 400U);
  EXPECT_EQ(batch.started().data_fingerprint(), "shapes-1");
  EXPECT_TRUE(batch.started().bit_exact());
  EXPECT_EQ(batch.started().directory(), "/runs/3/1");
  EXPECT_EQ(batch.started().environment_json(), R"({"torch":"2.13.0"})");
  EXPECT_FALSE(batch.started().has_resumed_from_step());
  EXPECT_EQ(batch.started().resumed_from_run(), 0U) << "it was given a checkpoint and did not read it";
  EXPECT_THAT(said("{\"event\":\"start\"}\n").log(), HasSubstr("duplicate start event"));
}

TEST_F(TrainerOutputTest, StartTellsWhichWeightsTheRunHas) {
  const auto batch = said(R"({"event":"start","environment":{"weights":{"regnet":"ab12"}}})"
                          "\n");
  EXPECT_THAT(batch.started().weights(), testing::UnorderedElementsAre(testing::Pair("regnet", "ab12")));
}

TEST_F(TrainerOutputTest, WhatACommandCallsWeightsInItsEnvironmentIsLeftAlone) {
  const auto batch = said(R"({"event":"start","environment":{"weights":[3]}})"
                          "\n");
  ASSERT_TRUE(batch.has_started());
  EXPECT_TRUE(batch.started().weights().empty());
}

TEST_F(TrainerOutputTest, AResumedRunNamesTheRunThatItGoesOnFrom) {
  const auto batch = said("{\"event\":\"start\",\"resumed_step\":200}\n");
  EXPECT_EQ(batch.started().resumed_from_step(), 200U);
  EXPECT_EQ(batch.started().resumed_from_run(), 5U);
  EXPECT_FALSE(batch.started().bit_exact()) << "it did not say so";
}

TEST_F(TrainerOutputTest, WithoutStartTheFirstMetricStartsTheRunOnce) {
  EXPECT_FALSE(said("hello\n").has_started());
  EXPECT_TRUE(said("{\"event\":\"metric\",\"step\":1,\"values\":{\"a\":1}}\n").has_started());
  EXPECT_FALSE(said("{\"event\":\"metric\",\"step\":2,\"values\":{\"a\":1}}\n").has_started());
}

TEST_F(TrainerOutputTest, WithoutStartAFirstMetricAboveTheCheckpointsStepMeansThatItResumed) {
  const auto batch = said("{\"event\":\"metric\",\"step\":9,\"values\":{\"a\":1}}\n");
  ASSERT_TRUE(batch.started().has_resumed_from_step());
  EXPECT_EQ(batch.started().resumed_from_step(), 8U);
  EXPECT_EQ(batch.started().resumed_from_run(), 5U);
  EXPECT_FALSE(batch.started().bit_exact()) << "it did not say so";
}

TEST_F(TrainerOutputTest, WithoutStartAFirstMetricAtTheCheckpointsStepMeansThatItStartedAnew) {
  const auto batch = said("{\"event\":\"metric\",\"step\":8,\"values\":{\"a\":1}}\n");
  ASSERT_TRUE(batch.has_started());
  EXPECT_FALSE(batch.started().has_resumed_from_step());
  EXPECT_EQ(batch.started().resumed_from_run(), 0U);
  EXPECT_FALSE(said("{\"event\":\"metric\",\"step\":9,\"values\":{\"a\":1}}\n").has_started())
      << "only the first says it";
}

TEST_F(TrainerOutputTest, WithoutStartAFirstCheckpointNotBelowTheGivenOneMeansThatItResumed) {
  for (const auto& [step, resumed] : {std::pair{7, false}, {8, true}, {9, true}}) {
    TrainerOutput fresh{{.directory = "/runs/3/1", .resume_run = 5, .resume_step = 8}, clock};
    fresh.read_stdout(fmt::format("{{\"event\":\"checkpoint\",\"step\":{},\"path\":\"c\"}}\n", step));
    ASSERT_TRUE(fresh.batch().has_started());
    EXPECT_EQ(fresh.batch().started().has_resumed_from_step(), resumed) << step;
    EXPECT_EQ(fresh.batch().started().resumed_from_run(), resumed ? 5U : 0U) << step;
  }
}

TEST_F(TrainerOutputTest, WhatWasGivenNoCheckpointHasNotResumed) {
  TrainerOutput fresh{{.directory = "/runs/3/1"}, clock};
  fresh.read_stdout("{\"event\":\"metric\",\"step\":9,\"values\":{\"a\":1}}\n");
  ASSERT_TRUE(fresh.batch().has_started());
  EXPECT_FALSE(fresh.batch().started().has_resumed_from_step());
  EXPECT_TRUE(fresh.batch().started().bit_exact());
}

TEST_F(TrainerOutputTest, WhatCompletesWithoutAWordOfAStepHadNothingLeftToDoAfterItsCheckpoint) {
  for (const auto& [status, resumed] : {std::pair{RunEnded::STATUS_COMPLETED, true},
                                        {RunEnded::STATUS_STOPPED, false},
                                        {RunEnded::STATUS_FAILED, false},
                                        {RunEnded::STATUS_LOST, false}}) {
    TrainerOutput silent{{.directory = "/runs/3/1", .resume_run = 5, .resume_step = 8}, clock};
    silent.read_stdout("nothing left to do\n");
    RunEnded ended;
    ended.set_status(status);
    const auto last = silent.take_last(ended);
    ASSERT_TRUE(last.has_started());
    EXPECT_EQ(last.started().has_resumed_from_step(), resumed) << status;
    EXPECT_EQ(last.started().resumed_from_step(), resumed ? 8U : 0U) << status;
    EXPECT_EQ(last.started().resumed_from_run(), resumed ? 5U : 0U) << status;
  }
}

TEST_F(TrainerOutputTest, WhatCompletesAfterAStartWithoutResumedStepStartedAnew) {
  EXPECT_FALSE(said("{\"event\":\"start\"}\n").started().has_resumed_from_step());
  RunEnded ended;
  ended.set_status(RunEnded::STATUS_COMPLETED);
  EXPECT_FALSE(output.take_last(ended).has_started());
}

TEST_F(TrainerOutputTest, CheckpointPathsAreMadeAbsolute) {
  const auto batch = said(
      "{\"event\":\"checkpoint\",\"step\":3,\"path\":\"./step-3.pt\",\"sha256\":\"abc\"}\n"
      "{\"event\":\"checkpoint\",\"step\":4,\"path\":\"/elsewhere/x.pt\",\"sha256\":\"def\"}\n");
  ASSERT_EQ(batch.checkpoints_size(), 2);
  EXPECT_EQ(batch.checkpoints(0).path(), "/runs/3/1/step-3.pt");
  EXPECT_EQ(batch.checkpoints(0).host(), "here");
  EXPECT_EQ(batch.checkpoints(0).sha256(), "abc");
  EXPECT_EQ(batch.checkpoints(1).path(), "/elsewhere/x.pt");
}

TEST_F(TrainerOutputTest, ABatchIsDueAfterAQuarterOfASecondOrWhenItIsLarge) {
  EXPECT_FALSE(output.due());
  output.read_stdout("a\n");
  EXPECT_FALSE(output.due());
  clock.advance(Milliseconds{249});
  EXPECT_FALSE(output.due());
  clock.advance(Milliseconds{1});
  EXPECT_TRUE(output.due());
  output.clear();
  EXPECT_FALSE(output.due());
  output.read_stdout(std::string(64 << 10, 'x') + "\n");
  EXPECT_TRUE(output.due());
}

TEST_F(TrainerOutputTest, EndIsKeptForTheRunsLastBatch) {
  said(R"({"event":"end","status":"failed","reason":"no folder","retryable":false})"
       "\n");
  ASSERT_TRUE(output.said_end());
  EXPECT_EQ(output.said_end()->status, RunEnded::STATUS_FAILED);
  EXPECT_EQ(output.said_end()->reason, "no folder");
  EXPECT_FALSE(output.said_end()->retryable);
  const auto last = output.take_last(RunEnded{});
  EXPECT_TRUE(last.has_ended());
  EXPECT_TRUE(last.has_started());
  EXPECT_TRUE(output.empty());
}

TEST_F(TrainerOutputTest, AFailureMayBeTheMachinesFault) {
  EXPECT_FALSE(output.heard());
  said(R"({"event":"end","status":"failed","fault":"disk","needed_bytes":1900000})"
       "\n");
  ASSERT_TRUE(output.said_end());
  EXPECT_EQ(output.said_end()->fault, protocol::Fault::Part::kDisk);
  EXPECT_EQ(output.said_end()->needed_bytes, 1'900'000U);
  said(R"({"event":"end","status":"failed","fault":"device"})"
       "\n");
  EXPECT_EQ(output.said_end()->fault, protocol::Fault::Part::kDevice);
  said(R"({"event":"end","status":"failed","fault":"data"})"
       "\n");
  EXPECT_EQ(output.said_end()->fault, protocol::Fault::Part::kData);
  said(R"({"event":"end","status":"failed","fault":"file"})"
       "\n");
  EXPECT_EQ(output.said_end()->fault, protocol::Fault::Part::kFile);
  said(R"({"event":"end","status":"failed"})"
       "\n");
  EXPECT_FALSE(output.said_end()->fault);
  EXPECT_TRUE(output.heard());
}

TEST_F(TrainerOutputTest, AFaultOfAnotherNameIsLogWithTheReason) {
  const auto batch = said(R"({"event":"end","status":"failed","fault":"disc"})"
                          "\n");
  EXPECT_FALSE(output.said_end());
  EXPECT_THAT(batch.log(), HasSubstr("\"fault\" must be disk, device, data or file"));
}

TEST_F(TrainerOutputTest, TheLastLinesMakeAReasonInValidUtf8) {
  output.read_stderr("one\ntwo\n\nthree \xff\n  \nfour\n");
  EXPECT_EQ(output.last_lines(), "two | three \uFFFD | four");
  output.read_stderr(std::string(5000, 'y') + "\n");
  EXPECT_LE(output.last_lines().size(), 1000U);
}

TEST_F(TrainerOutputTest, TheLastLinesAreTheProgramsOwn) {
  const auto batch = said("ValueError: no such optimiser\n{\"event\":\"metric\",\"step\":-1}\n");
  EXPECT_THAT(batch.log(), HasSubstr("[worker] the line above was not understood"));
  EXPECT_EQ(output.last_lines(), "ValueError: no such optimiser | {\"event\":\"metric\",\"step\":-1}");
}

TEST(Utf8, WhatIsValidStaysAndEveryOtherByteIsReplaced) {
  EXPECT_EQ(valid_utf8("a \u00e9 \u20ac \U0001F600"), "a \u00e9 \u20ac \U0001F600");
  EXPECT_EQ(valid_utf8("\x80"), "\uFFFD");
  EXPECT_EQ(valid_utf8("\xc3"), "\uFFFD") << "cut short";
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "surrogate";
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "above U+10FFFF";
}

class FoundOutputTest : public testing::Test {
 protected:
  TrainerOutput output(std::uint32_t resume_run, std::uint32_t resume_step) const {
    return TrainerOutput{{.directory = "/runs/3/1",
                          .host = "here",
                          .resume_run = resume_run,
                          .resume_step = resume_step,
                          .sources = {{.patterns = {"epoch (?<epoch>\\d+) acc (?<acc>\\S+)"}}}},
                         clock};
  }
  FakeClock clock;
  TemporaryFolder folder;
};

TEST_F(FoundOutputTest, NumbersOfLogLinesAreMetricsAndTheLinesStayInTheLog) {
  TrainerOutput said = output(0, 0);
  said.read_stdout("epoch 1 acc 0.5\n{\"event\":\"metric\",\"step\":1,\"values\":{\"loss\":2}}\n");
  said.read_stderr("epoch 2 acc 0.75\n");
  said.close();
  EXPECT_EQ(said.lacks_metrics(), "");
  const RunBatch batch = said.take_last({});
  EXPECT_THAT(points({batch}, "acc"), ElementsAre(Pair(1U, 0.5), Pair(2U, 0.75)));
  EXPECT_THAT(points({batch}, "loss"), ElementsAre(Pair(1U, 2.0))) << "events are read as ever";
  EXPECT_EQ(batch.log(), "epoch 1 acc 0.5\nepoch 2 acc 0.75\n");
  EXPECT_TRUE(batch.started().bit_exact());
}

TEST_F(FoundOutputTest, WhoWasGivenACheckpointWentOnFromTheStepThatItSpeaksOfFirst) {
  const auto first = [&](std::uint32_t resume_step, const std::string& line) {
    TrainerOutput said = output(5, resume_step);
    said.read_stdout(line);
    said.close();
    RunEnded ended;
    ended.set_status(RunEnded::STATUS_COMPLETED);
    return said.take_last(ended).started();
  };
  EXPECT_EQ(first(8, "epoch 9 acc 1\n").resumed_from_step(), 8U);
  EXPECT_EQ(first(9, "epoch 9 acc 1\n").resumed_from_step(), 8U) << "the checkpoint was of the step before";
  EXPECT_EQ(first(7, "epoch 9 acc 1\n").resumed_from_step(), 8U) << "or of a later one";
  EXPECT_EQ(first(0, "epoch 1 acc 1\n").resumed_from_run(), 5U) << "steps may begin at 0";
  EXPECT_FALSE(first(8, "epoch 1 acc 1\n").has_resumed_from_step()) << "it began again";
  EXPECT_FALSE(first(8, "epoch 0 acc 1\n").has_resumed_from_step());
  EXPECT_EQ(first(8, "").resumed_from_step(), 8U) << "nothing was left to do";
}

TEST_F(FoundOutputTest, WhoFindsNothingLacksMetricsUnlessNothingWasLeftToDo) {
  TrainerOutput said = output(0, 0);
  said.read_stdout("Epoch 1: acc 0.5\n");
  said.close();
  EXPECT_THAT(said.lacks_metrics(), EndsWith("the line that looks nearest: 'Epoch 1: acc 0.5'"));
  EXPECT_FALSE(said.went_on());
  TrainerOutput resumed = output(5, 8);
  resumed.close();
  EXPECT_TRUE(resumed.went_on()) << "nothing was left to do";
}

TEST_F(FoundOutputTest, WhoWentOnFromACheckpointMayLackWhatTheAttemptBeforeHasSaid) {
  const auto went_on = [&](const std::string& line) {
    TrainerOutput said = output(5, 8);
    said.read_stdout(line);
    said.close();
    return said.went_on();
  };
  EXPECT_TRUE(went_on("epoch 9 acc 0.5\n"));
  EXPECT_FALSE(went_on("epoch 1 acc 0.5\n")) << "it began again";
}

TEST_F(FoundOutputTest, TwoLongNamesAreNotCutToOne) {
  TrainerOutput said{{.directory = folder.path(),
                      .host = "here",
                      .sources = {{.kind = protocol::MetricSource::Kind::kFile, .path = "r.csv"}}},
                     clock};
  const std::string name(200, 'x');
  write_file(folder / "r.csv", "step," + name + "," + name + "a," + name + "b\n1,1,2,3\n");
  while (said.look_at_files()) continue;
  said.close();
  const RunBatch batch = said.take_last({});
  EXPECT_THAT(points({batch}, name), ElementsAre(Pair(1U, 1.0)));
  EXPECT_EQ(batch.series_size(), 1);
  EXPECT_EQ(batch.refused_lines(), 2U);
  EXPECT_THAT(batch.refused_example(), EndsWith("(a name of 201 bytes; a metric's has 200 at most)"));
}

TEST_F(TrainerOutputTest, AReportOfWaitingForDataIsOfTheTimeSinceTheOneBefore) {
  const auto reports = [&](double share) {
    output.read_stdout(fmt::format(R"({{"event":"metric","step":9,"values":{{"time/data":{}}}}})", share) +
                       "\n");
    return output.take_data_wait();
  };
  clock.advance(Milliseconds{60'000});  // it loads its libraries
  output.read_stdout("{\"v\":1,\"event\":\"start\",\"total_steps\":10}\n");
  clock.advance(Milliseconds{2000});
  const auto first = reports(0.25);
  EXPECT_EQ(first.of, Seconds{2});
  EXPECT_EQ(first.waited, Seconds{0.5});
  clock.advance(Milliseconds{1000});
  EXPECT_EQ(reports(1).waited, Seconds{1});
  EXPECT_EQ(reports(1).of, Seconds{0}) << "said at once with the one before: they share their time";
  clock.advance(Milliseconds{1000});
  EXPECT_EQ(reports(7).of, Seconds{0}) << "no share";
  EXPECT_EQ(output.take_data_wait().of, Seconds{0});
}

}  // namespace
}  // namespace abl::agent
