// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/fingerprints.h"

#include <gmock/gmock.h>

#include <atomic>

#include "base/error.h"
#include "base/file.h"
#include "tests/agent/fixtures.h"

namespace abl::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class FingerprintsTest : public testing::Test {
 protected:
  FingerprintsTest() { write_text(data / "train/a/1.jpg", "one"); }
  /// Its fingerprint is what its only image holds.
  Fingerprints::Options options(std::chrono::milliseconds every = 1h) {
    return {.cache = folder / "data.json",
            .data = {{"mine", data}, {"shapes", ""}},
            .compute =
                [this](const std::filesystem::path& place, const std::stop_token&) {
                  ++computed;
                  if (fails) throw Error{Code::kInvalidArgument, "no known format"};
                  return "of:" + read_file(place / "train/a/1.jpg");
                },
            .every = every};
  }
  /// Another file takes its place, so that the mark differs however coarse the clock of the disk is.
  void exchange(const std::string& content) {
    write_text(folder / "new", content);
    std::filesystem::rename(folder / "new", data / "train/a/1.jpg");
  }

  TemporaryFolder folder;
  const std::filesystem::path data = folder.path() / "data";
  std::atomic<int> computed = 0, changes = 0;
  std::atomic<bool> fails = false;
};

TEST_F(FingerprintsTest, EachIsComputedOnceInTheLifeOfItsFiles) {
  {
    Fingerprints first{options(), [this] { ++changes; }};
    EXPECT_TRUE(eventually([&] { return changes > 0; }));
    EXPECT_THAT(first.all(), ElementsAre(Pair("mine", "of:one"))) << "of drawn data there is none";
    EXPECT_EQ(first.of("mine"), "of:one");
    EXPECT_EQ(first.of("shapes"), "");
    EXPECT_EQ(first.of("unknown"), "");
  }
  Fingerprints second{options(), [this] { ++changes; }};
  EXPECT_TRUE(eventually([&] { return !second.all().empty(); }));
  EXPECT_EQ(computed, 1) << "the next start of the worker reads nothing";
}

TEST_F(FingerprintsTest, FilesThatChangeAreReadAgainWithoutARestart) {
  Fingerprints fingerprints{options(1ms), [] {}};
  EXPECT_TRUE(eventually([&] { return fingerprints.of("mine") == "of:one"; }));
  exchange("two");
  EXPECT_TRUE(eventually([&] { return fingerprints.all()["mine"] == "of:two"; }));
  exchange("one");
  EXPECT_TRUE(eventually([&] { return fingerprints.all()["mine"] == "of:one"; })) << "mended";
}

TEST_F(FingerprintsTest, BeforeARunItIsLookedAtWithoutWaitingForTheNextLook) {
  Fingerprints fingerprints{options(), [this] { ++changes; }};
  EXPECT_TRUE(eventually([&] { return fingerprints.all().contains("mine"); }));
  exchange("two");
  EXPECT_TRUE(eventually([&] { return fingerprints.of("mine") != "of:one"; })) << "what it was is not said";
  EXPECT_TRUE(eventually([&] { return fingerprints.of("mine") == "of:two"; }));
}

TEST_F(FingerprintsTest, OfWhatCannotBeReadNothingIsKnownAndItIsNotTriedForEver) {
  fails = true;
  Fingerprints fingerprints{options(1ms), [] {}};
  EXPECT_TRUE(eventually([&] { return computed > 0; }));
  for (int i = 0; i < 50; ++i) fingerprints.of("mine");
  EXPECT_THAT(fingerprints.all(), IsEmpty());
  EXPECT_LE(computed, 2);
  fails = false;
  exchange("two");
  EXPECT_TRUE(eventually([&] { return fingerprints.all().contains("mine"); }));
}

TEST_F(FingerprintsTest, ADamagedCacheOnlyCostsTime) {
  for (const std::string text : {"", "[1]", "{\"x\": 3}", "\xff\xfe", "{\"a\": {\"mark\": 1}}"}) {
    write_text(folder / "data.json", text);
    Fingerprints fingerprints{options(), [] {}};
    EXPECT_TRUE(eventually([&] { return fingerprints.all().contains("mine"); })) << text;
  }
}

TEST_F(FingerprintsTest, AMarkDiffersWhateverChanges) {
  const std::string before = mark_of_data(data);
  EXPECT_EQ(before, mark_of_data(data));
  write_text(data / "train/b/2.jpg", "two");
  const std::string more = mark_of_data(data);
  EXPECT_NE(before, more);
  std::filesystem::rename(data / "train/b/2.jpg", data / "train/b/3.jpg");
  EXPECT_NE(mark_of_data(data), more);
  std::filesystem::create_directory_symlink(data, data / "train/circle");
  EXPECT_FALSE(mark_of_data(data).empty()) << "a circle of links has an end";
  EXPECT_TRUE(mark_of_data(folder / "nothing").empty());
  const std::string file = mark_of_data(data / "train/a/1.jpg");
  exchange("one");
  EXPECT_NE(mark_of_data(data / "train/a/1.jpg"), file);
}

}  // namespace
}  // namespace abl::agent
