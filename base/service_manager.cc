// SPDX-License-Identifier: Apache-2.0
#include "base/service_manager.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace abl {

void tell_service_manager_ready() {
  const char* socket_path = std::getenv("NOTIFY_SOCKET");
  if (!socket_path || !*socket_path) return;
  const std::string_view path{socket_path};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto failed = [&](int error) {
    return Error{Code::kUnavailable,
                 fmt::format("the service manager does not listen at NOTIFY_SOCKET={}: {}", path,
                             std::strerror(error))};
  };
  if ((path[0] != '/' && path[0] != '@') || path.size() >= sizeof address.sun_path)
    throw Error{Code::kUnavailable,
                fmt::format("invalid NOTIFY_SOCKET '{}'; expected a path or an abstract name", path)};
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw failed(errno);
  constexpr std::string_view kReady = "READY=1";
  const auto sent =
      sendto(fd, kReady.data(), kReady.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size()));
  const int error = errno;
  close(fd);
  if (sent < 0) throw failed(error);
}

}  // namespace abl
