// SPDX-License-Identifier: Apache-2.0
#include "cli/port.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace abl::cli {
namespace {

/// The port that was bound for a moment (`port`, or any when it is 0), or minus errno.
int try_bind(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  const int yes = 1;  // a port that has only old connections left is free
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound =
      bind(fd, generic, size) == 0 && listen(fd, 1) == 0 && getsockname(fd, generic, &size) == 0;
  const int result = bound ? ntohs(address.sin_port) : -errno;
  close(fd);
  return result;
}

}  // namespace

std::uint16_t choose_port(std::optional<std::uint16_t> asked) {
  int port = try_bind(asked.value_or(kDefaultPort));
  if (port < 0 && !asked) port = try_bind(0);
  if (port == -EADDRINUSE)
    throw Error{
        Code::kUnavailable,
        fmt::format("port {} on 127.0.0.1 is in use: choose another with --port, or leave it out", *asked)};
  if (port < 0) throw system_error(fmt::format("cannot use port {} on 127.0.0.1", asked.value_or(0)), -port);
  return static_cast<std::uint16_t>(port);
}

}  // namespace abl::cli
