// SPDX-License-Identifier: Apache-2.0
#include "scheduler/depot.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/scheduler/fixtures.h"
#include "tests/small_disk.h"

namespace abl::scheduler {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DepotTest : public testing::Test {
 protected:
  DepotTest() { open(); }
  void open() { depot = std::make_unique<Depot>(options, clock); }
  /// Sends all of a content in pieces of so many bytes. Returns: what the depot said last.
  Depot::Have send(DepotOwner owner, const std::string& content, std::size_t bytes = 10) {
    Depot::Have have = depot->put(owner, sha256_hex(content), content.size(), 0, "");
    while (!have.whole)
      have = depot->put(owner, sha256_hex(content), content.size(), have.bytes,
                        std::string_view{content}.substr(have.bytes, bytes));
    return have;
  }
  std::string fetch(const std::string& sha256) {
    std::string content;
    for (;;) {
      const Depot::Piece piece = depot->get(sha256, content.size(), 7);
      if (piece.bytes.empty()) return content;
      content += piece.bytes;
    }
  }
  Code code_of(const std::function<void()>& what) {
    try {
      what();
    } catch (const Error& error) {
      said = error.what();
      return error.code();
    }
    return Code::kOk;
  }
  std::size_t files_on_disk() const {
    std::size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator{options.folder})
      files += entry.is_regular_file();
    return files;
  }

  TemporaryFolder folder;
  FakeClock clock;
  DepotOptions options{.folder = folder / "results.db.depot", .limit = 1000, .keep_free = 0};
  std::unique_ptr<Depot> depot;
  const std::string content = "a checkpoint of some bytes, in pieces", digest = sha256_hex(content);
  std::string said;
};

TEST_F(DepotTest, WhatCameInPiecesIsFetchedInOthers) {
  EXPECT_EQ(depot->bytes_of(digest), std::nullopt);
  const Depot::Have have = send({7}, content);
  EXPECT_TRUE(have.whole);
  EXPECT_EQ(have.bytes, content.size());
  EXPECT_EQ(depot->bytes_of(digest), content.size());
  EXPECT_EQ(fetch(digest), content);
  struct stat now {};
  ASSERT_EQ(::stat(options.folder.c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 0777, 0700u) << "it is the scheduler's alone";
}

TEST_F(DepotTest, AnUploadGoesOnAtEachPlaceWhereItMayBreakAlsoAfterARestart) {
  for (std::size_t at = 0; at <= content.size(); ++at) {
    depot->put({7}, digest, content.size(), 0, std::string_view{content}.substr(0, at));
    open();  // a scheduler that was killed keeps nothing in memory
    const Depot::Have have = depot->put({7}, digest, content.size(), 0, "");
    EXPECT_EQ(have.bytes, at);
    EXPECT_EQ(have.whole, at == content.size());
    EXPECT_TRUE(send({7}, content).whole) << at;
    EXPECT_EQ(fetch(digest), content) << at;
    depot->drop({7}, digest);
    EXPECT_EQ(files_on_disk(), 0u);
    EXPECT_EQ(depot->used(), 0u);
  }
}

TEST_F(DepotTest, TwoWhoSendOneFileEndWithOneFile) {
  const auto half = content.size() / 2;
  depot->put({7}, digest, content.size(), 0, content.substr(0, half));
  // the other begins as well, and hears how much is there; nothing that stands elsewhere is written
  EXPECT_EQ(depot->put({7}, digest, content.size(), 0, content.substr(0, 5)).bytes, half);
  EXPECT_EQ(depot->put({7}, digest, content.size(), half + 3, content.substr(half + 3)).bytes, half);
  EXPECT_TRUE(depot->put({7}, digest, content.size(), half, content.substr(half)).whole);
  EXPECT_TRUE(depot->put({7}, digest, content.size(), half, content.substr(half)).whole) << "said again";
  EXPECT_EQ(fetch(digest), content);
  EXPECT_EQ(depot->used(), content.size());
}

TEST_F(DepotTest, AFileWithAnotherDigestIsDroppedInBothWaysOfReadingIt) {
  std::string wrong = content;
  wrong[5] ^= 1;
  for (const bool restarted : {false, true}) {
    depot->put({7}, digest, wrong.size(), 0, wrong.substr(0, 9));
    if (restarted) open();
    EXPECT_EQ(code_of([&] { depot->put({7}, digest, wrong.size(), 9, wrong.substr(9)); }), Code::kDataLoss);
    EXPECT_THAT(said, HasSubstr("expected " + digest));
    EXPECT_EQ(files_on_disk(), 0u);
    EXPECT_EQ(depot->used(), 0u);
    EXPECT_EQ(depot->bytes_of(digest), std::nullopt);
  }
  EXPECT_TRUE(send({7}, content).whole) << "the right one is taken after it";
}

TEST_F(DepotTest, NamesThatAreNoDigestsReachNoPath) {
  for (const std::string& name :
       {std::string{"../../../../etc/passwd"}, std::string{}, digest + "/..", "../" + digest.substr(3),
        digest.substr(1), std::string(64, 'A'), std::string(64, '/'), digest.substr(0, 63) + '\0'}) {
    EXPECT_EQ(code_of([&] { depot->put({7}, name, 5, 0, "hello"); }), Code::kInvalidArgument) << name;
    EXPECT_EQ(code_of([&] { depot->get(name, 0, 5); }), Code::kInvalidArgument) << name;
    EXPECT_EQ(code_of([&] { depot->look_at(name); }), Code::kInvalidArgument) << name;
  }
  EXPECT_EQ(files_on_disk(), 0u);
}

TEST_F(DepotTest, ALinkInItsPlaceIsNotFollowed) {
  write_file(folder / "secret", content);
  fs::create_directories(options.folder / "trial-7");
  fs::create_symlink(folder / "secret", options.folder / "trial-7" / digest);
  fs::create_symlink(folder / "secret", options.folder / "trial-7" / (digest + ".part"));
  open();
  EXPECT_EQ(depot->bytes_of(digest), std::nullopt);
  EXPECT_NE(code_of([&] { depot->put({7}, digest, content.size(), 0, "x"); }), Code::kOk);
  EXPECT_EQ(read_file(folder / "secret"), content);
}

TEST_F(DepotTest, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(code_of([&] { depot->put({7}, digest, 0, 0, ""); }), Code::kResourceExhausted);
  EXPECT_EQ(code_of([&] { depot->put({7}, digest, 1001, 0, "x"); }), Code::kResourceExhausted);
  EXPECT_EQ(code_of([&] { depot->put({7}, digest, ~std::uint64_t{0}, 0, "x"); }), Code::kResourceExhausted);
  EXPECT_EQ(code_of([&] { depot->put({7}, digest, 10, 11, "x"); }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([&] { depot->put({7}, digest, 10, 5, "123456"); }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([&] { depot->put({7}, digest, 10, ~std::uint64_t{0} - 2, "123456"); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code_of([&] { depot->put({7}, digest, 1000, 0, std::string(Depot::kMostPiece + 1, 'x')); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code_of([&] { depot->get(digest, 0, 10); }), Code::kNotFound);
  EXPECT_EQ(files_on_disk(), 0u);
  send({7}, content);
  EXPECT_EQ(depot->get(digest, ~std::uint64_t{0}, 10).bytes, "") << "beyond its end there is nothing";
}

TEST_F(DepotTest, TheCopyThatWasUsedLongestAgoMakesRoom) {
  const std::string first(400, '1'), second(400, '2'), third(400, '3');
  send({1}, first, 400);
  clock.pass(1h);
  send({2}, second, 400);
  clock.pass(1h);
  depot->get(sha256_hex(first), 0, 1);
  clock.pass(3min);
  send({3}, third, 400);
  EXPECT_TRUE(depot->bytes_of(sha256_hex(first)));
  EXPECT_FALSE(depot->bytes_of(sha256_hex(second))) << "the one that nobody has asked for";
  EXPECT_TRUE(depot->bytes_of(sha256_hex(third)));
  EXPECT_EQ(depot->used(), 800u);
  EXPECT_EQ(depot->figures().evicted.value(), 1u);
}

TEST_F(DepotTest, DataAreNotDroppedForCheckpointsNorWhatIsInUse) {
  const std::string data(500, 'd'), checkpoint(600, 'c'), other(450, 'o');
  send({}, data, 500);
  clock.pass(10h);
  EXPECT_EQ(code_of([&] { send({1}, checkpoint, 600); }), Code::kResourceExhausted);
  EXPECT_THAT(said, HasSubstr("the depot is full"));
  EXPECT_EQ(code_of([&] { send({}, content, 200); }), Code::kResourceExhausted);
  EXPECT_THAT(said, HasSubstr("data sets may take half of the depot"));
  send({1}, other, 450);
  EXPECT_EQ(code_of([&] { send({2}, content + std::string(100, 'x'), 200); }), Code::kResourceExhausted)
      << "the other has just come";
  EXPECT_TRUE(depot->bytes_of(sha256_hex(other)));
  clock.pass(3min);
  EXPECT_TRUE(send({2}, content + std::string(100, 'x'), 200).whole);
  EXPECT_FALSE(depot->bytes_of(sha256_hex(other)));
  EXPECT_TRUE(depot->bytes_of(sha256_hex(data)));
}

TEST_F(DepotTest, OnlyWhatIsWantedStays) {
  const std::string old = "an older one", foreign = "of another trial";
  send({7}, old);
  send({7}, content);
  send({8}, foreign);
  clock.pass(1min);
  depot->keep_only({7}, {digest});
  EXPECT_TRUE(depot->bytes_of(sha256_hex(old))) << "somebody may be fetching it";
  clock.pass(2min);
  depot->keep_only({7}, {digest});
  EXPECT_FALSE(depot->bytes_of(sha256_hex(old)));
  EXPECT_EQ(depot->first_whole({7}, {sha256_hex(old), digest}), digest);
  depot->keep_only({7}, {});
  EXPECT_FALSE(fs::exists(depot->folder_of({7})));
  EXPECT_EQ(fetch(sha256_hex(foreign)), foreign);
}

TEST_F(DepotTest, ABeginningThatNobodyGoesOnWithGoes) {
  depot->put({7}, digest, content.size(), 0, "a");
  clock.pass(30min);
  depot->drop_stale();
  EXPECT_EQ(files_on_disk(), 1u);
  clock.pass(31min);
  depot->drop_stale();
  EXPECT_EQ(files_on_disk(), 0u);
  EXPECT_EQ(depot->used(), 0u);
}

TEST_F(DepotTest, WhoBeginsFilesAndDoesNotGoOnKeepsNobodyOut) {
  const auto begin = [&](DepotOwner owner, const std::string& name) {
    return code_of([&] { depot->put(owner, sha256_hex(name), 100, 0, "a"); });
  };
  for (int i = 0; i < 200; ++i) EXPECT_EQ(begin({}, fmt::format("data {}", i)), Code::kOk) << i;
  EXPECT_EQ(begin({}, "one more"), Code::kResourceExhausted) << "all are in use";
  EXPECT_EQ(begin({7}, "a checkpoint"), Code::kOk) << "those of data are not in its way";
  clock.pass(2min);
  EXPECT_EQ(begin({}, "one more"), Code::kOk);
  EXPECT_EQ(depot->begun({}).size(), 200u);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(begin({7}, fmt::format("checkpoint {}", i)), Code::kOk);
  EXPECT_EQ(depot->begun({7}).size(), 4u) << "the newer ones count";
}

TEST_F(DepotTest, AFileOfNamesThatCannotBeReadStaysAsItIs) {
  const fs::path data = options.folder / "data";
  fs::create_directories(data);
  write_file(data / "names.json", "{\"a\": ");
  PushedData pushed{data};
  EXPECT_FALSE(pushed.readable());
  EXPECT_EQ(code_of([&] { pushed.add("b", {.sha256 = digest, .fingerprint = "f"}); }),
            Code::kFailedPrecondition);
  EXPECT_THAT(said, HasSubstr("names.json, cannot be read"));
  EXPECT_EQ(code_of([&] { pushed.remove("a"); }), Code::kFailedPrecondition);
  EXPECT_EQ(read_file(data / "names.json"), "{\"a\": ");
}

TEST_F(DepotTest, AFileThatWasDamagedOnItsDiskIsFoundAndDropped) {
  send({7}, content);
  EXPECT_FALSE(depot->look_at(digest));
  clock.pass(1min);
  std::string damaged = content;
  damaged[0] ^= 1;
  write_file(depot->folder_of({7}) / digest, damaged);
  EXPECT_TRUE(depot->look_at(digest));
  EXPECT_EQ(code_of([&] { depot->get(digest, 0, 10); }), Code::kNotFound);
  send({7}, content);
  fs::resize_file(depot->folder_of({7}) / digest, 3);
  EXPECT_EQ(code_of([&] { depot->get(digest, 0, 10); }), Code::kNotFound);
  send({7}, content);
  const std::string behind = content + " of another";
  send({8}, behind);
  fs::remove(depot->folder_of({8}) / sha256_hex(behind));
  fs::create_directory(depot->folder_of({8}) / sha256_hex(behind));  // opened, but not read: as on a bad disk
  EXPECT_EQ(code_of([&] { depot->get(sha256_hex(behind), 0, 10); }), Code::kNotFound)
      << "who waits for it is told that it is gone, and waits no longer";
  EXPECT_EQ(depot->bytes_of(sha256_hex(behind)), std::nullopt);
  fs::remove(depot->folder_of({7}) / digest);
  EXPECT_NE(code_of([&] { depot->get(digest, 0, 10); }), Code::kOk);
  EXPECT_EQ(depot->bytes_of(digest), std::nullopt);
}

TEST_F(DepotTest, AFullDiskKeepsNothingOfWhatHasNoRoom) {
  SmallDisk disk;
  options = {.folder = disk.path() / "depot", .limit = 64 << 20, .keep_free = 0};
  open();
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(code_of([&] { send({7}, large, 1 << 20); }), Code::kResourceExhausted);
  EXPECT_EQ(files_on_disk(), 0u);
  EXPECT_EQ(depot->used(), 0u);
  EXPECT_TRUE(send({7}, content).whole) << "what has room is taken";
}

TEST_F(DepotTest, TheResultsFileKeepsItsRoom) {
  SmallDisk disk;
  if (!disk.is_whole()) GTEST_SKIP() << "this machine allows no mounts";
  options = {.folder = disk.path() / "depot", .limit = 64 << 20, .keep_free = 1 << 20};
  open();
  EXPECT_EQ(code_of([&] { send({7}, std::string(3 << 19, 'x'), 1 << 19); }), Code::kResourceExhausted);
  EXPECT_THAT(said, HasSubstr("are kept for the results file"));
}

TEST_F(DepotTest, WhatWasPushedIsKnownAfterARestart) {
  const PushedSet set{
      .sha256 = digest, .fingerprint = "folder-1:x", .bytes = 9, .pushed = clock.now(), .by = "ada"};
  PushedData{folder.path()}.add("images", set);
  const auto kept = PushedData{folder.path()}.find("images");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->sha256, digest);
  EXPECT_EQ(kept->fingerprint, "folder-1:x");
  EXPECT_EQ(kept->by, "ada");
  EXPECT_TRUE(PushedData{folder.path()}.readable());
}

TEST_F(DepotTest, OfNoSizeItIsNone) {
  options = {.folder = folder / "none", .limit = 0};
  open();
  EXPECT_FALSE(fs::exists(folder / "none"));
  EXPECT_EQ(code_of([&] { depot->put({7}, digest, 5, 0, "hello"); }), Code::kFailedPrecondition);
  EXPECT_THAT(said, HasSubstr("--depot-limit"));
}

}  // namespace
}  // namespace abl::scheduler
