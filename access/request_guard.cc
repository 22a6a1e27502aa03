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

}  // namespace

std::optional<std::string> refusal(const Origins& request) {
  const auto name = host_name(request.host);
  if (!name || !is_loopback(*name))
    return fmt::format("Host '{}' is refused: the dashboard answers to localhost, 127.0.0.1 and [::1] alone",
                       request.host);
  if (request.origin && !boost::beast::iequals(*request.origin, fmt::format("http://{}", request.host)) &&
      !boost::beast::iequals(*request.origin, fmt::format("https://{}", request.host)))
    return fmt::format("Origin '{}' is refused: only the dashboard's own pages may ask", *request.origin);
  const bool foreign = request.site == "cross-site" || request.site == "same-site";
  if (foreign && !(request.page && request.mode == "navigate"))
    return fmt::format("a {} request is refused: only the dashboard's own pages may ask", request.site);
  return std::nullopt;
}

}  // namespace abl::access
