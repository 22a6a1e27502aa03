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

Run declare_init_fleet(CLI::App& app, Context& context) {
  auto names = std::make_shared<std::vector<std::string>>();
  app.add_option(
         "--name", *names,
         "By which other machines reach this one: host names and IP addresses, with commas between them")
      ->required()
      ->delimiter(',')
      ->type_name("HOST");
  add_home(app, context);
  add_json(app, context);
  app.add_option("--store", context.store_flag, "The scheduler's results file [the home's]")
      ->type_name("FILE");
  return [&context, names]() -> int {
    const fs::path fleet = context.home() / "fleet";
    const auto say = [&](bool made, const std::string& first) {
      if (context.json)
        context.out.line(nlohmann::ordered_json{{"folder", fleet.string()},
                                                {"made", made},
                                                {"names", *names},
                                                {"store", context.store().string()}}
                             .dump());
      else
        context.out.write(first + "\n" + (made ? next_steps(context, fleet, names->front()) : ""));
      return kExitOk;
    };
    if (fs::exists(fleet))
      return say(false, fmt::format("{} is there already: nothing was changed", fleet.string()));
    const Time now = SystemClock{}.now();
    const access::Certificates certificates = access::make_certificates(*names, now);
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
    return say(
        true,
        fmt::format("made {}: an authority of this fleet's own, a certificate for {}, an admin token and "
                    "a join token\n",
                    fleet.string(), fmt::join(*names, ", ")));
  };
}

}  // namespace

extern const Command kInitFleetCommand{
    .place = 171,
    .name = "init-fleet",
    .summary = "Make certificates and first tokens, for a scheduler that other machines reach",
    .example = "ablate init-fleet --name gpu-head.example.org,10.0.0.5",
    .success = "made, or there already",
    .declare = declare_init_fleet,
};

}  // namespace abl::cli
