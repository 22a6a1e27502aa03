// SPDX-License-Identifier: Apache-2.0
#include "storage/resource_store.h"

#include <gmock/gmock.h>

#include "storage/archive.h"
#include "storage/removal.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::SizeIs;

ResourceSample sample(std::uint64_t at_s, double cpu = 1, std::uint32_t over_s = 2) {
  return {.at_ms = at_s * 1000,
          .over_ms = over_s * 1000,
          .cpu_cores = cpu,
          .memory_bytes = static_cast<std::int64_t>(100 * at_s)};
}
std::vector<ResourceSample> every_two_seconds(int count) {
  std::vector<ResourceSample> samples;
  for (int i = 1; i <= count; ++i) samples.push_back(sample(static_cast<std::uint64_t>(2 * i)));
  return samples;
}
constexpr std::uint64_t kEnd = INT64_MAX;

class Resources : public StoreTest {
 protected:
  void SetUp() override {
    submit(sweep_of("s", 1, 2));
    trained = complete(1, 70);
  }
  std::int64_t rows_of(const std::string& table) {
    const std::string sql = "SELECT COUNT(*) FROM " + table;
    return db.prepared(sql.c_str()).one([](const Statement& row) { return row.integer(0); }).value();
  }
  ResourceStore resources{db};
  RunId trained = 0;
};

TEST_F(Resources, ASampleThatIsSaidAgainCountsOnce) {
  EXPECT_TRUE(resources.add(trained, {sample(2, 1), sample(4, 3)}));
  EXPECT_FALSE(resources.add(trained, {sample(2, 1), sample(4, 3)}));
  EXPECT_TRUE(resources.add(trained, {sample(4, 3), sample(6, 5)}));
  EXPECT_THAT(resources.of(trained, 0, kEnd), SizeIs(3));
  const auto use = resources.use(trained).value();
  EXPECT_EQ(use.samples, 3U);
  EXPECT_EQ(use.seconds, 6);
  EXPECT_EQ(use.cpu_cores, 3);
  EXPECT_EQ(use.peak_memory_bytes, 600);
}

TEST_F(Resources, MeansAreOverTheTimeThatSamplesAreOf) {
  resources.add(trained, {sample(2, 4, 2)});
  resources.add(trained, {sample(8, 1, 6)});
  EXPECT_EQ(resources.use(trained)->cpu_cores, (4.0 * 2 + 1.0 * 6) / 8);
  resources.add(trained, {{.at_ms = 20'000, .over_ms = 12'000}});
  EXPECT_EQ(resources.use(trained)->cpu_cores, (4.0 * 2 + 1.0 * 6) / 8) << "what has no value is not 0";
}

TEST_F(Resources, WhatNoSampleHasIsAbsent) {
  resources.add(trained, {sample(2)});
  const auto use = resources.use(trained).value();
  EXPECT_FALSE(use.gpu || use.peak_gpu_memory_bytes || use.read_bytes || use.written_bytes || use.data_wait ||
               use.least_free_bytes);
  EXPECT_FALSE(resources.of(trained, 0, kEnd).front().gpu);
  resources.add(trained, {{.at_ms = 4000,
                           .over_ms = 2000,
                           .read_bytes_per_s = 10,
                           .written_bytes_per_s = 0,
                           .free_bytes = 5,
                           .data_wait_ms = 1,
                           .data_of_ms = 4}});
  const auto more = resources.use(trained).value();
  EXPECT_EQ(more.read_bytes, 20);
  EXPECT_EQ(more.written_bytes, 0);
  EXPECT_EQ(more.data_wait, 0.25);
  EXPECT_EQ(more.least_free_bytes, 5);
  EXPECT_EQ(more.peak_memory_bytes, 200) << "a sample without it takes nothing away";
}

TEST_F(Resources, ARunHasABound) {
  resources.add(trained, every_two_seconds(ResourceStore::kMostSamples + 5));
  EXPECT_THAT(resources.of(trained, 0, kEnd), SizeIs(ResourceStore::kMostSamples));
  EXPECT_EQ(resources.use(trained)->left_out, 5U);
  resources.add(trained, every_two_seconds(ResourceStore::kMostSamples + 5));
  EXPECT_EQ(resources.use(trained)->left_out, 5U) << "said again";
}

TEST_F(Resources, AStretchOfTimeHasItsEnds) {
  resources.add(trained, every_two_seconds(10));
  EXPECT_THAT(resources.of(trained, 4000, 8000), SizeIs(3));
}

TEST_F(Resources, ThinnedSamplesAreOfAllTheTime) {
  std::vector<ResourceSample> samples;
  for (int i = 1; i <= 103; ++i) samples.push_back(sample(static_cast<std::uint64_t>(2 * i), i));
  resources.add(trained, samples);
  resources.thin(trained, 16);
  const auto left = resources.of(trained, 0, kEnd);
  ASSERT_THAT(left, SizeIs(16));
  std::uint32_t over = 0;
  double cpu = 0;
  for (const auto& each : left) over += each.over_ms, cpu += *each.cpu_cores * each.over_ms;
  EXPECT_EQ(over, 206'000U);
  EXPECT_NEAR(cpu / over, 52, 1e-9);
  EXPECT_EQ(left.back().at_ms, 206'000U);
  EXPECT_EQ(left.back().memory_bytes, 20'600);
  EXPECT_EQ(resources.use(trained)->samples, 103U) << "what is known over all of them stays";
}

TEST_F(Resources, TheyGoWithTheirRun) {
  resources.add(trained, every_two_seconds(50));
  complete(2, 71);
  Removal removal{db};
  removal.begin("s", now);
  while (removal.step(now, 7) != Removal::Step::kDone) {
  }
  EXPECT_EQ(rows_of("resource_sample"), 0);
  EXPECT_EQ(rows_of("resource_use"), 0);
}

TEST_F(Resources, TheViewHasALineForEachRunThatHasSome) {
  resources.add(trained, {sample(2, 1.5)});
  const auto lines = db.prepared("SELECT sweep, row, seed, run, newest, cpu_cores, gpu FROM run_resources")
                         .all([](const Statement& row) {
                           return std::tuple{row.text(0),    row.text(1), row.integer(2), row.integer(3),
                                             row.integer(4), row.real(5), row.is_null(6)};
                         });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0], (std::tuple{std::string{"s"}, std::string{"a"}, std::int64_t{0}, std::int64_t{trained},
                                  std::int64_t{1}, 1.5, true}));
}

TEST_F(Resources, TravelInArchivesAsPointsDo) {
  resources.add(trained, every_two_seconds(100));
  complete(2, 71);
  for (const auto& [points, expected] : {std::pair{KeptPoints::kAll, 100U},
                                         {KeptPoints::kThin, ArchiveOptions::kThinTo},
                                         {KeptPoints::kNone, 0U}}) {
    const auto file = folder / "s.abl";
    std::filesystem::remove(file);
    make_archive(folder / "results.db", {"s"}, {.points = points, .host = "h"}, file);
    Database other{folder / ("other-" + std::to_string(expected) + ".db"), Database::Mode::kWrite};
    merge_archive(other, file, folder / "checkpoints", "h");
    const ResourceStore merged{other};
    EXPECT_THAT(merged.of(1, 0, kEnd), SizeIs(expected));
    EXPECT_EQ(merged.use(1).value().samples, 100U);
    EXPECT_EQ(merged.use(1)->peak_memory_bytes, 20'000);
  }
}

}  // namespace
}  // namespace abl::storage
