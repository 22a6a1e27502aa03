// SPDX-License-Identifier: Apache-2.0
#include "base/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace abl {
namespace {

class ServiceManagerTest : public testing::Test {
 protected:
  ~ServiceManagerTest() override { unsetenv("NOTIFY_SOCKET"); }

  /// What arrives at a socket of this address while `tell` runs.
  static std::string heard_at(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), length), 0) << std::strerror(errno);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    tell_service_manager_ready();
    std::array<char, 64> said{};
    const auto size = recv(fd, said.data(), said.size(), MSG_DONTWAIT);
    close(fd);
    return {said.data(), size < 0 ? 0 : static_cast<std::size_t>(size)};
  }
};

TEST_F(ServiceManagerTest, HearsThatTheServiceIsReadyAtASocketAndAtAnAbstractName) {
  const TemporaryFolder folder;
  EXPECT_EQ(heard_at((folder.path() / "notify").string()), "READY=1");
  EXPECT_EQ(heard_at("@ablate-test-" + std::to_string(getpid())), "READY=1");
}

TEST_F(ServiceManagerTest, IsToldNothingWhereNoneWaits) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_NO_THROW(tell_service_manager_ready());
  setenv("NOTIFY_SOCKET", "", 1);
  EXPECT_NO_THROW(tell_service_manager_ready());
}

TEST_F(ServiceManagerTest, ASocketThatNobodyHasAndAnAddressThatIsNoneAreErrors) {
  const TemporaryFolder folder;
  for (const std::string& place :
       {(folder.path() / "absent").string(), std::string{"notify"}, '/' + std::string(200, 'x')}) {
    setenv("NOTIFY_SOCKET", place.c_str(), 1);
    EXPECT_THROW(tell_service_manager_ready(), Error) << place;
  }
}

}  // namespace
}  // namespace abl
