// SPDX-License-Identifier: Apache-2.0
#include "protocol/checkpoint_files.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl::protocol {
namespace {

TEST(CheckpointName, IsReadAsItIsWritten) {
  EXPECT_EQ(checkpoint_name(400), "checkpoint-400.safetensors");
  EXPECT_EQ(step_of_checkpoint(checkpoint_name(400)), 400);
  for (const auto* name : {"checkpoint-.safetensors", "checkpoint--4.safetensors", "checkpoint-4.pt",
                           "checkpoint-4.safetensors.1.tmp", "best.safetensors",
                           "checkpoint-99999999999999999999.safetensors", "checkpoint-0400.safetensors"})
    EXPECT_FALSE(step_of_checkpoint(name)) << name;
}

TEST(UnfinishedCheckpoints, AreRemovedAndNothingElse) {
  const TemporaryFolder folder;
  const std::vector<std::string> kept{"checkpoint-4.safetensors", "best.safetensors", "checkpoint-4.pt.7.tmp",
                                      "mine.safetensors.7.tmp"};
  for (const std::string& name : kept) write_file_atomically(folder.path() / name, "");
  for (const auto* name : {"checkpoint-8.safetensors.7.tmp", "best.safetensors.7.tmp"})
    write_file_atomically(folder.path() / name, "");
  remove_unfinished_checkpoints(folder.path());
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator{folder.path()})
    left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAreArray(kept));
  remove_unfinished_checkpoints(folder.path() / "absent");
}

}  // namespace
}  // namespace abl::protocol
