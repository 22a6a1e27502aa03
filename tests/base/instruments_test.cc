// SPDX-License-Identifier: Apache-2.0
#include "base/instruments.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "tests/exposition.h"

namespace abl {
namespace {

TEST(Instruments, AFamilyIsWrittenAsPrometheusReadsIt) {
  Tally done;
  done.add();
  done.add(41);
  Exposition exposition;
  exposition.counter("done_total", "What is done.").add(done);
  exposition.gauge("slots", "A\\B\nC").add(2, {{"state", "busy"}, {"kind", "a \"b\"\\\n"}}).add(0.5);
  EXPECT_EQ(exposition.text(),
            "# HELP done_total What is done.\n# TYPE done_total counter\ndone_total 42\n"
            "# HELP slots A\\\\B\\nC\n# TYPE slots gauge\n"
            "slots{state=\"busy\",kind=\"a \\\"b\\\"\\\\\\n\"} 2\nslots 0.5\n");
  EXPECT_EQ(test::parse_exposition(exposition.text()).size(), 3U);
}

TEST(Instruments, AHistogramCountsUpToEachBound) {
  Histogram histogram{0.1, 1};
  for (const double value : {0.05, 0.1, 0.5, 7.0}) histogram.add(value);
  Exposition exposition;
  exposition.histogram("wait_seconds", "Waiting.").add(histogram, {{"lane", "quick"}});
  auto samples = test::parse_exposition(exposition.text());
  EXPECT_EQ(samples[R"(wait_seconds_bucket{lane="quick",le="0.1"})"], 2);
  EXPECT_EQ(samples[R"(wait_seconds_bucket{lane="quick",le="1"})"], 3);
  EXPECT_EQ(samples[R"(wait_seconds_bucket{lane="quick",le="+Inf"})"], 4);
  EXPECT_EQ(samples[R"(wait_seconds_count{lane="quick"})"], 4);
  EXPECT_DOUBLE_EQ(samples[R"(wait_seconds_sum{lane="quick"})"], 7.65);
}

TEST(Instruments, NothingIsLostBetweenThreads) {
  Tally tally;
  Histogram histogram{1};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) tally.add(), histogram.add(0.5);
    });
  for (auto& thread : threads) thread.join();
  Exposition exposition;
  exposition.histogram("h", "H.").add(histogram);
  EXPECT_EQ(tally.value(), 4000U);
  EXPECT_EQ(test::parse_exposition(exposition.text())["h_sum"], 2000);
}

TEST(Instruments, AProcessKnowsWhatItTakes) {
  Exposition exposition;
  exposition.add_process();
  auto samples = test::parse_exposition(exposition.text());
  EXPECT_GT(samples["process_resident_memory_bytes"], 1 << 20);
  EXPECT_GE(samples["process_open_fds"], 3);
  EXPECT_GE(samples["process_threads"], 1);
  EXPECT_GT(samples["process_start_time_seconds"], 1.7e9);
  EXPECT_LE(samples["process_start_time_seconds"], static_cast<double>(time(nullptr)) + 1);
}

TEST(Instruments, TheTestsOwnReaderIsStrict) {
  for (const char* wrong :
       {"a 1\n", "# HELP a A.\na 1\n", "# HELP a A.\n# TYPE a counter\na 1\n",
        "# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n", "# HELP a A.\n# TYPE a gauge\na 1\na 2\n",
        "# HELP a A.\n# TYPE a gauge\na{b=\"c} 1\n",
        "# HELP a A.\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\n",
        "# HELP a A.\n# TYPE a gauge\na 1"})
    EXPECT_THROW(test::parse_exposition(wrong), std::runtime_error) << wrong;
}

}  // namespace
}  // namespace abl
