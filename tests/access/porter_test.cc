// SPDX-License-Identifier: Apache-2.0
// Connections to a server of gRPC, from several addresses of this machine.
#include "access/porter.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <string_view>

#include "base/error.h"

namespace abl::access {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr int kPatienceMs = 60'000;

/// A connection of somebody who comes from an address of this machine.
class Caller {
 public:
  Caller(const char* from, std::uint16_t port) {
    sockaddr_in own{}, there{};
    own.sin_family = there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::inet_pton(AF_INET, from, &own.sin_addr);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  }
  ~Caller() { ::close(fd_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// Begins HTTP/2. Returns: whether the server answers.
  bool speak() {
    constexpr std::string_view kPreface{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33};
    ::send(fd_, kPreface.data(), kPreface.size(), MSG_NOSIGNAL);
    return hear();
  }
  /// Asks a server that it speaks with whether it is there.
  bool ping() {
    constexpr std::string_view kPing{"\0\0\x8\6\0\0\0\0\0abcdefgh", 17};
    std::array<char, 4096> old{};
    while (::recv(fd_, old.data(), old.size(), MSG_DONTWAIT) > 0) {
    }
    ::send(fd_, kPing.data(), kPing.size(), MSG_NOSIGNAL);
    return hear();
  }
  /// Whether the server has closed it, or does so within that time; what it said before is read.
  bool is_closed(int within_ms = 0) {
    const auto deadline = Steady::now() + std::chrono::milliseconds{within_ms};
    for (;;) {
      pollfd line{.fd = fd_, .events = POLLIN, .revents = 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
      if (::poll(&line, 1, static_cast<int>(std::max<std::int64_t>(0, left))) == 0) return false;
      std::array<char, 4096> said{};
      if (::recv(fd_, said.data(), said.size(), MSG_DONTWAIT) <= 0) return true;
    }
  }

 private:
  bool hear() {
    pollfd line{.fd = fd_, .events = POLLIN, .revents = 0};
    std::array<char, 4096> heard{};
    return ::poll(&line, 1, kPatienceMs) == 1 && ::recv(fd_, heard.data(), heard.size(), 0) > 0;
  }
  const int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

class PorterTest : public testing::Test {
 protected:
  void start(Porter::Bounds bounds,
             const ListenAddress& address = {.socket = {}, .host = "127.0.0.1", .port = 0}) {
    porter = std::make_unique<Porter>(bounds);
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&service);
    port = porter->listen(address, builder, grpc::InsecureServerCredentials());
    server = builder.BuildAndStart();
    ASSERT_TRUE(server);
    porter->open();
  }
  ~PorterTest() override {
    if (!server) return;
    porter->close();
    server->Shutdown(std::chrono::system_clock::now() + 1s);
    server->Wait();
  }
  /// Waits until so many are there; they come and go on other threads.
  bool reach(std::size_t connections) const {
    const auto deadline = Steady::now() + std::chrono::milliseconds{kPatienceMs};
    while (porter->connections() != connections && Steady::now() < deadline) std::this_thread::yield();
    return porter->connections() == connections;
  }

  std::unique_ptr<Porter> porter;  // outlives the server
  grpc::CallbackGenericService service;
  std::unique_ptr<grpc::Server> server;
  std::uint16_t port = 0;
};

TEST_F(PorterTest, WhoComesIsTheServersAndWhoLeavesIsForgotten) {
  start({});
  {
    Caller one{"127.0.0.1", port}, other{"127.0.0.2", port};
    EXPECT_TRUE(one.speak());
    EXPECT_TRUE(other.speak());
    EXPECT_TRUE(reach(2));
  }
  EXPECT_TRUE(reach(0));
  EXPECT_EQ(porter->turned_away(), 0U);
}

TEST_F(PorterTest, HalfOpenConnectionsOfOneAddressKeepNoOtherOut) {
  start({.of_one = 64});
  std::list<Caller> silent;
  for (int i = 0; i < 500; ++i) silent.emplace_back("127.0.0.1", port);
  Caller other{"127.0.0.2", port};
  EXPECT_TRUE(other.speak());
  EXPECT_TRUE(reach(65));
  EXPECT_GE(porter->turned_away(), 500U - 64);
  std::size_t open = 0;
  for (Caller& caller : silent) open += caller.is_closed() ? 0 : 1;
  EXPECT_LE(open, 64U);
  EXPECT_TRUE(other.ping());
}

TEST_F(PorterTest, OfAnAddressThatHasTooManyWhoHasSaidLeastGoes) {
  start({.of_one = 2, .to_begin = 0ms, .between_looks = 0ms});
  Caller busy{"127.0.0.1", port}, silent{"127.0.0.1", port};
  ASSERT_TRUE(busy.speak());
  ASSERT_TRUE(reach(2));
  Caller next{"127.0.0.1", port};
  EXPECT_TRUE(next.speak());
  EXPECT_TRUE(silent.is_closed(kPatienceMs));
  EXPECT_TRUE(busy.ping());
}

TEST_F(PorterTest, NobodyIsPutOutInTheFirstMoment) {
  start({.of_one = 1, .to_begin = 1h});
  Caller first{"127.0.0.1", port};
  ASSERT_TRUE(reach(1));
  Caller second{"127.0.0.1", port};
  EXPECT_TRUE(second.is_closed(kPatienceMs));
  EXPECT_TRUE(first.speak());
}

TEST_F(PorterTest, WhereAllAreTooManyOneOfTheAddressThatHasMostGoes) {
  start({.of_one = 3, .all = 3, .to_begin = 0ms, .between_looks = 0ms});
  std::list<Caller> many;
  for (int i = 0; i < 3; ++i) many.emplace_back("127.0.0.1", port);
  ASSERT_TRUE(reach(3));
  Caller other{"127.0.0.2", port};
  EXPECT_TRUE(other.speak());
  std::size_t closed = 0;
  for (Caller& caller : many) closed += caller.is_closed() ? 1 : 0;
  EXPECT_EQ(closed, 1U) << "it was closed before the other was let in";
}

TEST_F(PorterTest, APortThatIsTakenIsRefused) {
  start({});
  Porter second{{}};
  grpc::ServerBuilder builder;
  try {
    second.listen({.socket = {}, .host = "127.0.0.1", .port = port}, builder,
                  grpc::InsecureServerCredentials());
    ADD_FAILURE() << "it listens twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_THAT(error.what(), testing::HasSubstr(fmt::format("cannot listen on 127.0.0.1:{}", port)));
  }
}

TEST_F(PorterTest, AllAddressesOfAMachineAreBothKinds) {
  start({}, {.socket = {}, .host = "0.0.0.0", .port = 0});
  EXPECT_TRUE((Caller{"127.0.0.1", port}.speak()));
  EXPECT_TRUE((Caller{"127.0.0.2", port}.speak())) << "and counts as an address of IPv4";
}

}  // namespace
}  // namespace abl::access
