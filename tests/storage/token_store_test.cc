// SPDX-License-Identifier: Apache-2.0
#include "storage/token_store.h"

#include "storage/archive.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A token whose text would be "<id>-secret".
TokenDigest token(const std::string& id, Role role, const std::string& name,
                  std::optional<Time> expires = std::nullopt) {
  return {.record = {.id = id, .role = role, .name = name, .made_by = "root", .expires = expires},
          .sha256 = sha256_hex(id + "-secret")};
}

class TokenStoreTest : public StoreTest {
 protected:
  TokenStore tokens{db};
};

TEST_F(TokenStoreTest, ATokenIsGoodUntilItExpiresOrIsRevoked) {
  tokens.add(token("aaaaaaaaaaaa", Role::kSubmitter, "ada", now + 1h), now);
  tokens.add(token("bbbbbbbbbbbb", Role::kViewer, "bob"), now);
  const TokenRecord ada = tokens.find("aaaaaaaaaaaa").value();
  EXPECT_EQ(ada.role, Role::kSubmitter);
  EXPECT_EQ(ada.name, "ada");
  EXPECT_EQ(ada.why_not(now + 59min), "");
  EXPECT_THAT(ada.why_not(now + 1h), HasSubstr("this token expired on 2024-10-04 at 01:00 UTC"));
  EXPECT_EQ(tokens.find("bbbbbbbbbbbb")->why_not(now + 100'000h), "");
  tokens.revoke("bbbbbbbbbbbb", now);
  EXPECT_EQ(tokens.find("bbbbbbbbbbbb")->why_not(now), "this token is revoked");
  EXPECT_FALSE(tokens.find("cccccccccccc"));
}

TEST_F(TokenStoreTest, RevokingAnUnknownTokenNamesTheNearest) {
  tokens.add(token("aaaaaaaaaaaa", Role::kViewer, "ada"), now);
  const auto [code, message] = error_of([&] { tokens.revoke("aaaaaaaaaaab", now); });
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_THAT(message, HasSubstr("did you mean 'aaaaaaaaaaaa'?"));
}

TEST_F(TokenStoreTest, AJoinTokenMakesOneWorker) {
  tokens.add(token("aaaaaaaaaaaa", Role::kJoin, "racks"), now);
  tokens.join("aaaaaaaaaaaa", token("bbbbbbbbbbbb", Role::kViewer, "gpu-01"), now);
  EXPECT_EQ(tokens.find("bbbbbbbbbbbb")->role, Role::kWorker);
  EXPECT_EQ(tokens.find("bbbbbbbbbbbb")->made_by, "aaaaaaaaaaaa");
  const auto [code, message] =
      error_of([&] { tokens.join("aaaaaaaaaaaa", token("cccccccccccc", Role::kWorker, "gpu-02"), now); });
  EXPECT_EQ(code, Code::kUnauthenticated);
  EXPECT_THAT(message, HasSubstr("used already"));
  EXPECT_FALSE(tokens.find("cccccccccccc"));
}

TEST_F(TokenStoreTest, APilotsTokensEndTogetherAndMakeRoomADayLater) {
  TokenDigest join = token("aaaaaaaaaaaa", Role::kJoin, "a pilot", now + 1h);
  join.record.made_by = TokenStore::kFleet;
  tokens.add(join, now);
  tokens.join("aaaaaaaaaaaa", token("bbbbbbbbbbbb", Role::kWorker, "h100-7"), now);
  tokens.add(token("cccccccccccc", Role::kWorker, "own"), now);
  EXPECT_THAT(tokens.end_join("aaaaaaaaaaaa", now),
              testing::UnorderedElementsAre("aaaaaaaaaaaa", "bbbbbbbbbbbb"));
  EXPECT_THAT(tokens.end_join("aaaaaaaaaaaa", now), IsEmpty());
  EXPECT_THAT(tokens.end_join("cccccccccccc", now), IsEmpty()) << "not a join token";
  EXPECT_EQ(tokens.find("cccccccccccc")->why_not(now), "");
  tokens.add(token("dddddddddddd", Role::kViewer, "d"), now + 23h);
  EXPECT_TRUE(tokens.find("bbbbbbbbbbbb"));
  tokens.add(token("eeeeeeeeeeee", Role::kViewer, "e"), now + 25h);
  EXPECT_FALSE(tokens.find("aaaaaaaaaaaa"));
  EXPECT_FALSE(tokens.find("bbbbbbbbbbbb"));
  EXPECT_TRUE(tokens.find("cccccccccccc"));
}

TEST_F(TokenStoreTest, AWorkerThatDidNotHearTheAnswerJoinsAgainWithTheSameToken) {
  tokens.add(token("aaaaaaaaaaaa", Role::kJoin, "racks"), now);
  const TokenDigest worker = token("bbbbbbbbbbbb", Role::kWorker, "gpu-01");
  tokens.join("aaaaaaaaaaaa", worker, now);
  EXPECT_NO_THROW(tokens.join("aaaaaaaaaaaa", worker, now + 1s));
  TokenDigest other = worker;
  other.sha256 = sha256_hex("another secret");
  EXPECT_THROW(tokens.join("aaaaaaaaaaaa", other, now), Error) << "the id alone is public";
  tokens.revoke("bbbbbbbbbbbb", now);
  EXPECT_THROW(tokens.join("aaaaaaaaaaaa", worker, now), Error);
}

TEST_F(TokenStoreTest, NothingButAJoinTokenThatIsGoodMakesAWorker) {
  tokens.add(token("aaaaaaaaaaaa", Role::kJoin, "racks", now + 1h), now);
  tokens.add(token("bbbbbbbbbbbb", Role::kAdmin, "ada"), now);
  const TokenDigest worker = token("cccccccccccc", Role::kWorker, "gpu-01");
  EXPECT_THROW(tokens.join("aaaaaaaaaaaa", worker, now + 2h), Error) << "expired";
  EXPECT_THROW(tokens.join("bbbbbbbbbbbb", worker, now), Error) << "an admin's";
  EXPECT_THROW(tokens.join("dddddddddddd", worker, now), Error) << "none";
  tokens.revoke("aaaaaaaaaaaa", now);
  EXPECT_THROW(tokens.join("aaaaaaaaaaaa", worker, now), Error) << "revoked";
}

TEST_F(TokenStoreTest, NobodyJoinsUnderTheNameOfAWorkerThatIsThere) {
  tokens.add(token("aaaaaaaaaaaa", Role::kJoin, "racks"), now);
  tokens.add(token("bbbbbbbbbbbb", Role::kWorker, "gpu-01"), now);
  const TokenDigest worker = token("cccccccccccc", Role::kWorker, "gpu-01");
  const auto [code, message] = error_of([&] { tokens.join("aaaaaaaaaaaa", worker, now); });
  EXPECT_EQ(code, Code::kAlreadyExists);
  EXPECT_THAT(message, HasSubstr("give this one another --name, or revoke that token"));
  EXPECT_FALSE(tokens.find("aaaaaaaaaaaa")->used) << "a join that is refused uses nothing up";
  tokens.revoke("bbbbbbbbbbbb", now);
  EXPECT_NO_THROW(tokens.join("aaaaaaaaaaaa", worker, now));
}

TEST_F(TokenStoreTest, WhatMakesNoSenseIsNotStored) {
  for (const char* id : {"", "short", "AAAAAAAAAAAA", "aaaaaaaaaaaa'"})
    EXPECT_THROW(tokens.add(token(id, Role::kViewer, "ada"), now), Error) << id;
  for (const std::string& name : {std::string{}, std::string(101, 'a'), std::string{"a\nb"}})
    EXPECT_THROW(tokens.add(token("aaaaaaaaaaaa", Role::kViewer, name), now), Error) << name;
  EXPECT_THAT(tokens.list(), IsEmpty());
}

TEST_F(TokenStoreTest, TokensThatEndedLongAgoGo) {
  tokens.add(token("aaaaaaaaaaaa", Role::kViewer, "ada", now + 1h), now);
  tokens.add(token("bbbbbbbbbbbb", Role::kViewer, "bob"), now);
  tokens.add(token("cccccccccccc", Role::kViewer, "cyn"), now + 24h * 91);
  EXPECT_FALSE(tokens.find("aaaaaaaaaaaa"));
  EXPECT_TRUE(tokens.find("bbbbbbbbbbbb"));
}

TEST_F(TokenStoreTest, TheAuditKeepsItsNewestLinesAndShortensLongOnes) {
  tokens.note({.time = now, .who = "local", .what = "Submit", .target = std::string(1000, 'x')});
  EXPECT_LT(tokens.audit(1)[0].target.size(), 310u);
  db.execute("UPDATE audit SET id = 1");
  db.execute(fmt::format("INSERT INTO audit VALUES ({}, 0, '', 'local', 'Submit', 's', 'ok')",
                         TokenStore::kMostAuditLines));
  tokens.note(
      {.time = now + 1s, .token = "aaaaaaaaaaaa", .who = "ada", .what = "Submit", .outcome = "refused"});
  const auto lines = tokens.audit(10);
  ASSERT_EQ(lines.size(), 2u) << "the first is gone";
  EXPECT_EQ(lines[0].who, "ada");
  EXPECT_EQ(lines[0].outcome, "refused");
}

TEST_F(TokenStoreTest, TheAuditIsReadByPersonRequestAndPage) {
  for (const char* what : {"Submit", "CancelSweep (dashboard)", "CancelSweep"})
    for (const char* who : {"ada", "vic"}) tokens.note({.time = now, .who = who, .what = what});
  const auto read = [&](std::int64_t most, const AuditFilter& filter) {
    std::vector<std::string> lines;
    for (const AuditLine& line : tokens.audit(most, filter)) lines.push_back(line.who + " " + line.what);
    return lines;
  };
  EXPECT_THAT(read(10, {.who = "ada"}),
              ElementsAre("ada CancelSweep", "ada CancelSweep (dashboard)", "ada Submit"));
  EXPECT_THAT(read(10, {.what = "CancelSweep"}),
              ElementsAre("vic CancelSweep", "ada CancelSweep", "vic CancelSweep (dashboard)",
                          "ada CancelSweep (dashboard)"))
      << "wherever it was asked for";
  EXPECT_THAT(read(10, {.who = "vic", .what = "Submit"}), ElementsAre("vic Submit"));
  EXPECT_THAT(read(10, {.who = "eve"}), IsEmpty());
  const auto first = tokens.audit(2, {.who = "ada"});
  ASSERT_EQ(first.size(), 2u);
  EXPECT_GT(first[0].key, first[1].key);
  EXPECT_THAT(read(2, {.before = first[1].key, .who = "ada"}), ElementsAre("ada Submit"));
}

TEST_F(TokenStoreTest, AnArchiveHasNeitherTokensNorTheAudit) {
  submit(sweep_of("study", 1, 1));
  tokens.add(token("aaaaaaaaaaaa", Role::kAdmin, "ada"), now);
  tokens.note({.time = now, .who = "ada", .what = "Submit", .target = "study"});
  make_archive(folder / "results.db", {"study"}, {}, folder / "study.db");
  Database archive{folder / "study.db", Database::Mode::kReadOnly};
  EXPECT_THAT(TokenStore{archive}.list(), IsEmpty());
  EXPECT_THAT(TokenStore{archive}.audit(10), IsEmpty());
}

}  // namespace
}  // namespace abl::storage
