// SPDX-License-Identifier: Apache-2.0
#include "access/listen_address.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/cli/listener.h"
#include "tests/temporary_folder.h"

namespace abl::access {
namespace {

TEST(ListenAddress, IsWrittenAsClientsTakeIt) {
  EXPECT_EQ(parse_listen_address("[::1]:70").text(), "[::1]:70");
  EXPECT_EQ(parse_listen_address("localhost:70").text(), "localhost:70");
  EXPECT_EQ(parse_listen_address("unix:/x/y.sock").text(), "unix:/x/y.sock");
}

TEST(ListenAddress, NothingListensOffLoopback) {
  for (const char* host : {"localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "::1", "0:0:0:0:0:0:0:1"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"", "0.0.0.0", "::", "127.1", "192.168.1.5", "::ffff:127.0.0.1", "fe80::1",
                           "localhost.example", "127.0.0.1.example"})
    EXPECT_FALSE(is_loopback(host)) << host;
  for (const char* address : {"0.0.0.0:7070", "[::]:7070", "example:7070"})
    EXPECT_THROW(parse_listen_address(address), Error) << address;
}

TEST(ListenAddress, NobodyIsToldToCloseAFolderThatAllShare) {
  const TemporaryFolder folder;
  const auto advice = [&](std::filesystem::perms mode) -> std::string {
    std::filesystem::permissions(folder.path(), mode);
    try {
      check({.socket = folder.path() / "s.sock"});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  using std::filesystem::perms;
  EXPECT_THAT(advice(perms::all), testing::HasSubstr("run 'chmod 700"));
  EXPECT_THAT(advice(perms::all | perms::sticky_bit),
              testing::AllOf(testing::HasSubstr("choose a folder of your own"),
                             testing::Not(testing::HasSubstr("chmod"))));
  EXPECT_EQ(advice(perms::owner_all), "");
}

TEST(ListenAddress, APortInUseNamesTheFlagThatChoosesAnother) {
  const cli::Listener listener;
  for (const char* host : {"127.0.0.1", "LocalHost"}) {
    try {
      check({.host = host, .port = listener.port()}, "--http-port");
      ADD_FAILURE() << host;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kUnavailable);
      EXPECT_THAT(error.what(), testing::HasSubstr("in use: choose another with --http-port"));
    }
  }
  EXPECT_NO_THROW(check({.host = "127.0.0.1", .port = 0})) << "any free one";
}

}  // namespace
}  // namespace abl::access
