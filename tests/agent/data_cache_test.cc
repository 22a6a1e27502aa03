// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/data_cache.h"

#include <gmock/gmock.h>

#include <thread>

#include "base/file.h"
#include "base/sha256.h"
#include "tests/agent/fixtures.h"

namespace abl::agent {
namespace {

using testing::HasSubstr;

class DataCacheTest : public testing::Test {
 protected:
  DataCache::Held get(const std::string& content, DataCache* other = nullptr) {
    return (other ? *other : cache)
        .get(
            sha256_hex(content), content.size(),
            [&](const std::filesystem::path& file) {
              ++fetched;
              write_file(file, content);
              return std::string{};
            },
            [] { return true; });
  }
  bool is_kept(const std::string& content) const {
    return std::filesystem::exists(folder.path() / "data" / (sha256_hex(content) + ".abldata"));
  }
  /// As if it had been used an hour before what comes now.
  void age(const std::string& content) {
    const auto file = folder.path() / "data" / (sha256_hex(content) + ".abldata");
    std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) - std::chrono::hours{1});
  }

  TemporaryFolder folder;
  DataCache cache{folder / "data", 100};
  int fetched = 0;
};

TEST_F(DataCacheTest, WhatWasFetchedOnceIsUsedAgain) {
  const auto first = get("content");
  EXPECT_EQ(first.why, "");
  EXPECT_EQ(read_file(first.file), "content");
  EXPECT_EQ(get("content").file, first.file);
  DataCache restarted{folder / "data", 100};
  EXPECT_EQ(get("content", &restarted).file, first.file);
  EXPECT_EQ(fetched, 1);
}

TEST_F(DataCacheTest, WhoseDataAreThereWaitsForNobodysFetch) {
  get("content");
  bool asked = false;
  cache.get(
      sha256_hex("other"), 5,
      [&](const std::filesystem::path&) {  // takes as long as it takes
        std::thread{[&] {
          const auto held = cache.get(
              sha256_hex("content"), 7, [](const auto&) { return "it is there"; }, [] { return false; });
          EXPECT_EQ(held.why, "");
          asked = true;
        }}.join();
        return std::string{"away"};
      },
      [] { return true; });
  EXPECT_TRUE(asked);
}

TEST_F(DataCacheTest, ADamagedFileIsFetchedAgain) {
  write_text(folder.path() / "data" / (sha256_hex("content") + ".abldata"), "cOntent");
  const auto held = get("content");
  EXPECT_EQ(read_file(held.file), "content");
  EXPECT_EQ(fetched, 1);
}

TEST_F(DataCacheTest, TheOneThatWasUsedLongestAgoMakesRoomButNoneThatARunHas) {
  const std::string first(40, '1'), second(40, '2'), third(40, '3'), fourth(90, '4');
  auto held = get(first);
  get(second);
  age(first);
  EXPECT_EQ(get(third).why, "");
  EXPECT_TRUE(is_kept(first)) << "a run has it";
  EXPECT_FALSE(is_kept(second));
  EXPECT_THAT(get(fourth).why, HasSubstr("beside those in use"));
  held = {};
  EXPECT_EQ(get(fourth).why, "");
  EXPECT_FALSE(is_kept(first));
}

TEST_F(DataCacheTest, WhatIsLargerThanAllOfItIsRefusedWithTheFlag) {
  EXPECT_THAT(get(std::string(101, 'x')).why, HasSubstr("--data-limit-mib"));
  EXPECT_EQ(fetched, 0);
}

TEST_F(DataCacheTest, ADigestThatIsNoneReachesNoPath) {
  for (const std::string digest : {"", "../../secret", "0123"}) {
    const auto held = cache.get(
        digest, 5, [](const auto&) { return std::string{}; }, [] { return true; });
    EXPECT_THAT(held.why, HasSubstr("no SHA-256")) << digest;
  }
}

}  // namespace
}  // namespace abl::agent
