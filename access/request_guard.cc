// SPDX-License-Identifier: Apache-2.0
#include "access/request_guard.h"

#include <fmt/format.h>
#include <boost/beast/core/string.hpp>

#include <algorithm>

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

}  // namespace abl::access
