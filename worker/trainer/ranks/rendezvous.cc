// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/rendezvous.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"

namespace abl::ranks {
namespace {

constexpr const char* kHere = "127.0.0.1";

/// A socket that listens on the loopback interface; left to itself, the store would listen on all of them.
struct Listener {
  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, kHere, &address.sin_addr);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0 || ::bind(socket, any, size) != 0 || ::listen(socket, SOMAXCONN) != 0 ||
        ::getsockname(socket, any, &size) != 0) {
      const int why = errno;
      if (socket >= 0) ::close(socket);
      throw system_error(fmt::format("cannot listen on {} for the ranks of this run", kHere), why);
    }
    port = ntohs(address.sin_port);
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

struct RendezvousServer::Store {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

RendezvousServer::RendezvousServer() : store_{std::make_unique<Store>()} {
  const Listener listener;
  rendezvous_ = {.host = kHere, .port = listener.port};
  c10d::TCPStoreOptions options;
  options.port = listener.port;
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = listener.socket;  // from here on the store's, which closes it
  store_->store = c10::make_intrusive<c10d::TCPStore>(rendezvous_.host, options);
}

RendezvousServer::~RendezvousServer() = default;

}  // namespace abl::ranks
