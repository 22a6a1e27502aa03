// SPDX-License-Identifier: Apache-2.0
#include "access/token.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "tests/temporary_folder.h"

namespace abl::access {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string refusal(const std::string& text) {
  try {
    Token::parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnauthenticated);
    return error.what();
  }
  return "";
}

TEST(Token, HasAPublicPartAndASecretOf256Bits) {
  const Token token = Token::make();
  EXPECT_THAT(token.text(), testing::MatchesRegex("abl_[0-9a-f]{12}_[A-Za-z0-9_-]{43}"));
  EXPECT_THAT(token.text(), HasSubstr("abl_" + token.id() + "_"));
  EXPECT_EQ(token.digest(), sha256_hex(token.text()));
}

TEST(Token, NoTwoAreAlike) {
  std::set<std::string> ids, secrets;
  std::set<char> letters;
  for (int i = 0; i < 200; ++i) {
    const Token token = Token::make();
    ids.insert(token.id());
    secrets.insert(token.text().substr(17));
    letters.insert(token.text().begin() + 17, token.text().end());
  }
  EXPECT_EQ(ids.size(), 200u);
  EXPECT_EQ(secrets.size(), 200u);
  EXPECT_EQ(letters.size(), 64u);
}

TEST(Token, IsReadAsItWasWrittenWithSpaceAroundIt) {
  const Token token = Token::make();
  EXPECT_EQ(Token::parse(" " + token.text() + "\n").text(), token.text());
  EXPECT_EQ(Token::parse(token.text()).id(), token.id());
}

TEST(Token, WhatIsNoTokenIsRefusedWithoutARepetitionOfIt) {
  const std::string text = Token::make().text();
  EXPECT_THAT(refusal(""), HasSubstr("it is empty"));
  EXPECT_THAT(refusal("hunter2"), HasSubstr("begins with abl_"));
  EXPECT_THAT(refusal("hunter2"), Not(HasSubstr("hunter2")));
  EXPECT_THAT(refusal("abl_xyz"), HasSubstr("12 hexadecimal digits"));
  for (const std::string& odd : {text.substr(0, text.size() - 1), text + "A", text + " " + text,
                                 text.substr(0, 20), text.substr(0, 30) + "\x01" + text.substr(31)}) {
    EXPECT_THAT(refusal(odd), HasSubstr("not complete")) << odd;
    EXPECT_THAT(refusal(odd), Not(HasSubstr(text.substr(17, 3))));
  }
}

TEST(Token, DigestsAreEqualOrNot) {
  const std::string digest = Token::make().digest();
  std::string other = digest;
  other.back() = other.back() == '0' ? '1' : '0';
  EXPECT_TRUE(equal_digests(digest, std::string{digest}));
  EXPECT_FALSE(equal_digests(digest, other));
  EXPECT_FALSE(equal_digests(digest, digest.substr(1)));
  EXPECT_FALSE(equal_digests(digest, ""));
}

TEST(Token, AFileWithOneIsItsOwnersAlone) {
  const TemporaryFolder folder;
  const Token token = Token::make();
  const auto file = folder / "deep" / "token";
  write_secret(file, token.text() + "\n");
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(read_token(file, "--join-token-file").text(), token.text());
  std::filesystem::permissions(file, std::filesystem::perms{0640});
  try {
    read_token(file, "--join-token-file");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kPermissionDenied);
    EXPECT_THAT(error.what(), HasSubstr("(mode 0640): run 'chmod 600"));
  }
  try {
    read_token(folder / "absent", "--join-token-file");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("--join-token-file"));
  }
}

}  // namespace
}  // namespace abl::access
