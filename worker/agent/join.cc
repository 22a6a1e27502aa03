// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/join.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "ablate/v1/access.grpc.pb.h"
#include "access/reach.h"
#include "access/token.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace abl::agent {
namespace {

namespace fs = std::filesystem;
using access::Token;

constexpr std::chrono::seconds kJoinPatience{15};
constexpr std::chrono::seconds kRestartPatience{60};  // with a scheduler that is started again just now
constexpr std::chrono::seconds kAskAgain{2};

/// What passes where a scheduler comes back.
bool may_pass(access::Trouble::Kind kind) {
  using Kind = access::Trouble::Kind;
  return kind == Kind::kNone || kind == Kind::kRefused || kind == Kind::kUnreachable ||
         kind == Kind::kSilent || kind == Kind::kClosed;
}

/// There is no scheduler just now: it may be asked again.
class Away : public Error {
 public:
  using Error::Error;
};

/// The token that it made for itself; kept before it is sent, so that an answer that is lost costs nothing.
Token own_token(const fs::path& file) {
  if (fs::exists(file)) return access::read_token(file, "the worker's token");
  Token token = Token::make();
  access::write_secret(file, token.text() + "\n");
  return token;
}

void join(const JoinOptions& options, access::ClientAccess access, const Token& own) {
  access.token = access::read_token(options.join_token, "--join-token-file").text();
  const auto stub = ablate::v1::Access::NewStub(
      grpc::CreateChannel(options.scheduler, access::channel_credentials(access)));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kJoinPatience);
  ablate::v1::JoinRequest request;
  request.set_worker(options.name);
  request.set_id(own.id());
  request.set_sha256(own.digest());
  ablate::v1::TokenInfo info;
  const grpc::Status status = stub->Join(&context, request, &info);
  if (status.ok()) return;
  const auto code = static_cast<Code>(status.error_code());
  if (code == Code::kUnavailable)
    if (const access::Trouble trouble = access::look_for_trouble(options.scheduler, access);
        !trouble.text.empty()) {
      const std::string text = fmt::format("cannot join: {}", trouble.text);
      if (may_pass(trouble.kind)) throw Away{code, text};
      throw Error{trouble.kind == access::Trouble::Kind::kAddress ? Code::kInvalidArgument : code, text};
    }
  if (code == Code::kUnavailable)
    throw Away{code, fmt::format("cannot join: no scheduler answers at {}", options.scheduler)};
  const std::string text =
      fmt::format("cannot join the fleet at {}: {}", options.scheduler, status.error_message());
  if (code == Code::kDeadlineExceeded || code == Code::kCancelled) throw Away{code, text};
  throw Error{code, text};
}

/// Until it has joined; `sent`: where its own token is kept until it is known to be good.
void join_patiently(const JoinOptions& options, const access::ClientAccess& access, const fs::path& sent) {
  const auto begun = std::chrono::steady_clock::now();
  bool said = false, renewed = false;
  for (;;) {
    try {
      return join(options, access, own_token(sent));
    } catch (const Away& error) {
      if (std::chrono::steady_clock::now() - begun >= kRestartPatience) throw;
      if (!std::exchange(said, true)) log_warning("{}; trying for a minute", error.what());
      if (!options.wait || !options.wait(kAskAgain)) throw;
    } catch (const Error& error) {
      // its answer was lost, and it has been revoked since: what it made then is good for nothing any more
      if (error.code() != Code::kAlreadyExists || std::exchange(renewed, true)) throw;
      fs::remove(sent);
    }
  }
}

}  // namespace

access::ClientAccess join_fleet(const JoinOptions& options) {
  if (options.ca.empty()) {
    if (!options.join_token.empty())
      throw Error{Code::kInvalidArgument, "--join-token-file without --ca: a token goes over TLS alone"};
    if (options.own.given())
      throw Error{Code::kInvalidArgument, "--certificate without --ca: it is shown over TLS alone"};
    return {};
  }
  if (options.scheduler.starts_with("unix:"))
    throw Error{Code::kInvalidArgument,
                "--ca with a Unix socket: leave it out, or pass --scheduler HOST:PORT"};
  access::ClientAccess access{.tls = true, .own = options.own};
  if (options.own.given()) access::read_client_pem(options.own, SystemClock{}.now());
  if (options.ca != "system") access.authorities = access::read_authorities(options.ca);
  const fs::path kept = options.home / "token", sent = options.home / "token.joining";
  if (!fs::exists(kept)) {
    if (options.join_token.empty())
      throw Error{
          Code::kUnauthenticated,
          fmt::format("no token in {}: pass --join-token-file with one that an admin makes by 'ablate token "
                      "create --role join'",
                      options.home.string())};
    join_patiently(options, access, sent);
    fs::rename(sent, kept);
    log_info("joined {}; token saved in {}", options.scheduler, kept.string());
  }
  access.token = access::read_token(kept, "the worker's token").text();
  return access;
}

}  // namespace abl::agent
