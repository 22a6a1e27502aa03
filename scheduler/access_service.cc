// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "base/enum_names.h"
#include "base/error.h"
#include "scheduler/access_control.h"
#include "scheduler/slow_answer.h"
#include "scheduler/status.h"
#include "views/convert.h"

namespace abl::scheduler {
namespace {

using storage::Role;
using storage::TokenDigest;
using storage::TokenStore;

ablate::v1::TokenRole to_proto(Role role) {
  switch (role) {
    case Role::kViewer:
      return ablate::v1::TOKEN_ROLE_VIEWER;
    case Role::kSubmitter:
      return ablate::v1::TOKEN_ROLE_SUBMITTER;
    case Role::kAdmin:
      return ablate::v1::TOKEN_ROLE_ADMIN;
    case Role::kWorker:
      return ablate::v1::TOKEN_ROLE_WORKER;
    case Role::kJoin:
      return ablate::v1::TOKEN_ROLE_JOIN;
  }
  return ablate::v1::TOKEN_ROLE_UNSPECIFIED;
}

std::optional<Role> from_proto(ablate::v1::TokenRole role) {
  for (const Role known : values_of<Role>())
    if (to_proto(known) == role) return known;
  return std::nullopt;
}

ablate::v1::TokenInfo to_proto(const storage::TokenRecord& token, Time now) {
  ablate::v1::TokenInfo info;
  info.set_id(token.id);
  info.set_role(to_proto(token.role));
  info.set_name(token.name);
  info.set_made_by(token.made_by);
  *info.mutable_created() = views::to_proto(token.created);
  if (token.expires) *info.mutable_expires() = views::to_proto(*token.expires);
  if (token.revoked) *info.mutable_revoked() = views::to_proto(*token.revoked);
  if (token.used) *info.mutable_used() = views::to_proto(*token.used);
  if (token.seen) *info.mutable_seen() = views::to_proto(*token.seen);
  info.set_why_not(token.why_not(now));
  return info;
}

/// Answers with what `work` makes of the request as a job of the writer, after its commit and after `then`.
template <class Response, class Work, class Then>
grpc::ServerUnaryReactor* after_commit(grpc::CallbackServerContext* context, storage::Writer& writer,
                                       Response* response, Work work, Then then) {
  auto* reactor = context->DefaultReactor();
  const grpc::Status posted = status_of([&] {
    writer.post([=](storage::Database& db) { *response = work(db); },
                [=](std::exception_ptr error) {
                  if (error) return reactor->Finish(to_status(error));
                  reactor->Finish(status_of([&] { then(); }));
                });
  });
  if (!posted.ok()) reactor->Finish(posted);
  return reactor;
}

template <class Work>
grpc::ServerUnaryReactor* at_once(grpc::CallbackServerContext* context, Work work) {
  auto* reactor = context->DefaultReactor();
  reactor->Finish(status_of(work));
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* AccessService::WhoAmI(Context* context, const ablate::v1::WhoAmIRequest*,
                                                ablate::v1::Caller* response) {
  return at_once(context, [&] {
    const Caller caller = control_.caller(*context);
    response->set_name(caller.name);
    response->set_role(to_proto(caller.role));
    response->set_dashboard(control_.dashboard());
    if (!caller.local()) response->mutable_token()->set_id(caller.token);
  });
}

grpc::ServerUnaryReactor* AccessService::CreateToken(Context* context,
                                                     const ablate::v1::CreateTokenRequest* request,
                                                     ablate::v1::TokenInfo* response) {
  const auto token = std::make_shared<TokenDigest>();
  const grpc::Status sound = status_of([&] {
    const auto role = from_proto(request->role());
    if (!role || *role == Role::kWorker)
      throw Error{Code::kInvalidArgument, "role: viewer, submitter, admin or join was expected"};
    token->record = {.id = request->id(),
                     .role = *role,
                     .name = request->name(),
                     .made_by = control_.caller(*context).name,
                     .created = clock_.now()};
    token->sha256 = request->sha256();
    if (request->has_expires())
      token->record.expires = Time{std::chrono::seconds{request->expires().seconds()}};
    if (*role == Role::kJoin && !request->has_expires())
      throw Error{Code::kInvalidArgument, "a join token has to expire"};
    if (token->record.expires && *token->record.expires <= clock_.now())
      throw Error{Code::kInvalidArgument, "the token would have expired already"};
  });
  if (!sound.ok())
    return at_once(context, [&] {
      throw Error{static_cast<Code>(sound.error_code()), sound.error_message()};
    });
  return after_commit(
      context, writer_, response,
      [token, now = clock_.now()](storage::Database& db) {
        TokenStore{db}.add(*token, now);
        return to_proto(token->record, now);
      },
      [this, token] { control_.follow_added(*token); });
}

grpc::ServerUnaryReactor* AccessService::ListTokens(Context*, const ablate::v1::ListTokensRequest*,
                                                    ablate::v1::ListTokensResponse* response) {
  return slow_answer(pool_, slow_, response, [now = clock_.now()](storage::Database& db) {
    ablate::v1::ListTokensResponse list;
    for (const storage::TokenRecord& token : TokenStore{db}.list()) *list.add_tokens() = to_proto(token, now);
    return list;
  });
}

grpc::ServerUnaryReactor* AccessService::RevokeToken(Context* context,
                                                     const ablate::v1::RevokeTokenRequest* request,
                                                     ablate::v1::TokenInfo* response) {
  return after_commit(
      context, writer_, response,
      [id = request->id(), now = clock_.now()](storage::Database& db) {
        return to_proto(TokenStore{db}.revoke(id, now), now);
      },
      [this, context, id = request->id()] { control_.follow_revoked(id, context); });
}

grpc::ServerUnaryReactor* AccessService::Join(Context* context, const ablate::v1::JoinRequest* request,
                                              ablate::v1::TokenInfo* response) {
  const auto worker = std::make_shared<TokenDigest>();
  const auto join = std::make_shared<std::string>();
  const grpc::Status sound = status_of([&] {
    *join = control_.caller(*context).token;
    if (join->empty())
      throw Error{Code::kFailedPrecondition,
                  "no token is needed here: start the worker without --join-token-file"};
    worker->record = {.id = request->id(),
                      .role = Role::kWorker,
                      .name = request->worker(),
                      .made_by = *join,
                      .created = clock_.now()};
    worker->sha256 = request->sha256();
  });
  if (!sound.ok())
    return at_once(context, [&] {
      throw Error{static_cast<Code>(sound.error_code()), sound.error_message()};
    });
  return after_commit(
      context, writer_, response,
      [worker, join, now = clock_.now()](storage::Database& db) {
        TokenStore{db}.join(*join, *worker, now);
        return to_proto(worker->record, now);
      },
      [this, worker, join] {
        control_.follow_used(*join);
        control_.follow_added(*worker);
      });
}

grpc::ServerUnaryReactor* AccessService::ListAudit(Context*, const ablate::v1::ListAuditRequest* request,
                                                   ablate::v1::ListAuditResponse* response) {
  constexpr std::uint32_t kUsual = 100, kMost = 10'000;
  const std::uint32_t most = std::min(request->most() == 0 ? kUsual : request->most(), kMost);
  constexpr auto kNewest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const storage::AuditFilter filter{
      .before = static_cast<std::int64_t>(std::min<std::uint64_t>(request->before(), kNewest)),
      .who = request->who(),
      .what = request->what()};
  auto read = [most, filter](storage::Database& db) {
    ablate::v1::ListAuditResponse list;
    for (const storage::AuditLine& line : TokenStore{db}.audit(most, filter)) {
      auto* message = list.add_lines();
      *message->mutable_time() = views::to_proto(line.time);
      message->set_token(line.token);
      message->set_who(line.who);
      message->set_what(line.what);
      message->set_target(line.target);
      message->set_outcome(line.outcome);
      message->set_key(static_cast<std::uint64_t>(line.key));
    }
    return list;
  };
  auto* reactor = new SlowAnswer<ablate::v1::ListAuditResponse, decltype(read)>(pool_, response, read);
  // A line is on its way to the writer when what it tells of is answered: who then asks finds it here.
  const auto begin = [this, reactor](std::exception_ptr) { reactor->start(slow_); };
  if (!status_of([&] { writer_.post([](storage::Database&) {}, begin); }).ok()) begin(nullptr);
  return reactor;
}

}  // namespace abl::scheduler
