// SPDX-License-Identifier: Apache-2.0
#include "base/pieces.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "tests/small_disk.h"
#include "tests/temporary_folder.h"

namespace abl {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string content_of(std::size_t bytes) {
  std::string content(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 2'654'435'761u >> 13);
  return content;
}

/// The other side: takes and gives pieces of one file, and fails when a test says so.
struct OtherSide {
  std::string sent;  // to it
  std::string has;   // to be fetched
  std::size_t whole = 0;
  int calls = 0, waits = 0, looked = 0;
  std::function<void(int)> at_call = [](int) {};

  PutPiece put() {
    return [this](std::uint64_t offset, std::string_view piece) {
      at_call(++calls);
      if (offset == sent.size()) sent += piece;
      return PieceTaken{.have = sent.size(), .whole = sent.size() == whole};
    };
  }
  GetPiece get() {
    return [this](std::uint64_t offset, bool damaged) {
      at_call(++calls);
      looked += damaged;
      return PieceGot{.bytes = has.substr(offset, kPieceBytes), .whole = has.size()};
    };
  }
  GoOn go_on() {
    return [this](std::chrono::milliseconds wait) {
      waits += wait > 0ms;
      return true;
    };
  }
};

class PiecesTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "file";
  const std::string content = content_of(3 * kPieceBytes + 17);
  const std::string digest = sha256_hex(content);
  OtherSide other{.sent = {}, .has = content, .whole = content.size()};
};

TEST_F(PiecesTest, AFileArrivesWhole) {
  write_file(file, content);
  EXPECT_TRUE(send_in_pieces(file, content.size(), other.put(), other.go_on()));
  EXPECT_EQ(other.sent, content);
  const auto fetched = folder.path() / "fetched";
  EXPECT_TRUE(fetch_in_pieces(fetched, digest, content.size(), other.get(), other.go_on()));
  EXPECT_EQ(read_file(fetched), content);
  EXPECT_FALSE(std::filesystem::exists(fetched.string() + ".part"));
}

TEST_F(PiecesTest, WhatTheOtherSideHasIsNotSentAgain) {
  write_file(file, content);
  for (const std::size_t have :
       {std::size_t{1}, kPieceBytes - 1, kPieceBytes, kPieceBytes + 1, content.size() - 1}) {
    OtherSide begun{.sent = content.substr(0, have), .has = {}, .whole = content.size()};
    EXPECT_TRUE(send_in_pieces(file, content.size(), begun.put(), begun.go_on())) << have;
    EXPECT_EQ(begun.sent, content) << have;
  }
  OtherSide has_all{.sent = content, .has = {}, .whole = content.size()};
  EXPECT_TRUE(send_in_pieces(file, content.size(), has_all.put(), has_all.go_on()));
  EXPECT_EQ(has_all.calls, 1);
}

TEST_F(PiecesTest, EachCallMayBreakOnce) {
  write_file(file, content);
  int broken = 0;
  other.at_call = [&](int call) {
    if (call % 2 == 1) {
      ++broken;
      throw Error{Code::kUnavailable, "the connection broke"};
    }
  };
  EXPECT_TRUE(send_in_pieces(file, content.size(), other.put(), other.go_on()));
  EXPECT_EQ(other.sent, content);
  const auto fetched = folder.path() / "fetched";
  EXPECT_TRUE(fetch_in_pieces(fetched, digest, content.size(), other.get(), other.go_on()));
  EXPECT_EQ(read_file(fetched), content);
  EXPECT_GE(broken, 8);
  EXPECT_EQ(other.waits, broken);
}

TEST_F(PiecesTest, APieceWhoseAnswerWasLostIsNotTakenTwice) {
  write_file(file, content);
  PutPiece put = other.put();
  int calls = 0;
  const PutPiece loses_answers = [&](std::uint64_t offset, std::string_view piece) {
    const PieceTaken taken = put(offset, piece);
    if (++calls % 2 == 0) throw Error{Code::kDeadlineExceeded, "no answer"};
    return taken;
  };
  EXPECT_TRUE(send_in_pieces(file, content.size(), loses_answers, other.go_on()));
  EXPECT_EQ(other.sent, content);
}

TEST_F(PiecesTest, AFetchGoesOnWhereAnEarlierOneWasBrokenOff) {
  for (const std::size_t have : {std::size_t{0}, std::size_t{1}, kPieceBytes, content.size() - 1}) {
    write_file(file.string() + ".part", content.substr(0, have));
    OtherSide again{.sent = {}, .has = content, .whole = 0};
    std::uint64_t first = content.size();
    const GetPiece get = [&, inner = again.get()](std::uint64_t offset, bool damaged) {
      first = std::min(first, offset);
      return inner(offset, damaged);
    };
    EXPECT_TRUE(fetch_in_pieces(file, digest, content.size(), get, again.go_on()));
    EXPECT_EQ(read_file(file), content);
    EXPECT_EQ(first, have) << "it is not fetched again";
    EXPECT_EQ(again.looked, 0);
  }
}

TEST_F(PiecesTest, ADamagedBeginningIsFetchedAnewAndTheOtherSideLooksAtItsFile) {
  std::string damaged = content.substr(0, kPieceBytes + 5);
  damaged[3] ^= 1;
  write_file(file.string() + ".part", damaged);
  EXPECT_TRUE(fetch_in_pieces(file, digest, content.size(), other.get(), other.go_on()));
  EXPECT_EQ(read_file(file), content);
  EXPECT_EQ(other.looked, 1);
}

TEST_F(PiecesTest, AnotherContentIsNeverTaken) {
  other.has[content.size() - 1] ^= 1;
  try {
    fetch_in_pieces(file, digest, content.size(), other.get(), other.go_on());
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing is left of it";
  for (const std::string& has : {content.substr(0, 10), content + "x", std::string{}}) {
    OtherSide of_another_length{.sent = {}, .has = has, .whole = 0};
    EXPECT_THROW(fetch_in_pieces(file, digest, content.size(), of_another_length.get(), other.go_on()),
                 Error);
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

TEST_F(PiecesTest, WhoIsNotToGoOnStops) {
  write_file(file, content);
  other.at_call = [](int) { throw Error{Code::kUnavailable, "nobody is there"}; };
  int left = 3;
  const GoOn few = [&](std::chrono::milliseconds) { return --left > 0; };
  EXPECT_FALSE(send_in_pieces(file, content.size(), other.put(), few));
  left = 3;
  EXPECT_FALSE(fetch_in_pieces(folder.path() / "fetched", digest, content.size(), other.get(), few));
}

TEST_F(PiecesTest, WhatWouldComeAgainIsNotTriedAgain) {
  write_file(file, content);
  other.at_call = [](int) { throw Error{Code::kPermissionDenied, "not yours"}; };
  EXPECT_THROW(send_in_pieces(file, content.size(), other.put(), other.go_on()), Error);
  EXPECT_EQ(other.calls, 1);
}

TEST_F(PiecesTest, AFullDiskIsAnErrorOfTheDisk) {
  SmallDisk disk;
  OtherSide large{.sent = {}, .has = content_of(4 << 20), .whole = 0};
  try {
    fetch_in_pieces(disk.path() / "file", sha256_hex(large.has), large.has.size(), large.get(),
                    large.go_on());
    FAIL() << "there was no room for it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted);
    EXPECT_THAT(error.what(), HasSubstr("cannot write"));
  }
}

}  // namespace
}  // namespace abl
