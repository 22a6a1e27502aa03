// SPDX-License-Identifier: Apache-2.0
#include "storage/annotation_store.h"

#include "storage/archive.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AnnotationStoreTest : public StoreTest {
 protected:
  AnnotationStore annotations{db};
  SweepId add(const std::string& name, const std::string& prefix = "h") {
    return submit(sweep_of(name, 2, 1, prefix)).sweep;
  }
  void complete_all(SweepId sweep) {
    for (const auto& claim : sweeps.claims(sweep))
      if (claim.state == TrialState::kQueued) complete(claim.trial, 80);
  }
  static std::vector<std::string> names(const std::vector<SweepRecord>& records) {
    std::vector<std::string> all;
    for (const auto& record : records) all.push_back(record.name);
    return all;
  }
};

TEST_F(AnnotationStoreTest, TagsStandInTheOrderOfTheirLettersEachOnce) {
  const SweepId sweep = add("s");
  EXPECT_THAT(sweeps.get("s").tags, IsEmpty());
  annotations.set_tags(sweep, {"paper", "b/1", "paper", "B"});
  EXPECT_THAT(sweeps.get("s").tags, ElementsAre("B", "b/1", "paper"));
  annotations.set_tags(sweep, {});
  EXPECT_THAT(sweeps.get("s").tags, IsEmpty());
}

TEST_F(AnnotationStoreTest, NotesAreKeptToTheByte) {
  const SweepId sweep = add("s");
  const std::string notes = "# \"What\" we saw\r\n\n| a | b |\n<script>'; DROP TABLE sweep; --</script>\n";
  annotations.set_notes(sweep, notes);
  EXPECT_EQ(annotations.notes(sweep), notes);
  EXPECT_EQ(annotations.notes(sweep + 1), "") << "of a sweep that is not there";
}

TEST_F(AnnotationStoreTest, ListsBeginWithPinnedOnesAndLeaveArchivedOnesOut) {
  for (const char* name : {"a", "b", "c", "d"}) add(name, name);
  annotations.set_pinned(sweeps.get("a").id, true);
  complete_all(sweeps.get("c").id);
  annotations.set_archived(sweeps.get("c").id, true, now);
  EXPECT_THAT(names(sweeps.pinned(10)), ElementsAre("a"));
  EXPECT_THAT(names(sweeps.list_others(10)), ElementsAre("d", "b"));
  EXPECT_THAT(names(sweeps.list_others(1)), ElementsAre("d"));
  EXPECT_THAT(names(sweeps.list_others(10, sweeps.get("d").id)), ElementsAre("b"));
  EXPECT_EQ(sweeps.count_archived(), 1u);
  EXPECT_THAT(names(sweeps.list()), ElementsAre("d", "c", "b", "a")) << "all of them";
}

TEST_F(AnnotationStoreTest, WhatTrainsAgainIsNotAway) {
  const SweepId sweep = add("s");
  complete_all(sweep);
  annotations.set_archived(sweep, true, now);
  const auto since = sweeps.get("s").archived;
  ASSERT_TRUE(since);
  annotations.set_archived(sweep, true, now + std::chrono::hours{1});
  EXPECT_EQ(sweeps.get("s").archived, since) << "since the first time";
  add("other");  // the same trials, completed: nothing is queued
  EXPECT_TRUE(sweeps.get("s").archived);
  const auto same = [](const TrialRecord& trial) {
    return RenewedTrial{trial.config, trial.identity.config_hash, trial.identity.result_version};
  };
  EXPECT_EQ(sweeps.retry(sweep, "a", now, same, {.ended = false, .held = false, .completed = true}), 1u);
  EXPECT_FALSE(sweeps.get("s").archived);
  EXPECT_EQ(sweeps.count_archived(), 0u);
}

TEST_F(AnnotationStoreTest, AnArchiveFileHasThem) {
  const SweepId sweep = add("s");
  complete_all(sweep);
  annotations.set_tags(sweep, {"paper"});
  annotations.set_notes(sweep, "groups above 8 diverge");
  annotations.set_archived(sweep, true, now);
  const auto file = folder / "s.abl";
  make_archive(folder / "results.db", {"s"}, {}, file);
  Database there{file, Database::Mode::kReadOnly};
  EXPECT_THAT(SweepStore{there}.get("s").tags, ElementsAre("paper"));
  EXPECT_EQ(AnnotationStore{there}.notes(SweepStore{there}.get("s").id), "groups above 8 diverge");
}

}  // namespace
}  // namespace abl::storage
