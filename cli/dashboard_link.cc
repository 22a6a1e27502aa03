// SPDX-License-Identifier: Apache-2.0
#include "cli/dashboard_link.h"

#include <fmt/format.h>

#include "access/listen_address.h"
#include "base/error.h"

namespace abl::cli {

std::string dashboard_at(const std::string& address, const std::string& listens) {
  const auto port = listens.rfind(':'), scheme = listens.find("://");
  if (port == std::string::npos || scheme == std::string::npos || port <= scheme) return {};
  const std::string host = listens.substr(scheme + 3, port - scheme - 3);
  const bool is_here = address.starts_with("unix:");
  const std::string reached = is_here ? "localhost" : address.substr(0, address.rfind(':'));
  const std::string bare =
      reached.starts_with('[') && reached.ends_with(']') ? reached.substr(1, reached.size() - 2) : reached;
  if ((host == "127.0.0.1" || host == "[::1]") && !access::is_loopback(bare)) return {};
  const bool anywhere = host == "0.0.0.0" || host == "[::]";
  return anywhere ? listens.substr(0, scheme + 3) + reached + listens.substr(port) : listens;
}

void print_dashboard_link(const Context& context, Client& client, const std::string& sweep) {
  std::string url;
  try {
    const auto caller = client.call(&ablate::v1::Access::Stub::WhoAmI, ablate::v1::WhoAmIRequest{});
    url = dashboard_at(client.address(), caller.dashboard());
  } catch (const Error&) {  // the command itself has succeeded: it needs no link
  }
  if (!url.empty()) context.out.line(fmt::format("dashboard: {}sweeps/{}", url, sweep));
}

}  // namespace abl::cli
