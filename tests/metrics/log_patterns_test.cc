// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/log_patterns.h"

#include <gmock/gmock.h>

#include "tests/metrics/collected.h"
#include "worker/metrics/finder.h"

namespace abl::metrics {
namespace {

using protocol::MetricSource;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Stream = MetricSource::Stream;

/// All that sources find in what a program prints.
struct Looked {
  Looked(std::vector<MetricSource> sources, const std::string& out, const std::string& err = "",
         std::uint32_t resume_step = 0) {
    Finder finder{sources, "/nowhere", resume_step};
    finder.read_log(Stream::kStdout, out, found);
    finder.read_log(Stream::kStderr, err, found);
    waiting = found.points;
    finder.close(found);
    lacking = finder.lacking();
  }
  Collected found;
  std::vector<Collected::Point> waiting;  ///< said before the end
  std::string lacking;
};

std::vector<MetricSource> pattern(const std::string& text) { return {{.patterns = {text}}}; }

TEST(LogPatterns, APatternFindsAStepAndItsNumbers) {
  const Looked looked{pattern("epoch (?<step>\\d+).* acc=(?<acc>[0-9.]+)"),
                      "epoch 1 loss=2.5 acc=0.25\nnoise\nepoch 2 loss=2.25 acc=0.5\n"};
  EXPECT_THAT(looked.found.points, ElementsAre(FieldsAre("acc", 1, 0.25), FieldsAre("acc", 2, 0.5)));
  EXPECT_THAT(looked.waiting, ElementsAre(FieldsAre("acc", 1, 0.25)))
      << "a point comes once a later step is there: until then another match of its step would take its "
         "place";
  EXPECT_EQ(looked.lacking, "");
}

TEST(LogPatterns, OfSeveralMatchesOfAStepTheLastCountsOrTheFirst) {
  const std::string log = "e1 acc=0.1\ne1 acc=0.2\ne2 acc=0.3\ne2 acc=0.4\n";
  auto sources = pattern("e(?<epoch>\\d) acc=(?<acc>\\S+)");
  EXPECT_THAT((Looked{sources, log}.found.points),
              ElementsAre(FieldsAre("acc", 1, 0.2), FieldsAre("acc", 2, 0.4)));
  sources[0].take = MetricSource::Take::kFirst;
  const Looked first{sources, "e1 acc=0.1\n"};
  EXPECT_THAT(first.waiting, ElementsAre(FieldsAre("acc", 1, 0.1))) << "at once";
}

TEST(LogPatterns, ProgressBarsAndColoursAreReadAsLines) {
  const Looked looked{
      pattern("^ *(?<step>\\d+)%.*loss=(?<loss>[0-9.]+)"), "",
      "\r  1%|#   | \x1b[32mloss\x1b[0m=0.9\x1b[K\r  2%|##  | loss=0.8\r\n"
      "\x1b]0;title\x07  3%|### | loss=0.7\n 4/9 loss=1\b\b\b\b\b\b\b\b\b\b  4%|### | loss=0.6"};
  EXPECT_THAT(looked.found.points, ElementsAre(FieldsAre("loss", 1, 0.9), FieldsAre("loss", 2, 0.8),
                                               FieldsAre("loss", 3, 0.7), FieldsAre("loss", 4, 0.6)));
}

TEST(LogPatterns, StepsOfOneLineAreThoseOfTheLinesBehindIt) {
  const Looked looked{
      {{.patterns = {"^Epoch (?<epoch>\\d+)", "train loss (?<loss>\\S+)", "val acc (?<acc>\\S+)"},
        .names = {{"acc", "val/top1"}},
        .split = "train"}},
      "val acc 9\nEpoch 1\n train loss 0.5\n val acc 60%\nEpoch 2\n train loss 0.4\n val acc 70%\n"};
  EXPECT_THAT(looked.found.points,
              UnorderedElementsAre(FieldsAre("train/loss", 1, 0.5), FieldsAre("val/top1", 1, 60.0),
                                   FieldsAre("train/loss", 2, 0.4), FieldsAre("val/top1", 2, 70.0)));
}

TEST(LogPatterns, ASourceMayTakeTheStepOfAnother) {
  const std::vector<MetricSource> sources{{.patterns = {"Train: (?<epoch>\\d+) .*Loss: (?<loss>\\S+)"}},
                                          {.patterns = {"Test: .*Acc@1: +(?<acc>\\S+)"}, .step = "last"}};
  const Looked looked{
      sources,
      "Test: Acc@1: 1.0\nTrain: 0 [0/9] Loss: 6.9\nTest: Acc@1: 10.5\nTrain: 1 [0/9] Loss: 6\n"
      "Test: Acc@1: 20.25\n"};
  EXPECT_THAT(looked.found.points,
              UnorderedElementsAre(FieldsAre("loss", 0, 6.9), FieldsAre("loss", 1, 6.0),
                                   FieldsAre("acc", 0, 10.5), FieldsAre("acc", 1, 20.25)));
}

TEST(LogPatterns, WhatTakesItsStepFromAnotherWaitsNoLongerThanThat) {
  const std::vector<MetricSource> sources{{.patterns = {"Train: (?<epoch>\\d+) loss (?<loss>\\S+)"}},
                                          {.patterns = {"Test: (?<acc>\\S+)"}, .step = "last"}};
  const Looked looked{sources, "Train: 0 loss 3\nTest: 1\nTest: 2\nTrain: 1 loss 2\n"};
  EXPECT_THAT(looked.waiting, UnorderedElementsAre(FieldsAre("loss", 0, 3.0), FieldsAre("acc", 0, 2.0)));
}

TEST(LogPatterns, WithoutAStepMatchesAreCountedFromTheCheckpointOn) {
  const std::vector<MetricSource> sources{{.patterns = {"acc (?<acc>\\S+)"}, .step = "count"}};
  EXPECT_THAT((Looked{sources, "acc 1\nacc 2\n"}.found.points),
              ElementsAre(FieldsAre("acc", 1, 1.0), FieldsAre("acc", 2, 2.0)));
  EXPECT_THAT((Looked{sources, "acc 3\n", "", 2}.found.points), ElementsAre(FieldsAre("acc", 3, 3.0)));
}

TEST(LogPatterns, OneStreamMayBeSearchedAlone) {
  auto sources = pattern("(?<step>\\d) (?<a>\\d)");
  sources[0].stream = Stream::kStderr;
  EXPECT_THAT((Looked{sources, "1 2\n", "3 4\n"}.found.points), ElementsAre(FieldsAre("a", 3, 4.0)));
  sources[0].stream = Stream::kStdout;
  EXPECT_THAT((Looked{sources, "1 2\n", "3 4\n"}.found.points), ElementsAre(FieldsAre("a", 1, 2.0)));
}

TEST(LogPatterns, WhatIsNoNumberIsRefusedAndTheRestOfTheLineTaken) {
  const Looked looked{pattern("(?<step>\\S+): (?<a>\\S+) (?<b>\\S+)"), "1: n/a 2\nx: 1 2\n"};
  EXPECT_THAT(looked.found.points, ElementsAre(FieldsAre("b", 1, 2.0)));
  EXPECT_THAT(looked.found.refused,
              ElementsAre("1: n/a 2: a: 'n/a' is not a number", "x: 1 2: step: 'x' is not a whole number"));
}

TEST(LogPatterns, WhoFindsNothingShowsTheLineThatLooksNearest) {
  const std::string log = "loading 12 images\nEpoch 1: accuracy 0.25\nepoch 2: accuracy 0.5\nbye 3\n";
  EXPECT_EQ(
      (Looked{pattern("epoch (?<step>\\d+).* acc=(?<acc>[0-9.]+)"), log}.lacking),
      "the pattern 'epoch (?<step>\\d+).* acc=(?<acc>[0-9.]+)' matched no line of its output; the line that "
      "looks nearest: 'Epoch 1: accuracy 0.25'");
  EXPECT_EQ(
      (Looked{pattern("(?<step>x)(?<a>y)"), ""}.lacking),
      "the pattern '(?<step>x)(?<a>y)' matched no line of its output, which has no line that looks like it");
  EXPECT_EQ((Looked{pattern("(?<step>\\d) (?<a>\\w)"), "1 x\n"}.lacking),
            "the pattern '(?<step>\\d) (?<a>\\w)' found no number in its output: a: 'x' is not a number");
  EXPECT_EQ((Looked{{{.patterns = {"(?<a>\\d)"}, .step = "last"}}, "1\n"}.lacking),
            "the pattern '(?<a>\\d)' found no number in its output: no step was found before it");
}

TEST(LogPatterns, ALongLineIsSearchedAtItsBeginning) {
  const Looked looked{pattern("(?<step>\\d)=(?<a>\\d)"), "1=2" + std::string(1 << 20, ' ') + "3=4\n5=6\n"};
  EXPECT_THAT(looked.found.points, ElementsAre(FieldsAre("a", 1, 2.0), FieldsAre("a", 5, 6.0)));
}

TEST(LogPatterns, HowAPipeCutsTheBytesDoesNotMatter) {
  const std::string log = "e1 \x1b[1macc\x1b[0m=1\r\ne2 acc=2\re3 acc=3";
  const auto sources = pattern("e(?<epoch>\\d) acc=(?<acc>\\d)");
  Finder finder{sources, "/nowhere", 0};
  Collected found;
  for (const char c : log) finder.read_log(Stream::kStdout, {&c, 1}, found);
  finder.close(found);
  EXPECT_EQ(found.points, (Looked{sources, log}.found.points));
  EXPECT_EQ(found.points.size(), 3U);
}

}  // namespace
}  // namespace abl::metrics
