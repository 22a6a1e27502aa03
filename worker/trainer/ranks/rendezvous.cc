// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/rendezvous.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "worker/trainer/ranks/store_client.h"

namespace abl::ranks {
namespace {

/// What getaddrinfo found, to be freed.
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// A socket that listens at one address of this machine; left to itself, the store would listen on all of
/// them.
struct Listener {
  explicit Listener(const std::string& address) {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE;
    if (const int failed = ::getaddrinfo(address.c_str(), "0", &wanted, &found); failed != 0)
      throw Error{Code::kFailedPrecondition, fmt::format("cannot listen on {} for the ranks of this run: {}",
                                                         address, ::gai_strerror(failed))};
    const Addresses addresses{found, &::freeaddrinfo};
    socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    auto* const any = reinterpret_cast<sockaddr*>(&bound);
    if (socket < 0 || ::bind(socket, found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(socket, SOMAXCONN) != 0 || ::getsockname(socket, any, &size) != 0) {
      const int why = errno;
      if (socket >= 0) ::close(socket);
      throw system_error(fmt::format("cannot listen on {} for the ranks of this run", address), why);
    }
    port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  }
  int socket = -1;
  std::uint16_t port = 0;
};

}  // namespace

std::string Rendezvous::text() const { return fmt::format("{}:{}", host, port); }

Rendezvous parse_rendezvous(const std::string& text) {
  const auto colon = text.rfind(':');
  Rendezvous place{.host = text.substr(0, colon == std::string::npos ? 0 : colon)};
  const char *const begin = text.data() + colon + 1, *const end = text.data() + text.size();
  if (const auto [last, failed] = std::from_chars(begin, end, place.port);
      place.host.empty() || failed != std::errc{} || last != end || place.port == 0)
    throw Error{Code::kInvalidArgument, fmt::format("--rendezvous {}: expected HOST:PORT", text)};
  return place;
}

void use_interface_of(const std::string& address) {
  addrinfo wanted{}, *found = nullptr;
  ifaddrs* all = nullptr;
  if (::getaddrinfo(address.c_str(), nullptr, &wanted, &found) != 0) return;
  const Addresses addresses{found, &::freeaddrinfo};
  if (::getifaddrs(&all) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> interfaces{all, &::freeifaddrs};
  const auto is_it = [&](const sockaddr* one) {
    if (!one || one->sa_family != found->ai_family) return false;
    if (one->sa_family == AF_INET)
      return reinterpret_cast<const sockaddr_in*>(one)->sin_addr.s_addr ==
             reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr.s_addr;
    return one->sa_family == AF_INET6 &&
           std::memcmp(&reinterpret_cast<const sockaddr_in6*>(one)->sin6_addr,
                       &reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr,
                       sizeof(in6_addr)) == 0;
  };
  for (const ifaddrs* each = all; each; each = each->ifa_next)
    if (is_it(each->ifa_addr)) {
      ::setenv("NCCL_SOCKET_IFNAME", fmt::format("={}", each->ifa_name).c_str(), /*overwrite=*/0);
      return;
    }
}

RendezvousServer::RendezvousServer(const std::string& address) : store_{std::make_unique<Store>()} {
  const Listener listener{address};
  rendezvous_ = {.host = address, .port = listener.port};
  c10d::TCPStoreOptions options;
  options.port = listener.port;
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = listener.socket;  // from here on the store's, which closes it
  store_->store = c10::make_intrusive<c10d::TCPStore>(rendezvous_.host, options);
}

RendezvousServer::~RendezvousServer() = default;

}  // namespace abl::ranks
