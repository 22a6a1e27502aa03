// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/health.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/sha256.h"
#include "tests/agent/few_descriptors.h"
#include "tests/agent/fixtures.h"
#include "tests/small_disk.h"

namespace {

std::atomic<bool> memory_is_scarce = false;  // what is large cannot be had

}  // namespace

void* operator new(std::size_t bytes) {
  constexpr std::size_t kMuch = 1 << 20;
  if (memory_is_scarce && bytes >= kMuch) throw std::bad_alloc{};
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc{};
}
// all forms that end in this operator delete: one of another library would not match it
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace abl::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class HealthTest : public testing::Test {
 protected:
  HealthTest() {
    options.folders = {folder.path() / "spool", folder.path() / "runs"};
    options.first = options.longest = Milliseconds{10};
  }
  void start() {
    health.emplace(options, [this] { ++changes; });
  }
  static ablate::v1::Assign needs(const std::string& data, const std::string& weights = {}) {
    ablate::v1::Assign assign;
    assign.set_data(data);
    if (!weights.empty()) assign.add_weights(weights);
    return assign;
  }

  bool says(const std::string& trouble) {
    return eventually([&] { return health->state().trouble.find(trouble) != std::string::npos; });
  }

  TemporaryFolder folder;
  HealthOptions options;
  std::atomic<int> changes = 0;
  std::optional<Health> health;
};

TEST_F(HealthTest, TroubleThatHasPassedIsGoneAfterALook) {
  start();
  EXPECT_TRUE(health->state().well());
  health->trouble({.reason = "cannot fork"});
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
  EXPECT_TRUE(eventually([&] { return changes == 2; })) << "it is told after the state has changed";
  EXPECT_TRUE(std::filesystem::is_empty(folder / "spool")) << "a probe leaves nothing behind";
}

TEST_F(HealthTest, AFullDiskStaysTroubleUntilThereIsRoomForSome) {
  SmallDisk disk;
  if (!disk.is_whole())
    GTEST_SKIP() << "no tmpfs may be mounted here: run it as root, or allow user namespaces";
  write_text(disk.path() / "filler", std::string((1 << 20) + (100 << 10), 'x'));  // bytes are left, not 1 MiB
  options.folders = {disk.path() / "spool"};
  start();
  EXPECT_THAT(health->cannot_write(), HasSubstr("No space left on device"));
  health->trouble({.reason = "cannot write a batch"});
  EXPECT_TRUE(says("No space left"));
  disk.free_space();
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
  EXPECT_EQ(health->cannot_write(), "");
}

TEST_F(HealthTest, ADiskIsFullUntilItHasTheRoomThatARunLacked) {
  SmallDisk disk;
  if (!disk.is_whole())
    GTEST_SKIP() << "no tmpfs may be mounted here: run it as root, or allow user namespaces";
  write_text(disk.path() / "filler", std::string(500 << 10, 'x'));
  options.folders = {disk.path()};
  options.runs = disk.path();
  start();
  EXPECT_EQ(health->cannot_write(), "") << "1 MiB fits";
  health->trouble({.reason = "cannot write a checkpoint", .room = (1 << 20) + (800 << 10)});
  EXPECT_TRUE(says("1.5 MiB are free, and 1.8 MiB are needed"));
  std::filesystem::remove(disk.path() / "filler");
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
}

TEST_F(HealthTest, RoomThatADiskWillNeverHaveIsNotWaitedFor) {
  SmallDisk disk;
  if (!disk.is_whole())
    GTEST_SKIP() << "no tmpfs may be mounted here: run it as root, or allow user namespaces";
  options.folders = {disk.path()};
  options.runs = disk.path();
  start();
  health->trouble({.reason = "cannot write a checkpoint", .room = 1 << 30});
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
}

/// A probe of the machine starts the program `true`: here one that waits until it may go on.
class SlowProbeTest : public HealthTest {
 protected:
  SlowProbeTest() {
    write_script(folder / "bin/true",
                 fmt::format("touch '{0}/begun'; while [ ! -e '{0}/go' ]; do sleep 0.01; done\n",
                             folder.path().string()));
    ::setenv("PATH", fmt::format("{}:{}", (folder / "bin").string(), path_).c_str(), 1);
  }
  ~SlowProbeTest() override {
    health.reset();  // its thread reads the environment
    ::setenv("PATH", path_.c_str(), 1);
  }
  bool has_begun() {
    return eventually([&] { return std::filesystem::exists(folder / "begun"); });
  }

 private:
  const std::string path_ = ::getenv("PATH");
};

TEST_F(SlowProbeTest, WhatGoesWrongDuringAProbeIsTriedToo) {
  options.trainer = folder / "trainer";
  start();
  health->trouble({.reason = "cannot fork"});
  ASSERT_TRUE(has_begun());
  health->trouble({.reason = "cannot start it", .trainer = true});
  write_text(folder / "go", "");
  EXPECT_TRUE(says("cannot start /"));
}

TEST_F(SlowProbeTest, IsNotWaitedForWhenTheWorkerStops) {
  start();
  health->trouble({.reason = "cannot fork"});
  ASSERT_TRUE(has_begun());
  const auto begun = std::chrono::steady_clock::now();
  health.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience) << "a probe may take twice as long";
}

TEST_F(HealthTest, ATrainerThatDoesNotStartIsTriedUntilItDoes) {
  options.trainer = folder / "trainer";
  start();
  health->trouble({.reason = "cannot start it", .trainer = true});
  EXPECT_TRUE(says("cannot start /"));
  write_script(folder / "trainer.new", "exit 0\n");
  std::filesystem::rename(folder / "trainer.new", options.trainer);
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
}

TEST_F(HealthTest, DataThatTheTrainerCouldNotOpenAreNotOfferedUntilItCan) {
  options.data = {{"photos", folder / "photos"}};
  write_text(folder / "photos/notes.txt", "x");
  options.trainer = write_script(folder / "trainer",
                                 fmt::format("touch '{0}/asked'; [ \"$4 $5\" = '{0}/photos --open' ] && "
                                             "[ -e '{0}/whole' ] || {{ echo no >&2; exit 2; }}\n",
                                             folder.path().string()));
  start();
  health->trouble({.reason = "it holds no data set", .trainer = true, .data = "photos"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder / "asked"); }));
  EXPECT_EQ(health->state().gone_data.at("photos"), "data set 'photos' not usable: it holds no data set");
  EXPECT_EQ(health->state().trouble, "") << "other runs go on";
  write_text(folder / "whole", "x");
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
}

TEST_F(HealthTest, DataThatACommandCouldNotUseAreOfferedAgainAfterALook) {
  options.data = {{"photos", folder / "photos"}};
  write_text(folder / "photos/notes.txt", "x");
  options.trainer = write_script(folder / "trainer", "exit 2\n");
  start();
  health->trouble({.reason = "it lacks a file", .data = "photos"});
  EXPECT_TRUE(eventually([&] { return changes == 2 && health->state().well(); }));
}

TEST_F(HealthTest, ADiskLacksRoomForProgramsBeforeItLacksRoomForAProbe) {
  SmallDisk disk;
  if (!disk.is_whole())
    GTEST_SKIP() << "no tmpfs may be mounted here: run it as root, or allow user namespaces";
  options.folders = {disk.path()};
  options.runs = disk.path();
  options.probe_bytes = 1000;
  start();
  EXPECT_EQ(health->lacks_room(), "");
  write_text(disk.path() / "filler", std::string((1 << 20) + (900 << 10), 'x'));
  EXPECT_EQ(health->cannot_write(), "");
  EXPECT_THAT(health->lacks_room(), HasSubstr("0.2 MiB are needed"));
}

TEST_F(HealthTest, DataAndWeightsThatAreGoneAreNamedUntilTheyAreBack) {
  options.data = {{"photos", folder / "photos"}, {"shapes", ""}};
  options.weights = {{"deit", folder / "deit.safetensors"}};
  write_text(folder / "photos/cat/1.jpg", "x");
  write_text(folder / "deit.safetensors", "x");
  start();
  EXPECT_EQ(health->vanished(needs("photos", "deit")), "");
  EXPECT_EQ(health->vanished(needs("shapes")), "");
  std::filesystem::rename(folder / "photos", folder / "away");
  std::filesystem::create_directory(folder / "photos");  // as where nothing is mounted
  EXPECT_THAT(health->vanished(needs("photos", "deit")), HasSubstr("data set 'photos' not found: "));
  EXPECT_THAT(health->state().gone_data.at("photos"), HasSubstr("is empty"));
  EXPECT_EQ(health->state().trouble, "");
  std::filesystem::remove(folder / "deit.safetensors");
  EXPECT_THAT(health->vanished(needs("", "deit")), HasSubstr("weights 'deit' not found: "));
  std::filesystem::remove(folder / "photos");
  std::filesystem::rename(folder / "away", folder / "photos");
  write_text(folder / "deit.safetensors", "x");
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
}

class WeightsTest : public HealthTest {
 protected:
  WeightsTest() {
    options.weights = {{"deit", file_}};
    wanted_["deit"] = sha256_hex("right");
  }
  bool is_well() {
    return eventually([&] { return health->state().well(); });
  }

  const std::filesystem::path file_ = folder / "deit.safetensors";
  WantedDigests wanted_;
};

TEST_F(WeightsTest, ThatCouldNotBeReadAreReadAgainThoughTheFileIsTheSame) {
  write_text(file_, "right");
  start();
  {
    const FewDescriptors none{0};
    EXPECT_THAT(health->other_weights(wanted_), HasSubstr("Too many open files"));
    EXPECT_THAT(health->state().wrong_weights, Not(IsEmpty()));
  }
  EXPECT_TRUE(is_well());
}

TEST_F(WeightsTest, AreReadAgainWhenTheyAreWrittenWithTheTimeOfBefore) {
  options.first = options.longest = Milliseconds{200};  // it does not look in between
  write_text(file_, "other");
  start();
  const auto written = std::filesystem::last_write_time(file_);
  EXPECT_THAT(health->other_weights(wanted_), HasSubstr("has the SHA-256 " + sha256_hex("other")));
  write_text(file_, "right");
  std::filesystem::last_write_time(file_, written);
  EXPECT_TRUE(is_well());
}

TEST_F(WeightsTest, WithoutMemoryToReadThemAreNotUsableUntilThereIsSome) {
  write_text(file_, "right");
  start();
  memory_is_scarce = true;
  EXPECT_THAT(health->other_weights(wanted_), HasSubstr("weights 'deit' not usable: std::bad_alloc"));
  std::this_thread::sleep_for(3 * options.longest);  // the thread that looks again lives
  EXPECT_FALSE(health->state().well());
  memory_is_scarce = false;
  EXPECT_TRUE(is_well());
}

}  // namespace
}  // namespace abl::agent
