// SPDX-License-Identifier: Apache-2.0
#include "scheduler/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace abl::scheduler {
namespace {

namespace fs = std::filesystem;

/// Closes itself.
class Socket {
 public:
  explicit Socket(int family) : fd_{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    if (fd_ < 0) throw system_error("cannot make a socket", errno);
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool loopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "localhost" || host == "::1";
}

void check_folder(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  protect_home(folder);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    throw system_error(fmt::format("cannot look at {}", folder.string()), errno);
  const bool open_to_others = (status.st_mode & 077) != 0 || status.st_uid != ::geteuid();
  if (!open_to_others) return;
  throw Error{Code::kPermissionDenied, fmt::format("folder {0} is accessible to other users (mode {1:04o}): "
                                                   "anyone who reaches the socket can run programs as you; "
                                                   "run 'chmod 700 {0}' or choose another folder",
                                                   folder.string(), status.st_mode & 07777)};
}

void check_socket(const fs::path& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.native().size() >= sizeof address.sun_path)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} is {} bytes long: socket paths are limited to {}", path.string(),
                            path.native().size(), sizeof address.sun_path - 1)};
  check_folder(fs::absolute(path).parent_path());
  if (!fs::exists(path)) return;
  if (!fs::is_socket(path))
    throw Error{Code::kInvalidArgument, fmt::format("{} exists and is not a socket", path.string())};
  std::strcpy(address.sun_path, path.c_str());
  const Socket probe{AF_UNIX};
  if (::connect(probe.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    throw Error{
        Code::kUnavailable,
        fmt::format("a scheduler already listens on {}: stop it or choose another socket", path.string())};
}

/// gRPC says only that a port could not be had; this says why.
void check_port(const Endpoint& endpoint, const char* flag) {
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in);
  if (endpoint.host == "::1") {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    v6.sin6_addr = in6addr_loopback;
    size = sizeof(sockaddr_in6);
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    ::inet_pton(AF_INET, endpoint.host == "localhost" ? "127.0.0.1" : endpoint.host.c_str(), &v4.sin_addr);
  }
  const Socket probe{address.ss_family};
  const int yes = 1;
  ::setsockopt(probe.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(probe.fd(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return;
  if (errno == EADDRINUSE)
    throw Error{Code::kUnavailable, fmt::format("port {} on {} is in use: choose another with {}",
                                                endpoint.port, endpoint.host, flag)};
  throw system_error(fmt::format("cannot listen on {}", endpoint.text()), errno);
}

}  // namespace

std::string Endpoint::text() const {
  if (!socket.empty()) return "unix:" + socket.string();
  return fmt::format(fmt::runtime(host.find(':') == std::string::npos ? "{}:{}" : "[{}]:{}"), host, port);
}

Endpoint parse_endpoint(const std::string& text) {
  if (text.starts_with("unix:")) {
    const std::string path = text.substr(5);
    if (path.empty())
      throw Error{Code::kInvalidArgument, "missing path after unix:; expected unix:/path/scheduler.sock"};
    return {.socket = path};
  }
  const std::size_t colon = text.rfind(':');
  Endpoint endpoint;
  const char* const end = text.data() + text.size();
  if (colon != std::string::npos) {
    endpoint.host = text.substr(0, colon);
    if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']'))
      endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
    if (error != std::errc{} || rest != end) endpoint.host.clear();
  }
  if (endpoint.host.empty())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("invalid listen address '{}'; expected unix:/path/scheduler.sock or 127.0.0.1:PORT",
                    text)};
  if (!loopback(endpoint.host))
    throw Error{Code::kInvalidArgument, fmt::format("{} is not a loopback address: without tokens and TLS a "
                                                    "scheduler listens on this machine alone; listen on "
                                                    "127.0.0.1:{} and reach it through `ssh -L`",
                                                    text, endpoint.port)};
  return endpoint;
}

void check(const Endpoint& endpoint, const char* flag) {
  if (!endpoint.socket.empty()) return check_socket(endpoint.socket);
  if (endpoint.port != 0) check_port(endpoint, flag);
}

std::vector<fs::path> prepare(const Endpoint& endpoint) {
  check(endpoint);
  if (endpoint.socket.empty()) return {};
  auto made = make_folder(fs::absolute(endpoint.socket).parent_path());
  fs::remove(endpoint.socket);  // its scheduler died without removing it
  return made;
}

void protect_home(const fs::path& folder) {
  std::error_code ignored;
  if (fs::equivalent(folder, home_folder(), ignored)) fs::permissions(folder, fs::perms::owner_all, ignored);
}

}  // namespace abl::scheduler
