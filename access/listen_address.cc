// SPDX-License-Identifier: Apache-2.0
#include "access/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"

namespace abl::access {
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

void check_folder(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  protect_home(folder);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    throw system_error(fmt::format("cannot look at {}", folder.string()), errno);
  const bool open_to_others = (status.st_mode & 077) != 0 || status.st_uid != ::geteuid();
  if (!open_to_others) return;
  const bool is_shared = status.st_uid != ::geteuid() || (status.st_mode & S_ISVTX) != 0;  // such as /tmp
  throw Error{
      Code::kPermissionDenied,
      fmt::format("folder {} is accessible to other users (mode {:04o}): anyone who reaches the "
                  "socket can run programs as you; {}",
                  folder.string(), status.st_mode & 07777,
                  is_shared ? "choose a folder of your own"
                            : fmt::format("run 'chmod 700 {}' or choose another folder", folder.string()))};
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
        fmt::format("another program listens on {}: stop it or choose another socket", path.string())};
}

/// gRPC says only that a port could not be had; this says why.
void check_port(const ListenAddress& listen, const char* flag) {
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in6);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (::inet_pton(AF_INET6, listen.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(listen.port);
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(listen.port);
    if (::inet_pton(AF_INET, listen.host.c_str(), &v4.sin_addr) != 1)
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);  // "localhost"
    size = sizeof(sockaddr_in);
  }
  const Socket probe{address.ss_family};
  const int yes = 1;
  ::setsockopt(probe.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(probe.fd(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return;
  if (errno == EADDRINUSE)
    throw Error{Code::kUnavailable, fmt::format("port {} on {} is in use: choose another with {}",
                                                listen.port, listen.host, flag)};
  throw system_error(fmt::format("cannot listen on {}", listen.text()), errno);
}

}  // namespace

bool is_ip_address(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool is_loopback(const std::string& host) {
  if (::strcasecmp(host.c_str(), "localhost") == 0) return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string ListenAddress::text() const {
  if (!socket.empty()) return "unix:" + socket.string();
  return fmt::format(fmt::runtime(host.find(':') == std::string::npos ? "{}:{}" : "[{}]:{}"), host, port);
}

ListenAddress parse_listen_address(const std::string& given, Reach reach) {
  const std::string text = printable_line(given);  // it is repeated in what is said of it
  if (text != given)
    throw Error{Code::kInvalidArgument,
                fmt::format("invalid listen address '{}': it has characters that cannot be shown", text)};
  if (text.starts_with("unix:")) {
    const std::string path = text.substr(5);
    if (path.empty())
      throw Error{Code::kInvalidArgument, "missing path after unix:; expected unix:/path/scheduler.sock"};
    return {.socket = path};
  }
  const std::size_t colon = text.rfind(':');
  ListenAddress address;
  const char* const end = text.data() + text.size();
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (error != std::errc{} || rest != end) address.host.clear();
  }
  if (address.host.empty())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("invalid listen address '{}'; expected unix:/path/scheduler.sock or 127.0.0.1:PORT",
                    text)};
  if (is_loopback(address.host)) return address;
  if (!is_ip_address(address.host))
    throw Error{Code::kInvalidArgument, fmt::format("invalid listen address '{}': expected an IP address of "
                                                    "this machine, or 0.0.0.0:{} for all of them",
                                                    text, address.port)};
  if (reach == Reach::kThisMachine)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{} is not a loopback address: there a scheduler listens with TLS and tokens "
                    "(--tls-certificate and --tls-key, which 'ablate init-fleet' makes), or, for everybody "
                    "who reaches the port to do as they like, with --insecure",
                    text)};
  return address;
}

void check(const ListenAddress& address, const char* flag) {
  if (!address.socket.empty()) return check_socket(address.socket);
  if (address.port != 0) check_port(address, flag);
}

std::vector<fs::path> prepare(const ListenAddress& address) {
  check(address);
  if (address.socket.empty()) return {};
  auto made = make_folder(fs::absolute(address.socket).parent_path());
  fs::remove(address.socket);  // its program died without removing it
  return made;
}

void protect_home(const fs::path& folder) {
  std::error_code ignored;
  if (fs::equivalent(folder, home_folder(), ignored)) fs::permissions(folder, fs::perms::owner_all, ignored);
}

}  // namespace abl::access
