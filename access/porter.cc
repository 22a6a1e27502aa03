// SPDX-License-Identifier: Apache-2.0
#include "access/porter.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <grpcpp/server_builder.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace abl::access {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using External = grpc::experimental::ExternalConnectionAcceptor;

constexpr auto kBetweenWords = 60s;  // in the log
constexpr auto kPauseAfterFailure = 100ms;
constexpr int kAtOnce = 64;  // accepted before who has left is looked for

/// Whom an address counts as: of IPv6 its network, since a machine has a whole one to itself.
std::string peer_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(), text.size());
    return text.data();
  }
  in6_addr v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    ::inet_ntop(AF_INET, &v6.s6_addr[12], text.data(), text.size());
    return text.data();
  }
  if (!IN6_IS_ADDR_LOOPBACK(&v6)) std::fill(std::begin(v6.s6_addr) + 8, std::end(v6.s6_addr), 0);
  ::inet_ntop(AF_INET6, &v6, text.data(), text.size());
  return text.data();
}

/// The addresses that a host stands for here; of all of a machine's both kinds at once, as gRPC does it.
std::vector<sockaddr_storage> addresses_of(const ListenAddress& listen, std::uint16_t port) {
  const auto v4 = [&](in_addr_t host) {
    sockaddr_storage storage{};
    auto& address = reinterpret_cast<sockaddr_in&>(storage);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = host;
    return storage;
  };
  const auto v6 = [&](const in6_addr& host) {
    sockaddr_storage storage{};
    auto& address = reinterpret_cast<sockaddr_in6&>(storage);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = host;
    return storage;
  };
  in_addr four{};
  if (::inet_pton(AF_INET, listen.host.c_str(), &four) == 1) {
    if (four.s_addr == htonl(INADDR_ANY)) return {v6(in6addr_any), v4(four.s_addr)};
    return {v4(four.s_addr)};
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, listen.host.c_str(), &six) == 1) return {v6(six)};
  return {v4(htonl(INADDR_LOOPBACK)), v6(in6addr_loopback)};  // "localhost"
}

bool is_any(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

/// -1: it cannot be listened on, and errno says why.
int listen_at(const sockaddr_storage& address) {
  const int fd = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int yes = 1, no = 0;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (is_any(address)) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const socklen_t size = address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  constexpr int kWaiting = 4096;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(fd, kWaiting) == 0)
    return fd;
  const int why = errno;
  ::close(fd);
  errno = why;
  return -1;
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

/// Each has two descriptors, and the files of the store, of the dashboard and of workers' calls need some.
std::size_t room_for_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  return std::max<std::size_t>(16, limit.rlim_cur / 4);
}

Porter::Bounds bounded(Porter::Bounds bounds) {
  bounds.all = std::min(bounds.all, room_for_connections());
  return bounds;
}

std::uint64_t received_by(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

}  // namespace

/// A descriptor that is closed with it.
class Porter::Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_{fd} {}
  Descriptor(Descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class Porter::Impl {
 public:
  explicit Impl(Bounds bounds)
      : bounds_{bounded(bounds)},
        events_{::epoll_create1(EPOLL_CLOEXEC)},
        end_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (events_.get() < 0 || end_.get() < 0) throw system_error("cannot wait for connections", errno);
    watch(end_.get(), EPOLLIN);
  }

  ~Impl() { close(); }

  void close() {
    ::eventfd_write(end_.get(), 1);
    if (thread_.joinable()) thread_.join();
    listeners_.clear();
  }

  std::uint16_t listen(const ListenAddress& address, grpc::ServerBuilder& builder,
                       const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    std::uint16_t port = address.port;
    std::vector<Descriptor> found;
    int why = 0;
    for (const sockaddr_storage& one : addresses_of(address, 0)) {
      sockaddr_storage there = one;
      (there.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(there).sin_port
                                  : reinterpret_cast<sockaddr_in6&>(there).sin6_port) = htons(port);
      Descriptor fd{listen_at(there)};
      if (fd.get() < 0) {
        why = why == 0 ? errno : why;
        if (errno == EADDRINUSE) break;
        continue;  // a machine without IPv6
      }
      if (port == 0) port = port_of(fd.get());
      const bool all = is_any(there);
      found.push_back(std::move(fd));
      if (all) break;
    }
    if (found.empty() || why == EADDRINUSE)
      throw Error{Code::kUnavailable,
                  fmt::format("cannot listen on {}: {}", address.text(), std::strerror(why))};
    using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    acceptors_.push_back(builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials));
    for (Descriptor& fd : found) {
      const int number = fd.get();
      listeners_.emplace(number, Listener{std::move(fd), acceptors_.back().get()});
    }
    return port;
  }

  void open() {
    for (const auto& [fd, listener] : listeners_) watch(fd, EPOLLIN);
    thread_ = std::thread{[this] { work(); }};
  }

  std::atomic<std::size_t> there{0};
  std::atomic<std::uint64_t> turned_away{0};

 private:
  struct Listener {
    Descriptor fd;
    External* acceptor;
  };
  /// Of a connection that the server has, a second descriptor: it tells when either side has closed it.
  struct Guest {
    Descriptor fd;
    std::string peer;
    Steady::time_point since;
  };
  struct Peer {
    std::set<int> guests;
    Steady::time_point looked{};
  };

  void watch(int fd, std::uint32_t what) const {
    epoll_event event{.events = what, .data = {.fd = fd}};
    if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      throw system_error("cannot wait for connections", errno);
  }

  void work() {
    std::array<epoll_event, 128> events{};
    for (;;) {
      const int count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == end_.get()) return;
        try {
          if (const auto listener = listeners_.find(fd); listener != listeners_.end())
            accept(listener->second);
          else
            forget(fd);
        } catch (const std::exception& error) {  // no memory: a connection less
          say(error.what());
          std::this_thread::sleep_for(kPauseAfterFailure);
        }
      }
    }
  }

  void accept(const Listener& listener) {
    for (int i = 0; i < kAtOnce; ++i) {
      sockaddr_storage address{};
      socklen_t size = sizeof address;
      Descriptor fd{::accept4(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &size,
                              SOCK_CLOEXEC | SOCK_NONBLOCK)};
      if (fd.get() < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        say(fmt::format("cannot accept a connection: {}", std::strerror(errno)));
        std::this_thread::sleep_for(kPauseAfterFailure);
        return;
      }
      if (fd.get() < 0) return;  // all are in, or one left before it was
      let_in(listener, std::move(fd), peer_of(address));
    }
  }

  void let_in(const Listener& listener, Descriptor fd, const std::string& peer) {
    const auto now = Steady::now();
    const auto known = peers_.find(peer);
    const bool many = known != peers_.end() && known->second.guests.size() >= bounds_.of_one;
    if (many)
      say(fmt::format("{} has {} connections, as many as one address may have (--connections-each)", peer,
                      bounds_.of_one));
    if ((many && !put_one_out(known->second, now)) || (guests_.size() >= bounds_.all && !make_room(now))) {
      turned_away.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const int yes = 1;
    constexpr unsigned kUserTimeoutMs = 20'000;  // as gRPC sets it where it listens itself
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof kUserTimeoutMs);
    Descriptor second{::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)};
    if (second.get() < 0) return say(fmt::format("cannot accept a connection: {}", std::strerror(errno)));
    const int number = second.get();
    watch(number, EPOLLRDHUP);
    peers_[peer].guests.insert(number);
    guests_.emplace(number, Guest{std::move(second), peer, now});
    there.store(guests_.size(), std::memory_order_relaxed);
    External::NewConnectionParameters parameters;
    parameters.listener_fd = listener.fd.get();
    parameters.fd = fd.release();
    listener.acceptor->HandleNewConnection(&parameters);
  }

  /// Of this peer. False: all have just come, or one looked a moment ago.
  bool put_one_out(Peer& peer, Steady::time_point now) {
    if (now - peer.looked < bounds_.between_looks) return false;
    peer.looked = now;
    int least = -1;
    std::uint64_t received = 0;
    for (const int fd : peer.guests) {
      if (now - guests_.at(fd).since < bounds_.to_begin) continue;
      const std::uint64_t one = received_by(fd);
      if (least < 0 || one < received) least = fd, received = one;
    }
    if (least < 0) return false;
    ::shutdown(least, SHUT_RDWR);  // the server notices, and closes its own
    forget(least);
    turned_away.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  /// Of the peer that has most.
  bool make_room(Steady::time_point now) {
    const auto most =
        std::ranges::max_element(peers_, {}, [](const auto& peer) { return peer.second.guests.size(); });
    return most != peers_.end() && put_one_out(most->second, now);
  }

  void forget(int fd) {
    const auto guest = guests_.find(fd);
    if (guest == guests_.end()) return;
    if (const auto peer = peers_.find(guest->second.peer); peer != peers_.end()) {
      peer->second.guests.erase(fd);
      if (peer->second.guests.empty()) peers_.erase(peer);
    }
    guests_.erase(guest);  // closed: nothing waits for it any more
    there.store(guests_.size(), std::memory_order_relaxed);
  }

  void say(const std::string& what) {
    const auto now = Steady::now();
    if (said_ != Steady::time_point{} && now - said_ < kBetweenWords) return;
    said_ = now;
    log_warning("gRPC: {}", what);
  }

  const Bounds bounds_;
  const Descriptor events_, end_;
  std::vector<std::unique_ptr<External>> acceptors_;
  std::map<int, Listener> listeners_;
  std::map<int, Guest> guests_;
  std::map<std::string, Peer> peers_;
  Steady::time_point said_{};
  std::thread thread_;
};

Porter::Porter(Bounds bounds) : impl_{std::make_unique<Impl>(bounds)} {}
Porter::~Porter() = default;
std::uint16_t Porter::listen(const ListenAddress& address, grpc::ServerBuilder& builder,
                             const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  return impl_->listen(address, builder, credentials);
}
void Porter::open() { impl_->open(); }
void Porter::close() { impl_->close(); }
std::size_t Porter::connections() const { return impl_->there.load(std::memory_order_relaxed); }
std::uint64_t Porter::turned_away() const { return impl_->turned_away.load(std::memory_order_relaxed); }

}  // namespace abl::access
