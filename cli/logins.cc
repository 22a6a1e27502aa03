// SPDX-License-Identifier: Apache-2.0
#include "cli/logins.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "access/token.h"
#include "base/error.h"
#include "base/file.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

nlohmann::ordered_json read_logins() {
  const fs::path file = logins_file();
  if (!fs::exists(file)) return nlohmann::ordered_json::object();
  access::expect_private(file, "the file of logins");
  auto json = nlohmann::ordered_json::parse(read_file(file), nullptr, false);
  if (!json.is_object())
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: holds no logins: remove it and log in again", file.string())};
  return json;
}

}  // namespace

fs::path logins_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const fs::path folder = config && *config ? fs::path{config} : fs::path{home ? home : "."} / ".config";
  return folder / "ablate" / "logins.json";
}

access::ClientAccess access_to(const std::string& address) {
  if (address.starts_with("unix:")) return {};
  const auto logins = read_logins();
  const auto known = logins.find(address);
  if (known == logins.end() || !known->is_object()) return {};
  return {.tls = true, .authorities = known->value("ca", ""), .token = known->value("token", "")};
}

void keep_login(const std::string& address, const access::ClientAccess& login) {
  auto logins = read_logins();
  logins[address] = {{"ca", login.authorities}, {"token", login.token}};
  access::write_secret(logins_file(), logins.dump(2) + "\n");
}

}  // namespace abl::cli
