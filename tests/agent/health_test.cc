// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/health.h"

#include <gmock/gmock.h>

#include <atomic>

#include "tests/agent/fixtures.h"
#include "tests/small_disk.h"

namespace abl::agent {
namespace {

using testing::HasSubstr;

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

  TemporaryFolder folder;
  HealthOptions options;
  std::atomic<int> changes = 0;
  std::optional<Health> health;
};

TEST_F(HealthTest, TroubleThatHasPassedIsGoneAfterALook) {
  start();
  EXPECT_TRUE(health->state().well());
  health->trouble("cannot fork");
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
  EXPECT_TRUE(eventually([&] { return changes == 2; })) << "it is told after the state has changed";
  EXPECT_TRUE(std::filesystem::is_empty(folder / "spool")) << "a probe leaves nothing behind";
}

TEST_F(HealthTest, AFullDiskStaysTroubleUntilThereIsRoomForSome) {
  SmallDisk disk;
  if (!disk.is_whole()) GTEST_SKIP() << "no tmpfs may be mounted here";
  write_text(disk.path() / "filler", std::string((1 << 20) + (100 << 10), 'x'));  // bytes are left, not 1 MiB
  options.folders = {disk.path() / "spool"};
  start();
  EXPECT_THAT(health->cannot_write(), HasSubstr("No space left on device"));
  health->trouble("cannot write a batch");
  EXPECT_TRUE(eventually([&] { return health->state().trouble.find("No space left") != std::string::npos; }));
  disk.free_space();
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
  EXPECT_EQ(health->cannot_write(), "");
}

TEST_F(HealthTest, ATrainerThatDoesNotStartIsTriedUntilItDoes) {
  options.trainer = folder / "trainer";
  start();
  health->trouble("cannot start it", Health::Part::kTrainer);
  EXPECT_TRUE(
      eventually([&] { return health->state().trouble.find("cannot start /") != std::string::npos; }));
  write_script(folder / "trainer.new", "exit 0\n");
  std::filesystem::rename(folder / "trainer.new", options.trainer);
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
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
  EXPECT_THAT(health->vanished(needs("photos", "deit")), HasSubstr("its data 'photos' are gone: "));
  EXPECT_THAT(health->state().gone_data.at("photos"), HasSubstr("is empty"));
  EXPECT_EQ(health->state().trouble, "");
  std::filesystem::remove(folder / "deit.safetensors");
  EXPECT_THAT(health->vanished(needs("", "deit")), HasSubstr("its weights 'deit' are gone: "));
  std::filesystem::remove(folder / "photos");
  std::filesystem::rename(folder / "away", folder / "photos");
  write_text(folder / "deit.safetensors", "x");
  EXPECT_TRUE(eventually([&] { return health->state().well(); }));
}

}  // namespace
}  // namespace abl::agent
