// SPDX-License-Identifier: Apache-2.0
#include "access/request_guard.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <unistd.h>
#include <boost/beast/core/string.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "access/listen_address.h"

namespace abl::access {
namespace {

/// "[::1]:8080" -> "::1"; nothing when it is not a host with an optional port.
std::optional<std::string> host_name(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const std::size_t end = bracketed ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view port = host.substr(bracketed ? end + 1 : end);
  const bool port_is_fine =
      port.empty() || (port.size() > 1 && port.front() == ':' &&
                       port.find_first_not_of("0123456789", 1) == std::string_view::npos);
  if (!port_is_fine) return std::nullopt;
  return std::string{bracketed ? host.substr(1, end - 1) : host.substr(0, end)};
}

bool stands_for(std::string_view pattern, std::string_view host) {
  if (!pattern.starts_with("*.")) return boost::beast::iequals(pattern, host);
  const std::size_t dot = host.find('.');
  return dot != 0 && dot != std::string_view::npos &&
         boost::beast::iequals(pattern.substr(1), host.substr(dot));
}

/// A socket that its program has closed is listed as root's, whoever's it was.
constexpr std::string_view kEstablished = "01";

const sockaddr_in& v4(const sockaddr_storage& end) { return reinterpret_cast<const sockaddr_in&>(end); }
const sockaddr_in6& v6(const sockaddr_storage& end) { return reinterpret_cast<const sockaddr_in6&>(end); }

/// "0100007F:1F90": an address as the kernel lists it, in words of 32 bits in the machine's byte order.
std::string listed(const sockaddr_storage& end) {
  const bool is_v4 = end.ss_family == AF_INET;
  std::array<std::uint32_t, 4> words{};
  std::memcpy(words.data(), is_v4 ? static_cast<const void*>(&v4(end).sin_addr) : &v6(end).sin6_addr,
              is_v4 ? 4 : 16);
  std::string text;
  for (std::size_t i = 0; i < (is_v4 ? 1 : words.size()); ++i) text += fmt::format("{:08X}", words.at(i));
  return fmt::format("{}:{:04X}", text, ntohs(is_v4 ? v4(end).sin_port : v6(end).sin6_port));
}

/// An IPv4 address as an IPv6 socket shows it.
sockaddr_storage mapped(const sockaddr_storage& end) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = v4(end).sin_port;
  address.sin6_addr.s6_addr[10] = address.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(&address.sin6_addr.s6_addr[12], &v4(end).sin_addr, 4);
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  return storage;
}

std::optional<uid_t> user_in_file(const char* list, const sockaddr_storage& ours,
                                  const sockaddr_storage& peer) {
  std::ifstream file{list};
  return user_in_list(file, ours, peer);
}

std::optional<uid_t> user_in_lists(const sockaddr_storage& ours, const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET6) return user_in_file("/proc/net/tcp6", ours, peer);
  if (peer.ss_family != AF_INET) return std::nullopt;
  if (const auto user = user_in_file("/proc/net/tcp", ours, peer)) return user;
  // a program may reach an IPv4 address through an IPv6 socket
  return user_in_file("/proc/net/tcp6", mapped(ours), mapped(peer));
}

}  // namespace

std::optional<std::string> refusal(const Origins& request, std::span<const std::string> names) {
  const auto host = host_name(request.host);
  const auto is_ours = [&](const std::string& name) { return stands_for(name, *host); };
  if (!host || !(is_loopback(*host) || std::ranges::any_of(names, is_ours)))
    return fmt::format("Host '{}' is refused: the dashboard answers to localhost, 127.0.0.1 and [::1]{}",
                       request.host, names.empty() ? " alone" : ", and to the names in its certificate");
  const auto is_own = [&](const char* scheme) {
    return boost::beast::iequals(*request.origin, fmt::format("{}://{}", scheme, request.host));
  };
  if (request.origin && !is_own("https") && (request.secure || !is_own("http")))
    return fmt::format("Origin '{}' is refused: only the dashboard's own pages may ask", *request.origin);
  const bool foreign = request.site == "cross-site" || request.site == "same-site";
  if (foreign && !(request.page && request.mode == "navigate"))
    return fmt::format("a {} request is refused: only the dashboard's own pages may ask", request.site);
  return std::nullopt;
}

std::optional<uid_t> user_in_list(std::istream& list, const sockaddr_storage& ours,
                                  const sockaddr_storage& peer) {
  // "  12: LOCAL REMOTE STATE …", as the other end sees both; a machine may have many sockets
  const std::string ends = fmt::format(": {} {} ", listed(peer), listed(ours));
  for (std::string line; std::getline(list, line);) {
    const std::size_t at = line.find(ends);
    if (at == std::string::npos) continue;
    std::istringstream words{line.substr(at + ends.size())};
    std::string state, queues, timer, retries;
    uid_t user = 0;
    if (words >> state >> queues >> timer >> retries >> user && state == kEstablished) return user;
  }
  return std::nullopt;
}

std::optional<uid_t> user_of_peer(int socket) {
  sockaddr_storage ours{}, peer{};
  socklen_t length = sizeof ours;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&ours), &length) != 0) return std::nullopt;
  length = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return std::nullopt;
  const auto user = user_in_lists(ours, peer);
  // a socket that was closed while its line was written may also be listed as root's: one that is still open
  // was open then
  return user == uid_t{0} ? user_in_lists(ours, peer) : user;
}

bool is_own_user(uid_t user) { return user == ::geteuid() || user == 0; }

}  // namespace abl::access
