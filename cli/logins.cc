// SPDX-License-Identifier: Apache-2.0
#include "cli/logins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

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
  return {.tls = true,
          .authorities = known->value("ca", ""),
          .token = known->value("token", ""),
          .own = {.certificate = known->value("certificate", ""), .key = known->value("key", "")}};
}

void keep_login(const std::string& address, const access::ClientAccess& login) {
  auto logins = read_logins();
  logins[address] = {{"ca", login.authorities}, {"token", login.token}};
  if (login.own.given()) {  // where they are, for they are renewed
    logins[address]["certificate"] = fs::absolute(login.own.certificate).string();
    logins[address]["key"] = fs::absolute(login.own.key).string();
  }
  access::write_secret(logins_file(), logins.dump(2) + "\n");
}

std::string forget_login(const std::string& address) {
  auto logins = read_logins();
  const auto known = logins.find(address);
  if (known == logins.end()) {
    std::vector<std::string> names;
    for (const auto& [name, ignored] : logins.items()) names.push_back(name);
    throw Error{Code::kNotFound,
                fmt::format("no login at {}: {}", address,
                            names.empty() ? "there is none"
                                          : fmt::format("logged in at {}", fmt::join(names, ", ")))};
  }
  std::string token = known->is_object() ? known->value("token", "") : "";
  logins.erase(known);
  access::write_secret(logins_file(), logins.dump(2) + "\n");
  return token;
}

std::string login_address(const std::string& given) {
  const auto refuse = [](const std::string& why) {
    throw Error{Code::kInvalidArgument, why + "; expected https://HOST:PORT or HOST:PORT"};
  };
  std::string address = given;
  if (address.find('@') != std::string::npos)  // first, and without what may be a secret
    refuse("unsupported URL: it has a user or a token in it");
  if (const auto scheme = address.find("://"); scheme != std::string::npos) {
    if (address.substr(0, scheme) != "https")
      refuse(fmt::format("unsupported URL '{}': a token goes over TLS alone", given));
    address.erase(0, scheme + 3);
  }
  while (address.ends_with('/')) address.pop_back();
  const auto colon = address.rfind(':');
  const bool has_port = colon != std::string::npos && colon > 0 && colon + 1 < address.size() &&
                        address.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!has_port || address.starts_with("unix:") || address.find('/') != std::string::npos)
    refuse(fmt::format("invalid address '{}'", given));
  return address;
}

}  // namespace abl::cli
