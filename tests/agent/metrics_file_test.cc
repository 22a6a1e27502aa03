// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/metrics_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <fstream>
#include <limits>

#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl::agent {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class MetricsFileTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file() const { return folder_.path() / MetricsFile::kName; }

  static ablate::v1::RunBatch batch(const std::string& name,
                                    const std::vector<std::pair<std::uint32_t, double>>& points) {
    ablate::v1::RunBatch batch;
    auto& series = *batch.add_series();
    series.set_name(name);
    for (const auto& [step, value] : points)
      series.add_steps(step), series.add_values(value), series.add_times_ms(0);
    return batch;
  }
};

/// As a disk that has no room beyond so many bytes of a file.
class NoRoomBeyond {
 public:
  explicit NoRoomBeyond(rlim_t bytes) : ignored_{signal(SIGXFSZ, SIG_IGN)} {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~NoRoomBeyond() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, ignored_);
  }
  NoRoomBeyond(const NoRoomBeyond&) = delete;
  NoRoomBeyond& operator=(const NoRoomBeyond&) = delete;

 private:
  rlimit before_{};
  sighandler_t ignored_;
};

TEST_F(MetricsFileTest, HasALineForEachPointByStep) {
  MetricsFile metrics{folder_.path(), {}};
  EXPECT_FALSE(std::filesystem::exists(file())) << "a run that measures nothing has none";
  auto first = batch("loss", {{1, 0.1}, {2, std::numeric_limits<double>::quiet_NaN()}});
  *first.add_series() = batch("a,\"b\"", {{1, -1.0 / 0.0}, {2, 1e300}}).series(0);
  EXPECT_THAT(metrics.append(first), IsEmpty());
  EXPECT_THAT(metrics.append(batch("loss", {{3, 0.30000000000000004}})), IsEmpty());
  EXPECT_THAT(metrics.finish(), IsEmpty());
  EXPECT_EQ(read_file(file()),
            "step,metric,value\n1,loss,0.1\n1,\"a,\"\"b\"\"\",-inf\n2,loss,nan\n2,\"a,\"\"b\"\"\",1e+300\n"
            "3,loss,0.30000000000000004\n");
}

TEST_F(MetricsFileTest, APointThatIsSaidAgainIsThereOnce) {
  MetricsFile metrics{folder_.path(), {}};
  metrics.append(batch("m", {{1, 1}, {3, 3}}));
  metrics.append(batch("m", {{1, 9}, {2, 2}, {3, 9}, {4, 4}}));
  EXPECT_EQ(read_file(file()), "step,metric,value\n1,m,1\n3,m,3\n2,m,2\n4,m,4\n");
}

TEST_F(MetricsFileTest, AResumedRunBeginsWithThePointsUpToItsCheckpoint) {
  const auto before = folder_.path() / "1", after = folder_.path() / "2";
  std::filesystem::create_directories(before);
  std::filesystem::create_directories(after);
  {
    MetricsFile metrics{before, {}};
    metrics.append(batch("a \"\n\" b", {{1, 0.5}, {2, 0.25}, {3, 0.125}}));
  }
  const auto whole = read_file(before / MetricsFile::kName);
  write_file(before / MetricsFile::kName, whole + "4,\"a ");  // killed while it wrote
  MetricsFile metrics{after, {.before = before, .before_step = 2, .root = folder_.path()}};
  metrics.append(batch("a \"\n\" b", {{2, 7}, {3, 0.75}}));
  EXPECT_EQ(
      read_file(after / MetricsFile::kName),
      "step,metric,value\n1,\"a \"\"\n\"\" b\",0.5\n2,\"a \"\"\n\"\" b\",0.25\n3,\"a \"\"\n\"\" b\",0.75\n");
  EXPECT_EQ(read_file(before / MetricsFile::kName), whole + "4,\"a ")
      << "an earlier run's folder is not written";
}

TEST_F(MetricsFileTest, ALinkOutOfTheRunsFoldersIsNotRead) {
  TemporaryFolder elsewhere;
  write_file(elsewhere.path() / MetricsFile::kName, "step,metric,value\n1,secret,1\n");
  const auto before = folder_.path() / "1", after = folder_.path() / "2";
  std::filesystem::create_directories(before);
  std::filesystem::create_directories(after);
  std::filesystem::create_symlink(elsewhere.path() / MetricsFile::kName, before / MetricsFile::kName);
  MetricsFile metrics{after, {.before = before, .before_step = 5, .root = folder_.path()}};
  metrics.append(batch("m", {{6, 6}}));
  EXPECT_EQ(read_file(after / MetricsFile::kName), "step,metric,value\n6,m,6\n");
}

TEST_F(MetricsFileTest, AFileOfTheProgramStaysItsOwn) {
  write_file(file(), "mine\n");
  MetricsFile metrics{folder_.path(), {}};
  EXPECT_THAT(metrics.append(batch("m", {{1, 1}})), HasSubstr("the program's own"));
  EXPECT_THAT(metrics.append(batch("m", {{2, 2}})), IsEmpty()) << "said once";
  EXPECT_EQ(read_file(file()), "mine\n");
}

TEST_F(MetricsFileTest, AFileThatTheProgramWritesAnewOrReplacesIsLeftToIt) {
  const auto said_of = [&](const auto& change) {
    std::filesystem::remove(file());
    MetricsFile metrics{folder_.path(), {}};
    EXPECT_THAT(metrics.append(batch("a", {{1, 0.5}})), IsEmpty());
    change();
    const std::string said = metrics.append(batch("a", {{2, 0.5}}));
    EXPECT_THAT(metrics.append(batch("a", {{3, 0.5}})), IsEmpty()) << "once";
    return said;
  };
  const std::string ours =
      "metrics.csv ends at step 1: the program has changed it, so that it is the program's own";
  EXPECT_THAT(said_of([&] { std::ofstream{file()} << "mine\n"; }), StartsWith(ours));
  EXPECT_EQ(read_file(file()), "mine\n");
  EXPECT_THAT(said_of([&] {
                write_file(folder_ / "other", "other\n");
                std::filesystem::rename(folder_ / "other", file());
              }),
              StartsWith(ours));
  EXPECT_EQ(read_file(file()), "other\n");
  EXPECT_THAT(said_of([&] { std::ofstream{file(), std::ios::app} << "more\n"; }), StartsWith(ours));
}

TEST_F(MetricsFileTest, ADiskWithoutRoomLeavesWholeLinesAndIsSaidOnceAndWhatWaitedIsWrittenLater) {
  MetricsFile metrics{folder_.path(), {}};
  EXPECT_THAT(metrics.append(batch("m", {{1, 1}})), IsEmpty());
  const auto whole = read_file(file());
  {
    const NoRoomBeyond limit{whole.size() + 3};
    EXPECT_THAT(metrics.append(batch("m", {{2, 2}})),
                AllOf(StartsWith("metrics.csv waits: "), HasSubstr("stored")));
    EXPECT_THAT(metrics.append(batch("m", {{3, 3}})), IsEmpty());
    EXPECT_EQ(read_file(file()), whole);
  }
  EXPECT_THAT(metrics.append(batch("m", {{4, 4}})), IsEmpty());
  EXPECT_EQ(read_file(file()), whole + "2,m,2\n3,m,3\n4,m,4\n");
}

TEST_F(MetricsFileTest, WhereThereIsNoRoomToTheEndItSaysHowFarItIs) {
  MetricsFile metrics{folder_.path(), {.most_pending = 64}};
  metrics.append(batch("m", {{7, 1}}));
  const NoRoomBeyond limit{read_file(file()).size()};
  std::string said;
  for (std::uint32_t step = 8; step < 30; ++step) said += metrics.append(batch("m", {{step, 1}}));
  EXPECT_THAT(said, AllOf(HasSubstr("metrics.csv waits"), HasSubstr("metrics.csv ends at step 7")));
  EXPECT_THAT(read_file(file()), EndsWith("7,m,1\n"));
}

TEST_F(MetricsFileTest, ItIsBounded) {
  MetricsFile metrics{folder_.path(), {.most_bytes = 1000}};
  std::string said;
  for (std::uint32_t step = 1; step < 1000; ++step) said += metrics.append(batch("metric", {{step, 0.5}}));
  EXPECT_THAT(said, HasSubstr("metrics.csv ends at step"));
  EXPECT_LE(std::filesystem::file_size(file()), 1000u);
  EXPECT_THAT(read_file(file()), EndsWith(",metric,0.5\n"));
}

}  // namespace
}  // namespace abl::agent
