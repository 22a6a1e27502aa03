// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <istream>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace abl::access {

/// What a browser says of where a request comes from; empty: it does not say.
struct Origins {
  std::string_view host;  ///< Host
  std::optional<std::string_view> origin;
  std::string_view site;  ///< Sec-Fetch-Site
  std::string_view mode;  ///< Sec-Fetch-Mode
  bool page = false;      ///< a page is asked for with GET, not the API
  bool secure = false;    ///< it came over TLS
};

/// Why a request is refused, or nothing. The Host must be a loopback name or one of `names`, the
/// certificate's ("*.example.org" stands for one label): a page of another site that lets its own name point
/// at this address (DNS rebinding) still sends that name. An Origin, where sent, must be the page's own. A
/// request that a page of another site or port makes is refused, whatever it does with the answer; to follow
/// a link from there to a page of ours is not.
std::optional<std::string> refusal(const Origins& request, std::span<const std::string> names = {});

/// The user whose program is at the other end of a TCP connection within this machine, as the kernel lists
/// its sockets; nothing where that end is closed or on another machine. `socket`: our end's descriptor. Costs
/// time in proportion to the machine's sockets.
std::optional<uid_t> user_of_peer(int socket);

/// The same from a list in the form of /proc/net/tcp or tcp6. `ours`, `peer`: the ends, both AF_INET or both
/// AF_INET6.
std::optional<uid_t> user_in_list(std::istream& list, const sockaddr_storage& ours,
                                  const sockaddr_storage& peer);

/// Whether that user may act as this one: it is this user, or root.
bool is_own_user(uid_t user);

}  // namespace abl::access
