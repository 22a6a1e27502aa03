// SPDX-License-Identifier: Apache-2.0
// What `ablate gc` takes, and above all what it leaves.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "protocol/checkpoint_files.h"
#include "tests/cli/run_ablate.h"
#include "tests/storage/fixtures.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using storage::RunId;
using storage::RunState;
using storage::TrialId;
using testing::HasSubstr;
using testing::Not;

/// A home whose results file and folders of runs the test has written.
class GcCommand : public storage::StoreTest {
 protected:
  /// A folder beneath the root with a file in it; of the results file of that id, or of none that is named.
  fs::path run_folder(const std::string& name, const std::string& store = {}) {
    const fs::path path = folder / "runs" / name;
    fs::create_directories(path);
    write_file(path / "output", "x");
    if (!store.empty()) protocol::sign_folder(path, store);
    return path;
  }
  RunId start(TrialId trial, const fs::path& directory) {
    const RunId run = lease(trial).run;
    trials.start(run, {.total_steps = 100, .data_fingerprint = "f", .directory = directory}, now);
    return run;
  }
  /// A checkpoint that the results file knows, and that is there.
  fs::path checkpoint(RunId run, std::uint32_t step, const fs::path& path) {
    write_file(path, "x");
    trials.add_checkpoint({.run = run, .step = step, .host = "h", .path = path, .sha256 = "d"});
    return path;
  }
  /// Removes what goes, however new it is.
  Outcome gc(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"gc", "--older-than", "0s", "--yes"});
    const Outcome outcome = home_.run(more, {{"ABLATE_HOME", folder.path().string()}});
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return outcome;
  }
  Home home_;
};

TEST_F(GcCommand, WhatARunTookItsWeightsFromIsKeptForIt) {
  submit(storage::sweep_of("s", 2, 1));
  const auto source = run_folder("1/1", db.store_id()), taker = run_folder("2/1", db.store_id());
  const RunId first = start(1, source);
  const auto file = checkpoint(first, 100, source / "checkpoint-100"),
             other = checkpoint(first, 50, source / "checkpoint-50");
  end(first, RunState::kCompleted);
  write_file(
      taker / "launch.json",
      nlohmann::json{{"data", "/data/x"}, {"weights", {{"best-of-a", other}, {"named", "/w/file"}}}}.dump());
  start(2, taker);
  gc();
  EXPECT_TRUE(fs::exists(other)) << "a run under way began with it";
  EXPECT_TRUE(fs::exists(file));
}

TEST_F(GcCommand, AFolderOfAnotherResultsFileStaysWhateverIsAsked) {
  submit(storage::sweep_of("s", 1, 1));
  const auto ours = run_folder("1/1.2", db.store_id());
  end(start(1, ours), RunState::kCompleted);
  const auto another = run_folder("1/1", std::string(32, 'a')),
             high = run_folder("70/1", std::string(32, 'a'));
  EXPECT_THAT(gc().err, HasSubstr("left 2 run folders in " + (folder / "runs").string() + " of another"));
  gc({"--only", "unknown"});
  EXPECT_TRUE(fs::exists(another) && fs::exists(high) && fs::exists(ours));
}

TEST_F(GcCommand, AFolderThatDoesNotSayWhoseItIsStaysUnlessThatIsAskedFor) {
  submit(storage::sweep_of("s", 1, 1));
  end(start(1, run_folder("1/1", db.store_id())), RunState::kCompleted);
  const auto unsigned_one = run_folder("9/1"), removed = run_folder("8/1", db.store_id());
  EXPECT_THAT(gc().err, HasSubstr("left 1 run folder in " + (folder / "runs").string() + " without the id"));
  EXPECT_TRUE(fs::exists(unsigned_one));
  EXPECT_FALSE(fs::exists(removed)) << "one of a removed sweep goes";
  gc({"--only", "unknown"});
  EXPECT_FALSE(fs::exists(unsigned_one));
}

TEST_F(GcCommand, AFirstLeaseMakesNoFolderOfItsNumberOurs) {
  submit(storage::sweep_of("s", 1, 1));
  lease(1);
  const auto lost = run_folder("1/1"), other = run_folder("2/1");
  gc();
  EXPECT_TRUE(fs::exists(lost) && fs::exists(other));
}

TEST_F(GcCommand, AFolderOfARunThatNeverSaidWhereIsNotTakenByAGuess) {
  submit(storage::sweep_of("s", 1, 1));
  end(lease(1).run, RunState::kLost);
  db.execute("UPDATE trial SET state = 'cancelled'");
  db.execute("DELETE FROM sweep_trial");
  const auto guessed = run_folder("1/1");
  gc();
  EXPECT_TRUE(fs::exists(guessed));
}

TEST_F(GcCommand, WhatAWorkerWroteOfAnothersRunStaysWhileThatIsUnderWay) {
  submit(storage::sweep_of("s", 1, 1));
  const RunId run = start(1, run_folder("1/1", db.store_id()));
  const auto part = run_folder("1/1.node1", db.store_id()), again = run_folder("1/1.node1.2", db.store_id()),
             another = run_folder("1/1.node2", std::string(32, 'a')),
             no_part = run_folder("1/1.nodes", db.store_id());
  gc();
  EXPECT_TRUE(fs::exists(part) && fs::exists(again));
  end(run, RunState::kCompleted);
  gc();
  EXPECT_FALSE(fs::exists(part) || fs::exists(again));
  EXPECT_TRUE(fs::exists(another) && fs::exists(no_part) && fs::exists(folder / "runs/1/1"));
}

TEST_F(GcCommand, WithAResultsFileThatMayBeACopyNoUnknownFolderGoesUnlessNamed) {
  submit(storage::sweep_of("s", 1, 1));
  end(start(1, run_folder("1/1", db.store_id())), RunState::kCompleted);
  const auto later = run_folder("2/1", db.store_id());
  EXPECT_THAT(gc({"--store", (folder / "results.db").string()}).err, HasSubstr("may be a copy"));
  EXPECT_TRUE(fs::exists(later));
  gc({"--store", (folder / "results.db").string(), "--only", "unknown"});
  EXPECT_FALSE(fs::exists(later));
}

TEST_F(GcCommand, OnlyFilesInTheTrialsOwnFoldersAreTakenAsCheckpoints) {
  submit(storage::sweep_of("s", 2, 1));
  const auto first = run_folder("1/1", db.store_id()), second = run_folder("2/1", db.store_id());
  end(start(2, second), RunState::kCompleted);
  const RunId run = start(1, first);
  fs::create_directory(first / "folder");
  write_file(first / "folder/precious", "x");
  write_file(first / "target", "x");
  fs::create_symlink(first / "target", first / "link");
  std::uint32_t step = 0;
  for (const auto& path : {first / "folder", second, second / "output", folder / "runs/1", first / "link"})
    trials.add_checkpoint({.run = run, .step = ++step, .host = "h", .path = path, .sha256 = "d"});
  const auto own = checkpoint(run, ++step, first / "one");
  end(run, RunState::kCompleted);
  gc({"--keep-checkpoints", "0"});
  EXPECT_FALSE(fs::exists(own)) << "a file of its own goes";
  EXPECT_TRUE(fs::exists(first / "folder/precious") && fs::exists(second / "output"));
  EXPECT_TRUE(fs::exists(first / "link")) << "neither a link nor what it leads to";
}

TEST_F(GcCommand, AFileThatIsReportedForManyStepsIsKeptForItsNewest) {
  submit(storage::sweep_of("s", 1, 1));
  const auto first = run_folder("1/1", db.store_id()), second = run_folder("1/2", db.store_id());
  fs::create_directory(folder / "runs/1/shared");
  const RunId lost = start(1, first);
  const auto last = checkpoint(lost, 1, folder / "runs/1/shared/last.pt");
  checkpoint(lost, 2, last);
  end(lost, RunState::kLost);
  const RunId completed = start(1, second);
  const auto one = checkpoint(completed, 3, second / "one");
  const auto rolling = checkpoint(completed, 4, second / "last.pt");
  checkpoint(completed, 5, rolling);
  checkpoint(completed, 6, last);
  end(completed, RunState::kCompleted);
  gc({"--keep-checkpoints", "2"});
  EXPECT_TRUE(fs::exists(last) && fs::exists(rolling));
  EXPECT_FALSE(fs::exists(one));
}

TEST_F(GcCommand, AFileThatAnotherTrialCountsOnStays) {
  submit(storage::sweep_of("s", 2, 1));
  const auto first = run_folder("1/1", db.store_id()), second = run_folder("2/1", db.store_id());
  const RunId one = start(1, first), two = start(2, second);
  const auto shared = checkpoint(one, 1, first / "shared");
  checkpoint(one, 2, first / "two");
  checkpoint(two, 1, shared);
  end(one, RunState::kCompleted);
  end(two, RunState::kCompleted);
  gc({"--keep-checkpoints", "1"});
  EXPECT_TRUE(fs::exists(shared));
}

TEST_F(GcCommand, OfAnUnfinishedTrialTheCheckpointsStayFromWhichItWouldGoOn) {
  submit(storage::sweep_of("s", 1, 1));
  const auto first = run_folder("1/1", db.store_id()), second = run_folder("1/2", db.store_id());
  const RunId lost = start(1, first);
  const auto far = checkpoint(lost, 300, first / "checkpoint-300.safetensors");
  write_file(first / "checkpoint-400.safetensors", "x");
  write_file(first / "checkpoint-500.safetensors", "x");
  end(lost, RunState::kLost);
  now += std::chrono::hours{1};
  const RunId again = start(1, second);  // from the beginning: the other's were of no use there
  const auto older = checkpoint(again, 10, second / "checkpoint-10.safetensors");
  const auto newest = checkpoint(again, 20, second / "checkpoint-20.safetensors");
  end(again, RunState::kStopped);
  gc();
  EXPECT_TRUE(fs::exists(older) && fs::exists(newest)) << "the newest attempt's go first";
  EXPECT_FALSE(fs::exists(far));
  EXPECT_TRUE(fs::exists(first / "checkpoint-500.safetensors")) << "nobody knows what it is";
}

TEST_F(GcCommand, OfACompletedRunFilesThatWereMerelyFoundDoNotCount) {
  submit(storage::sweep_of("s", 1, 1));
  const auto directory = run_folder("1/1", db.store_id());
  const RunId run = start(1, directory);
  const auto kept = checkpoint(run, 10, directory / "checkpoint-10.safetensors");
  write_file(directory / "checkpoint-400.safetensors", "x");
  write_file(directory / "checkpoint-500.safetensors", "x");
  end(run, RunState::kCompleted);
  gc();
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_FALSE(fs::exists(directory / "checkpoint-500.safetensors"));
}

TEST_F(GcCommand, WhatMayBeTheOnlyCopyOfResultsGoesOnlyByName) {
  for (const auto* name :
       {"rescued-1", "before-restore-20261123-130501", "before-restore-20261123-130501-wal", "v7.bak",
        "v8.bak.partial", "restored", "restored.partial", "restored.partial-journal", "notes"})
    write_file(folder / (std::string{"results.db."} + name), "x");
  const auto is_there = [&](const char* name) {
    return fs::exists(folder / (std::string{"results.db."} + name));
  };
  gc();
  EXPECT_TRUE(is_there("rescued-1") && is_there("before-restore-20261123-130501") &&
              is_there("before-restore-20261123-130501-wal") && is_there("notes"));
  for (const auto* name :
       {"v7.bak", "v8.bak.partial", "restored", "restored.partial", "restored.partial-journal"})
    EXPECT_FALSE(is_there(name)) << name;
  gc({"--only", "copies"});
  EXPECT_FALSE(is_there("rescued-1") || is_there("before-restore-20261123-130501") ||
               is_there("before-restore-20261123-130501-wal"));
  EXPECT_TRUE(is_there("notes"));
}

TEST_F(GcCommand, WhatARestoreHasKeptIsAsNewAsTheRestore) {
  const auto copy = folder / "copy.db", store = folder / "other.db";
  home_.run({"backup", copy.string(), "--store", (folder / "results.db").string()});
  fs::copy_file(copy, store);
  fs::last_write_time(store, fs::file_time_type::clock::now() - std::chrono::hours{1000});
  const Outcome outcome = home_.run({"restore", copy.string(), "--store", store.string()});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  int kept = 0;
  for (const auto& entry : fs::directory_iterator{folder.path()})
    if (entry.path().filename().string().starts_with("other.db.before-restore-")) {
      ++kept;
      EXPECT_GT(entry.last_write_time(), fs::file_time_type::clock::now() - std::chrono::hours{1});
    }
  EXPECT_EQ(kept, 1);
}

}  // namespace
}  // namespace abl::cli
