// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "access/certificates.h"
#include "access/token.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/store_report.h"
#include "storage/token_store.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using access::Token;
using storage::Role;

constexpr auto kAdminLifetime = 24h * 365, kJoinLifetime = 24h;

storage::TokenDigest record_of(const Token& token, Role role, const std::string& name, Time expires) {
  return {
      .record = {.id = token.id(), .role = role, .name = name, .made_by = "init-fleet", .expires = expires},
      .sha256 = token.digest()};
}

/// What to type next, on each machine.
std::string next_steps(const Context& context, const fs::path& fleet, const std::string& host) {
  return fmt::format(
      R"(start the scheduler:
  ablate-scheduler --store {store} --listen unix:{socket} --listen 0.0.0.0:7071 --tls-certificate {fleet}/server.crt --tls-key {fleet}/server.key --http-listen 0.0.0.0:8571
on a laptop, with ca.crt and admin.token from that folder:
  ablate login https://{host}:7071 --ca ca.crt < admin.token
on a worker, with ca.crt and join.token (good once, for a day; 'ablate token create --role join' makes more):
  ablate-worker --scheduler {host}:7071 --ca ca.crt --join-token-file join.token
a token for each other person, who signs in with it at https://{host}:8571/ as well:
  ablate token create --role submitter --name ada --out ada.token
ca.key signs certificates of this fleet: keep it off the network
)",
      fmt::arg("store", context.store().string()), fmt::arg("socket", context.socket().string()),
      fmt::arg("fleet", fleet.string()), fmt::arg("host", host));
}

struct InitFleetFlags {
  std::vector<std::string> names, clients;
  bool renew = false;
};

/// A file of the fleet's folder. Throws: Error that names it.
std::string read_of_fleet(const fs::path& file) {
  if (std::error_code unknown; !fs::exists(file, unknown))
    throw Error{
        Code::kNotFound,
        fmt::format("{}: no such file; expected the authority that 'ablate init-fleet' made", file.string())};
  return read_file(file);
}

access::Signed authority_in(const fs::path& fleet) {
  access::Signed authority{.certificate = read_of_fleet(fleet / "ca.crt"),
                           .key = read_of_fleet(fleet / "ca.key")};
  access::expect_private(fleet / "ca.key", "the fleet's key");
  return authority;
}

Time end_of(const std::string& pem) {
  const auto terms = access::terms_of(pem);
  return terms.empty() ? Time{} : terms.front().ends;
}

/// Another certificate for the server by the same authority, in the place of the one before: a scheduler that
/// runs takes it over, and what clients have stays good.
nlohmann::ordered_json renew_server(const fs::path& fleet, const std::vector<std::string>& asked,
                                    std::string& said) {
  const Time now = SystemClock{}.now();
  const access::Signed authority = authority_in(fleet);
  const fs::path certificate = fleet / "server.crt", key = fleet / "server.key";
  std::vector<std::string> names = asked;
  if (names.empty()) names = access::names_in(read_of_fleet(certificate));
  const access::Signed made = access::make_server_certificate(authority, names, now);
  access::write_pair({.certificate = certificate, .key = key}, made);
  const Time end = end_of(made.certificate), last = end_of(authority.certificate);
  said += fmt::format(
      "renewed {}: for {}, good until {}; a scheduler that runs takes it over within some seconds\n"
      "the authority, ca.crt, is good until {}{}\n",
      certificate.string(), fmt::join(access::names_in(made.certificate), ", "), access::day_of(end),
      access::day_of(last),
      last - now < access::kTellBeforeEnd ? ": make a new fleet before, and give everybody its ca.crt" : "");
  return {{"certificate", certificate.string()},
          {"names", access::names_in(made.certificate)},
          {"ends", access::day_of(end)},
          {"authority_ends", access::day_of(last)}};
}

/// Certificates by which workers and people show a scheduler with --client-ca who they are.
nlohmann::ordered_json make_clients(const fs::path& fleet, const std::vector<std::string>& clients,
                                    std::string& said) {
  const Time now = SystemClock{}.now();
  const access::Signed authority = authority_in(fleet);
  for (const std::string& name : clients) {
    constexpr std::size_t kLongest = 64;
    if (name.empty() || name.size() > kLongest || name.front() == '.' ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") !=
            std::string::npos)
      throw Error{Code::kInvalidArgument,
                  fmt::format("--client '{}': expected a name of letters, digits, '.', '-' and '_'", name)};
  }
  const fs::path folder = fleet / "clients";
  make_folder(folder);
  auto list = nlohmann::ordered_json::array();
  for (const std::string& name : clients) {
    const access::Signed made = access::make_client_certificate(authority, name, now);
    const fs::path certificate = folder / (name + ".crt"), key = folder / (name + ".key");
    access::write_pair({.certificate = certificate, .key = key}, made);
    const std::string end = access::day_of(end_of(made.certificate));
    said += fmt::format(
        "made {} with {}, good until {}: for --certificate and --key there, where the scheduler "
        "has --client-ca {}\n",
        certificate.string(), key.filename().string(), end, (fleet / "ca.crt").string());
    list.push_back(
        {{"name", name}, {"certificate", certificate.string()}, {"key", key.string()}, {"ends", end}});
  }
  return list;
}

/// Of a fleet that is there: what is asked for, and until when everything is good.
int change_fleet(const Context& context, const InitFleetFlags& flags, const fs::path& fleet) {
  std::string said;
  nlohmann::ordered_json json{{"folder", fleet.string()}, {"made", false}};
  if (flags.renew) json["renewed"] = renew_server(fleet, flags.names, said);
  if (!flags.clients.empty()) json["clients"] = make_clients(fleet, flags.clients, said);
  if (context.json)
    context.out.line(json.dump());
  else
    context.out.write(said);
  return kExitOk;
}

void make_fleet(const Context& context, const std::vector<std::string>& names, const fs::path& fleet) {
  const Time now = SystemClock{}.now();
  const access::Certificates certificates = access::make_certificates(names, now);
  const Token admin = Token::make(), join = Token::make();
  make_folder(context.store().parent_path());
  const FileLock lock = lock_store(context, context.store());
  const fs::path unfinished = fleet.string() + ".unfinished";  // of one that was ended halfway, too
  fs::remove_all(unfinished);
  make_folder(unfinished);
  access::write_secret(unfinished / "ca.crt", certificates.authority);
  access::write_secret(unfinished / "ca.key", certificates.authority_key);
  access::write_secret(unfinished / "server.crt", certificates.certificate);
  access::write_secret(unfinished / "server.key", certificates.key);
  access::write_secret(unfinished / "admin.token", admin.text() + "\n");
  access::write_secret(unfinished / "join.token", join.text() + "\n");
  {
    storage::Database db{context.store(), storage::Database::Mode::kWrite};
    storage::Transaction transaction{db, storage::Transaction::kImmediate};
    storage::TokenStore tokens{db};
    tokens.add(record_of(admin, Role::kAdmin, "admin", now + kAdminLifetime), now);
    tokens.add(record_of(join, Role::kJoin, "a worker", now + kJoinLifetime), now);
    transaction.commit();
  }
  fs::rename(unfinished, fleet);
}

/// "its certificate until 2028-11-23, its authority until 2036-11-21".
std::string ends_text(const fs::path& fleet) {
  try {
    return fmt::format("its certificate is good until {}, its authority until {}",
                       access::day_of(end_of(read_of_fleet(fleet / "server.crt"))),
                       access::day_of(end_of(read_of_fleet(fleet / "ca.crt"))));
  } catch (const Error& error) {
    return error.what();
  }
}

Run declare_init_fleet(CLI::App& app, Context& context) {
  auto flags = std::make_shared<InitFleetFlags>();
  app.add_option(
         "--name", flags->names,
         "By which other machines reach this one: host names and IP addresses, with commas between them")
      ->delimiter(',')
      ->type_name("HOST");
  app.add_flag(
      "--renew", flags->renew,
      "Of a fleet that is there: a new certificate for the server by the same authority, for the names "
      "that it has, or for those of --name");
  app.add_option(
         "--client", flags->clients,
         "Of a fleet that is there: a certificate for a worker or a person of that name, for a scheduler "
         "with --client-ca; several with commas between them")
      ->delimiter(',')
      ->type_name("NAME");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "The scheduler's results file [the home's]")
      ->type_name("FILE");
  return [&context, flags]() -> int {
    const fs::path fleet = context.home() / "fleet";
    const bool is_there = fs::exists(fleet);
    if ((flags->renew || !flags->clients.empty()) && !is_there)
      throw Error{Code::kNotFound,
                  fmt::format("there is no {}: 'ablate init-fleet --name HOST' makes it; for "
                              "another place pass --home",
                              fleet.string())};
    if (flags->renew || !flags->clients.empty()) return change_fleet(context, *flags, fleet);
    if (flags->names.empty())
      throw Error{Code::kInvalidArgument,
                  "init-fleet: --name is missing: by which host name do other machines reach this one?"};
    if (!is_there) make_fleet(context, flags->names, fleet);
    if (context.json) {
      context.out.line(nlohmann::ordered_json{{"folder", fleet.string()},
                                              {"made", !is_there},
                                              {"names", flags->names},
                                              {"store", context.store().string()}}
                           .dump());
      return kExitOk;
    }
    context.out.line(
        is_there
            ? fmt::format("{} is there already: nothing was changed ('--renew' makes a new certificate)",
                          fleet.string())
            : fmt::format("made {}: an authority of this fleet's own, a certificate for {}, an admin token "
                          "and a join token",
                          fleet.string(), fmt::join(flags->names, ", ")));
    context.out.line(ends_text(fleet));
    if (!is_there) context.out.write("\n" + next_steps(context, fleet, flags->names.front()));
    return kExitOk;
  };
}

}  // namespace

extern const Command kInitFleetCommand{
    .place = 171,
    .name = "init-fleet",
    .summary = "Make certificates and first tokens, for a scheduler that other machines reach",
    .example =
        "ablate init-fleet --name gpu-head.example.org,10.0.0.5\n"
        "ablate init-fleet --renew\n"
        "ablate init-fleet --client gpu-01,ada",
    .success = "made, renewed, or there already",
    .declare = declare_init_fleet,
};

}  // namespace abl::cli
