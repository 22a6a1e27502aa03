// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "access/token.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/logins.h"

namespace abl::cli {
namespace {

/// By which its admin knows it; empty: what was kept is no token.
std::string id_of(const std::string& token) {
  try {
    return access::Token::parse(token).id();
  } catch (const Error&) {
    return {};
  }
}

Run declare_logout(CLI::App& app, Context& context) {
  auto address = std::make_shared<std::string>();
  app.add_option("URL", *address, "The scheduler: https://HOST:PORT")->required()->type_name("");
  add_json(app, context);
  return [&context, address]() -> int {
    const std::string scheduler = login_address(*address);
    const std::string token = id_of(forget_login(scheduler));
    if (context.json)
      context.out.line(nlohmann::ordered_json{{"scheduler", scheduler}, {"token", token}}.dump());
    else
      context.out.line(
          fmt::format("logged out at {}; the token is good until it expires or an admin runs "
                      "'ablate token revoke {}'",
                      scheduler, token));
    return kExitOk;
  };
}

}  // namespace

extern const Command kLogoutCommand{
    .place = 173,
    .name = "logout",
    .summary = "Forget the token for a scheduler on another machine",
    .example = "ablate logout https://gpu-head:7071",
    .success = "it is forgotten",
    .declare = declare_logout,
};

}  // namespace abl::cli
