// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/support/server_interceptor.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ablate/v1/access.grpc.pb.h"
#include "access/token.h"
#include "base/clock.h"
#include "scheduler/lane.h"
#include "storage/read_pool.h"
#include "storage/token_store.h"
#include "storage/writer.h"

namespace abl::scheduler {

/// What a method asks of its caller.
struct MethodRule {
  storage::Role least;   ///< of kViewer to kAdmin that or more; otherwise that alone
  bool changes = false;  ///< it is audited
};
/// "/ablate.v1.Sweeps/Submit" -> its rule; nothing of a method that is not in the table: nobody may call it.
std::optional<MethodRule> rule_of(std::string_view method);

/// Who calls.
struct Caller {
  std::string token;  ///< its public part; empty: the machine's owner, or anybody where nothing is asked for
  std::string name{"local"};
  storage::Role role = storage::Role::kAdmin;
  std::optional<Time> expires{};
  bool from_dashboard = false;
  bool local() const { return token.empty(); }
};

/// Who may call what. Calls over TLS show a token, which is looked up in a copy in memory that every change
/// follows at once: a call whose token is revoked or expires is cancelled. Others are the owner's. What
/// changes something is written down, and what was refused to somebody who is known.
/// Thread: all methods, from any.
class AccessControl {
 public:
  /// Reads the tokens that there are.
  AccessControl(storage::Writer& writer, const Clock& clock);
  ~AccessControl();

  /// For credentials: refuses a call before any service hears of it.
  std::shared_ptr<grpc::AuthMetadataProcessor> processor();
  /// For the server: knows which calls are under way, and writes down what they changed.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> interceptors();

  /// Of a call that was let in. Throws: Error{kUnauthenticated} where its token has ended since.
  Caller caller(const grpc::ServerContextBase& context) const;

  bool allows(const Caller& caller, std::string_view method) const;
  /// Why that caller may not call this method; OK: it may. A refusal is audited.
  grpc::Status check(const Caller& caller, std::string_view method);
  /// Who acts from the dashboard, by the public part of their token; empty: this machine's user.
  /// Throws: Error{kUnauthenticated} where the token has ended.
  Caller of_dashboard(const std::string& token) const;
  /// Metadata of a call that the dashboard makes for somebody over the channel within this process: `caller`
  /// reads from it for whom. It has a secret of this process.
  std::pair<std::string, std::string> pass_for(const std::string& token) const;

  /// Whose token this is, for what else than gRPC lets people in: with a role that reads.
  /// Throws: Error{kUnauthenticated, kPermissionDenied} with nothing of the token in it.
  Caller reader_with(std::string_view token);
  /// Why a token that was recognised is good for nothing any more; empty: it is good.
  std::string why_over(const std::string& id) const;
  /// Calls `tell`, on any thread, when a token has ended; nothing: nobody any more.
  void when_one_ends(std::function<void()> tell) {
    const std::lock_guard lock{mutex_};
    one_ended_ = std::move(tell);
  }
  /// Writes down what somebody did, or why not. `method`: "/ablate.v1.Sweeps/Submit", or a word.
  void note(const Caller& caller, std::string_view method, const std::string& target,
            const grpc::Status& outcome);

  /// Where the dashboard listens, for those who log in. Before anything is served.
  void set_dashboard(std::string url) { dashboard_ = std::move(url); }
  const std::string& dashboard() const { return dashboard_; }

  /// Ends the calls of tokens that have expired, and stores which were used. To be called every second or so.
  void tick();

  // What the store has done is to be done here, before it is answered.
  void follow_added(const storage::TokenDigest& token);
  void follow_used(const std::string& id);
  /// `but`: the call that asked for it goes on to its answer, whosever token it was.
  void follow_revoked(const std::string& id, const grpc::ServerContextBase* but = nullptr);

  /// A token with which one worker of the fleet may join until then, for whoever starts it. Waits until it is
  /// stored: not to be called on the coordinator's thread. Throws: as TokenStore::add.
  access::Token make_join_token(const std::string& name, Time expires);
  /// The worker that came with a join token; nothing: none yet. Waits likewise.
  std::optional<std::string> worker_of(const std::string& id);
  /// That worker has ended, or will not come: its tokens are revoked. Waits likewise.
  void end_join(const std::string& id);

 private:
  class Processor;
  class Notes;
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  /// The caller, or why not.
  grpc::Status admit(const Metadata& metadata, std::string_view method);
  grpc::Status recognise(std::string_view authorization, Caller& caller) const;
  void begin(const std::string& token, grpc::ServerContextBase* call);
  void end(const std::string& token, grpc::ServerContextBase* call);
  void cancel_calls(const std::string& token, const grpc::ServerContextBase* but = nullptr);
  void note_expiry();

  storage::Writer& writer_;
  const Clock& clock_;
  const std::string dashboard_secret_ = access::random_secret();
  std::function<void()> one_ended_;
  std::string dashboard_;
  mutable std::recursive_mutex mutex_;  // a call that is cancelled may end on the same thread
  std::map<std::string, storage::TokenDigest, std::less<>> tokens_;
  std::map<std::string, std::set<grpc::ServerContextBase*>, std::less<>> calls_;
  std::set<std::string> seen_;  // since it was last stored
  Time next_expiry_{Time::max()}, seen_stored_{};
  std::atomic<int> refusals_waiting_{0};  // lines that are not stored yet: bounded, whoever knocks how often
};

/// Tokens and the audit, over gRPC: changes are the writer's, lists come from the pool.
class AccessService final : public ablate::v1::Access::CallbackService {
 public:
  AccessService(storage::Writer& writer, storage::ReadPool& pool, const Clock& clock, AccessControl& control)
      : writer_{writer}, pool_{pool}, slow_{pool, 1}, clock_{clock}, control_{control} {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* WhoAmI(Context*, const ablate::v1::WhoAmIRequest*, ablate::v1::Caller*) override;
  Unary* CreateToken(Context*, const ablate::v1::CreateTokenRequest*, ablate::v1::TokenInfo*) override;
  Unary* ListTokens(Context*, const ablate::v1::ListTokensRequest*, ablate::v1::ListTokensResponse*) override;
  Unary* RevokeToken(Context*, const ablate::v1::RevokeTokenRequest*, ablate::v1::TokenInfo*) override;
  Unary* Join(Context*, const ablate::v1::JoinRequest*, ablate::v1::TokenInfo*) override;
  Unary* ListAudit(Context*, const ablate::v1::ListAuditRequest*, ablate::v1::ListAuditResponse*) override;

 private:
  storage::Writer& writer_;
  storage::ReadPool& pool_;
  Lane slow_;  // the lists: whoever asks for many at once leaves threads of the pool to others
  const Clock& clock_;
  AccessControl& control_;
};

}  // namespace abl::scheduler
