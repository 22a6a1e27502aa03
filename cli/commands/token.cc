// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "access/token.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/new_file.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/words.h"
#include "printing/grid.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;

struct TokenFlags {
  std::string what, id, role, name, expires, out;
};

/// "90d", "24h", "30m"; nothing for "never".
std::optional<std::chrono::seconds> lifetime_of(const std::string& text) {
  if (text == "never") return std::nullopt;
  const auto lifetime = parse_duration(text);
  if (!lifetime || *lifetime < std::chrono::minutes{1})
    throw Error{Code::kInvalidArgument, fmt::format("--expires '{}': expected 90d, 24h, 30m or never", text)};
  return lifetime;
}

TokenRole role_of(const std::string& word) {
  if (word == "viewer") return TOKEN_ROLE_VIEWER;
  if (word == "submitter") return TOKEN_ROLE_SUBMITTER;
  return word == "admin" ? TOKEN_ROLE_ADMIN : TOKEN_ROLE_JOIN;
}

int create(Context& context, const TokenFlags& flags) {
  if (flags.role.empty())
    throw Error{Code::kInvalidArgument, "token create: --role is missing: viewer, submitter, admin or join"};
  const bool join = flags.role == "join";
  if (flags.name.empty() && !join)
    throw Error{Code::kInvalidArgument, "token create: --name is missing: whom is the token for?"};
  const auto lifetime = lifetime_of(!flags.expires.empty() ? flags.expires : join ? "24h" : "90d");
  const access::Token token = access::Token::make();
  CreateTokenRequest request;
  request.set_id(token.id());
  request.set_sha256(token.digest());
  request.set_role(role_of(flags.role));
  request.set_name(flags.name.empty() ? "a worker" : flags.name);
  if (lifetime)
    request.mutable_expires()->set_seconds(
        std::chrono::duration_cast<std::chrono::seconds>((SystemClock{}.now() + *lifetime).time_since_epoch())
            .count());
  Client client{context};
  if (std::error_code unknown; !flags.out.empty() && std::filesystem::exists(flags.out, unknown))
    throw Error{Code::kInvalidArgument,
                fmt::format("--out {}: is there already; a token gets a file of its own", flags.out)};
  std::optional<NewFile> file;  // written first, for that may fail; there once the scheduler knows the token
  if (!flags.out.empty()) {
    file.emplace(flags.out, NewFile::Options{.ending = unfinished_ending(), .mode = 0600});
    file->append(token.text() + "\n");
  }
  client.call(&Access::Stub::CreateToken, request);
  if (file) file->publish();
  if (context.json) {
    nlohmann::ordered_json json{{"id", token.id()}, {"role", flags.role}, {"name", request.name()}};
    if (flags.out.empty())
      json["token"] = token.text();
    else
      json["file"] = flags.out;
    context.out.line(json.dump());
  } else if (flags.out.empty()) {
    context.out.line(token.text());
    context.note("it is shown this once, and stored nowhere");
  } else {
    context.out.line(
        fmt::format("token {} for {} ({}) is in {}", token.id(), request.name(), flags.role, flags.out));
  }
  return kExitOk;
}

std::string state_text(const TokenInfo& token, const Terminal& terminal) {
  if (token.why_not().empty()) return terminal.paint(Style::kGreen, "good");
  return terminal.paint(Style::kDim, token.has_revoked() ? "revoked" : token.has_used() ? "used" : "expired");
}

std::string tokens_text(const ListTokensResponse& list, const Terminal& terminal) {
  if (list.tokens().empty())
    return "no tokens yet: 'ablate token create --role submitter --name ada' makes one\n";
  const Time now = SystemClock{}.now();
  printing::Grid grid{
      {{"id"}, {"role"}, {"name"}, {"state"}, {"made by"}, {"made", true}, {"seen", true}, {"expires"}}};
  for (const TokenInfo& token : list.tokens())
    grid.add({token.id(), role_text(token.role()), token.name(), state_text(token, terminal), token.made_by(),
              format_age(token.created(), now), token.has_seen() ? format_age(token.seen(), now) : "never",
              token.has_expires() ? date_text(token.expires()) : "never"});
  return grid.text(&terminal);
}

Run declare_token(CLI::App& app, Context& context) {
  auto flags = std::make_shared<TokenFlags>();
  add_choice(app, "WHAT", flags->what, {"create", "ls", "revoke"}, "Make one, list all, or end one at once",
             {{"list", "ls"}, {"new", "create"}, {"add", "create"}, {"rm", "revoke"}, {"delete", "revoke"}})
      ->required();
  app.add_option("ID", flags->id, "revoke: its public part, as 'ablate token ls' shows it")->type_name("");
  add_choice(
      app, "--role", flags->role, {"viewer", "submitter", "admin", "join"},
      "create: viewer reads; submitter also submits, extends and cancels; admin also removes sweeps, drains "
      "workers and makes tokens; join lets one worker in");
  app.add_option("--name", flags->name, "create: of its holder")->type_name("NAME");
  app.add_option("--expires", flags->expires, "create: after 90d, 24h, 30m, or never [90d; join: 24h]")
      ->type_name("TIME");
  app.add_option("--out", flags->out, "create: write it there, for you alone, and do not show it")
      ->type_name("FILE");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    if (flags->what == "create") return create(context, *flags);
    if (flags->what == "revoke" && flags->id.empty())
      throw Error{Code::kInvalidArgument, "token revoke: which? Expected: ablate token revoke ID"};
    Client client{context};
    if (flags->what == "revoke") {
      RevokeTokenRequest request;
      request.set_id(flags->id);
      const TokenInfo token = client.call(&Access::Stub::RevokeToken, request);
      const bool own =
          !client.access().token.empty() && access::Token::parse(client.access().token).id() == token.id();
      if (own)
        context.note(
            fmt::format("it is the token that you are logged in with: nothing more can be done with it; "
                        "'ablate login {}' takes another",
                        client.address()));
      if (context.json)
        context.print_json(token);
      else
        context.out.line(fmt::format("token {} of {} is revoked, and what it had under way has ended",
                                     token.id(), shown(token, context.out).name()));
      return kExitOk;
    }
    const auto list = client.call(&Access::Stub::ListTokens, ListTokensRequest{});
    if (context.json)
      context.print_json(list);
    else
      context.out.write(tokens_text(shown(list, context.out), context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kTokenCommand{
    .place = 174,
    .name = "token",
    .summary = "Make, list and revoke tokens of people and workers",
    .example =
        "ablate token create --role submitter --name ada --expires 90d --out ada.token\n"
        "ablate token create --role join --out join.token\n"
        "ablate token revoke 3f2a90c1d4e5",
    .declare = declare_token,
};

}  // namespace abl::cli
