// SPDX-License-Identifier: Apache-2.0
#include "scheduler/access_control.h"

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "access/token.h"
#include "base/enum_names.h"
#include "base/error.h"
#include "base/log.h"
#include "scheduler/status.h"

namespace abl::scheduler {
namespace {

using storage::Role;
using storage::TokenDigest;
using storage::TokenStore;

constexpr auto kSeenEvery = std::chrono::minutes{1};
constexpr int kMostRefusalsWaiting = 100;
constexpr std::string_view kBearer = "Bearer ";
constexpr const char* kPass = "ablate-dashboard";

/// Whether who has `role` may call what asks for `least`.
bool may(Role role, Role least) {
  const bool ladder = least <= Role::kAdmin;
  return ladder ? role <= Role::kAdmin && role >= least : role == least;
}

/// "/ablate.v1.Sweeps/CancelSweep" -> "CancelSweep".
std::string_view short_name(std::string_view method) { return method.substr(method.rfind('/') + 1); }

/// Whom to ask for what a role may not do.
std::string why_not(const Caller& caller, Role least, std::string_view method) {
  if (caller.role == Role::kJoin)
    return "a join token is for a worker that joins: start 'ablate-worker --join-token-file' with it";
  if (least == Role::kJoin)
    return "this is not a join token: make one with 'ablate token create --role join'";
  if (least == Role::kWorker)
    return fmt::format("role {} may not run trials: a worker joins with --join-token-file",
                       name_of(caller.role));
  if (caller.role == Role::kWorker)
    return fmt::format("a worker's token is for its worker alone: {} needs role {}", short_name(method),
                       name_of(least));
  return fmt::format("role {} may not do this ({}): it needs role {}; ask an admin for such a token",
                     name_of(caller.role), short_name(method), name_of(least));
}

bool is_secured(const grpc::ServerContextBase& context) {
  const auto auth = context.auth_context();
  if (!auth) return false;
  const auto kinds = auth->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return std::ranges::any_of(kinds, [](const grpc::string_ref& kind) {
    return kind == GRPC_SSL_TRANSPORT_SECURITY_TYPE || kind == GRPC_TLS_TRANSPORT_SECURITY_TYPE;
  });
}

std::string_view view(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::string_view authorization_in(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  const auto found = metadata.find("authorization");
  return found == metadata.end() ? std::string_view{} : view(found->second);
}

/// Whether a request only asks what would change.
bool is_dry_run(const google::protobuf::Message& request) {
  const auto* field = request.GetDescriptor()->FindFieldByName("dry_run");
  return field && field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL &&
         request.GetReflection()->GetBool(request, field);
}

/// What a request is about: the sweep, worker, token or file that it names.
std::string target_of(const google::protobuf::Message& request) {
  const auto* descriptor = request.GetDescriptor();
  const auto* reflection = request.GetReflection();
  using Field = google::protobuf::FieldDescriptor;
  for (const char* name : {"sweep", "worker", "name", "id", "file"}) {
    const Field* field = descriptor->FindFieldByName(name);
    if (!field || field->is_repeated()) continue;
    if (field->cpp_type() == Field::CPPTYPE_STRING) return reflection->GetString(request, field);
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      const auto& inner = reflection->GetMessage(request, field);
      for (const char* part : {"path", "name"})
        if (const Field* text = inner.GetDescriptor()->FindFieldByName(part);
            text && text->cpp_type() == Field::CPPTYPE_STRING && !text->is_repeated())
          return inner.GetReflection()->GetString(inner, text);
    }
  }
  return {};
}

}  // namespace

std::optional<MethodRule> rule_of(std::string_view method) {
  static const std::map<std::string_view, MethodRule> kRules{
      {"/ablate.v1.Sweeps/Validate", {Role::kViewer}},
      {"/ablate.v1.Sweeps/Plan", {Role::kSubmitter}},  // it keeps what was measured for it
      {"/ablate.v1.Sweeps/Submit", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/ExtendSweep", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/ListSweeps", {Role::kViewer}},
      {"/ablate.v1.Sweeps/GetSweep", {Role::kViewer}},
      {"/ablate.v1.Sweeps/GetTable", {Role::kViewer}},
      {"/ablate.v1.Sweeps/WatchSweep", {Role::kViewer}},
      {"/ablate.v1.Sweeps/CancelSweep", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/PauseSweep", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/ResumeSweep", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/AdjustSweep", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/CancelTrial", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/RetrySweep", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/RemoveSweep", {Role::kAdmin, true}},
      {"/ablate.v1.Sweeps/RenameSweep", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/AnnotateSweep", {Role::kSubmitter, true}},
      {"/ablate.v1.Sweeps/GetProvenance", {Role::kViewer}},
      {"/ablate.v1.Sweeps/GetTuning", {Role::kViewer}},
      {"/ablate.v1.Sweeps/GetSweepText", {Role::kViewer}},
      {"/ablate.v1.Runs/ListRuns", {Role::kViewer}},
      {"/ablate.v1.Runs/GetRun", {Role::kViewer}},
      {"/ablate.v1.Runs/GetMetrics", {Role::kViewer}},
      {"/ablate.v1.Runs/TailLog", {Role::kViewer}},
      {"/ablate.v1.Runs/Export", {Role::kViewer}},
      {"/ablate.v1.Runs/Why", {Role::kViewer}},
      {"/ablate.v1.Runs/Compare", {Role::kViewer}},
      {"/ablate.v1.Runs/GetProbes", {Role::kViewer}},
      {"/ablate.v1.Runs/PutProbes", {Role::kSubmitter, true}},
      {"/ablate.v1.Workers/ListWorkers", {Role::kViewer}},
      {"/ablate.v1.Workers/DrainWorker", {Role::kAdmin, true}},
      {"/ablate.v1.Workers/GetFleet", {Role::kViewer}},
      {"/ablate.v1.Workers/PauseFleetQueue", {Role::kAdmin, true}},
      {"/ablate.v1.WorkerLink/Session", {Role::kWorker}},
      {"/ablate.v1.Depot/PutCheckpoint", {Role::kWorker}},
      {"/ablate.v1.Depot/Get", {Role::kWorker}},
      {"/ablate.v1.Depot/PutData", {Role::kSubmitter}},
      {"/ablate.v1.Depot/PushData", {Role::kSubmitter, true}},
      {"/ablate.v1.Depot/RemoveData", {Role::kAdmin, true}},
      {"/ablate.v1.Depot/ListData", {Role::kViewer}},
      {"/ablate.v1.Depot/RepinData", {Role::kAdmin, true}},
      {"/ablate.v1.Access/WhoAmI", {Role::kViewer}},
      {"/ablate.v1.Access/CreateToken", {Role::kAdmin, true}},
      {"/ablate.v1.Access/ListTokens", {Role::kAdmin}},
      {"/ablate.v1.Access/RevokeToken", {Role::kAdmin, true}},
      {"/ablate.v1.Access/Join", {Role::kJoin, true}},
      {"/ablate.v1.Access/ListAudit", {Role::kAdmin}},
      {"/ablate.v1.Keeping/GetRetention", {Role::kViewer}},
      {"/grpc.health.v1.Health/Check", {Role::kViewer}},
      {"/grpc.health.v1.Health/Watch", {Role::kViewer}},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", {Role::kViewer}},
  };
  const auto found = kRules.find(method);
  if (found == kRules.end()) return std::nullopt;
  return found->second;
}

/// Asked by gRPC for each call over TLS, before a service is.
class AccessControl::Processor final : public grpc::AuthMetadataProcessor {
 public:
  explicit Processor(AccessControl& control) : control_{control} {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata*,
                       OutputMetadata*) override {
    try {
      const auto path = metadata.find(":path");
      return control_.admit(metadata, path == metadata.end() ? std::string_view{} : view(path->second));
    } catch (const std::exception& error) {
      log_error("a call is refused: {}", error.what());
      return {grpc::StatusCode::INTERNAL, "internal error"};
    }
  }

 private:
  AccessControl& control_;
};

/// Knows one call from its beginning to its end.
class AccessControl::Notes final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Notes(AccessControl& control) : control_{control} {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new Note{control_, info};
  }

 private:
  class Note final : public grpc::experimental::Interceptor {
   public:
    Note(AccessControl& control, grpc::experimental::ServerRpcInfo* info)
        : control_{control},
          context_{info->server_context()},
          method_{info->method()},
          rule_{rule_of(method_)} {}
    ~Note() override {
      if (!caller_.local()) control_.end(caller_.token, context_);
    }
    Note(const Note&) = delete;
    Note& operator=(const Note&) = delete;

    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      using grpc::experimental::InterceptionHookPoints;
      try {
        if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) begin();
        if (rule_ && rule_->changes &&
            methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE))
          if (const void* message = methods->GetRecvMessage()) {
            const auto& request = *static_cast<const google::protobuf::Message*>(message);
            target_ = target_of(request);
            changes_ = !is_dry_run(request);
          }
        if (rule_ && rule_->changes &&
            methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS))
          if (const auto outcome = methods->GetSendStatus(); changes_ || !outcome.ok())
            control_.note(caller_, method_, target_, outcome);
      } catch (const std::exception& error) {
        log_error("{} is not written down: {}", method_, error.what());
      }
      methods->Proceed();
    }

   private:
    void begin() {
      try {
        caller_ = control_.caller(*context_);
      } catch (const Error&) {  // its token ended between the door and here
        context_->TryCancel();
        return;
      }
      if (!caller_.local()) control_.begin(caller_.token, context_);
    }

    AccessControl& control_;
    grpc::ServerContextBase* const context_;
    const std::string method_;
    const std::optional<MethodRule> rule_;
    Caller caller_;
    bool changes_ = true;
    std::string target_;
  };

  AccessControl& control_;
};

AccessControl::AccessControl(storage::Writer& writer, const Clock& clock) : writer_{writer}, clock_{clock} {
  for (TokenDigest& token : writer_.call([](storage::Database& db) { return TokenStore{db}.digests(); }))
    tokens_.emplace(token.record.id, std::move(token));
  note_expiry();
}

AccessControl::~AccessControl() = default;

std::shared_ptr<grpc::AuthMetadataProcessor> AccessControl::processor() {
  return std::make_shared<Processor>(*this);
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> AccessControl::interceptors() {
  return std::make_unique<Notes>(*this);
}

grpc::Status AccessControl::recognise(std::string_view authorization, Caller& caller) const {
  const auto refuse = [](std::string why) {
    return grpc::Status{grpc::StatusCode::UNAUTHENTICATED, std::move(why)};
  };
  if (authorization.empty())
    return refuse(
        "a token is needed here: 'ablate login ADDRESS' keeps one; an admin makes it with 'ablate token "
        "create'");
  if (!authorization.starts_with(kBearer)) return refuse("the authorization is not 'Bearer TOKEN'");
  try {
    const access::Token token = access::Token::parse(authorization.substr(kBearer.size()));
    const std::string digest = token.digest();
    const std::lock_guard lock{mutex_};
    const auto known = tokens_.find(token.id());
    // of one that is not known a comparison is made as well
    const std::string& expected = known == tokens_.end() ? digest : known->second.sha256;
    const bool equal = access::equal_digests(digest, expected);
    if (known == tokens_.end() || !equal) return refuse("this token is not known here");
    const storage::TokenRecord& record = known->second.record;
    if (const std::string why = record.why_not(clock_.now());
        !why.empty() && !(record.role == Role::kJoin && record.used && !record.revoked))
      return refuse(why);  // one that is used may be asked for again by the worker that used it
    caller = {.token = record.id, .name = record.name, .role = record.role, .expires = record.expires};
    return grpc::Status::OK;
  } catch (const Error& error) {
    return to_status(error);
  }
}

grpc::Status AccessControl::admit(const Metadata& metadata, std::string_view method) {
  Caller caller;
  if (grpc::Status refused = recognise(authorization_in(metadata), caller); !refused.ok()) return refused;
  return check(caller, method);
}

bool AccessControl::allows(const Caller& caller, std::string_view method) const {
  const auto rule = rule_of(method);
  return rule && may(caller.role, rule->least);
}

grpc::Status AccessControl::check(const Caller& caller, std::string_view method) {
  if (allows(caller, method)) return grpc::Status::OK;
  const auto rule = rule_of(method);
  grpc::Status refused{
      grpc::StatusCode::PERMISSION_DENIED,
      rule ? why_not(caller, rule->least, method) : fmt::format("nobody may call {}", method.substr(0, 200))};
  note(caller, method, "", refused);
  return refused;
}

Caller AccessControl::reader_with(std::string_view token) {
  Caller caller;
  if (const grpc::Status refused = recognise(fmt::format("{}{}", kBearer, token), caller); !refused.ok())
    throw Error{static_cast<Code>(refused.error_code()), refused.error_message()};
  if (!may(caller.role, Role::kViewer))
    throw Error{Code::kPermissionDenied, why_not(caller, Role::kViewer, "the dashboard")};
  const std::lock_guard lock{mutex_};
  seen_.insert(caller.token);
  return caller;
}

std::string AccessControl::why_over(const std::string& id) const {
  const std::lock_guard lock{mutex_};
  const auto known = tokens_.find(id);
  return known == tokens_.end() ? "this token is not known here" : known->second.record.why_not(clock_.now());
}

std::pair<std::string, std::string> AccessControl::pass_for(const std::string& token) const {
  return {kPass, fmt::format("{} {}", dashboard_secret_, token)};
}

Caller AccessControl::caller(const grpc::ServerContextBase& context) const {
  Caller caller;
  if (!is_secured(context)) {
    const auto& metadata = context.client_metadata();
    const auto pass = metadata.find(kPass);
    if (pass == metadata.end()) return caller;
    const std::string_view shown = view(pass->second);
    const std::size_t length = dashboard_secret_.size();
    if (shown.size() <= length || !access::equal_digests(shown.substr(0, length), dashboard_secret_))
      return caller;  // not the dashboard's: a call like any other
    return of_dashboard(std::string{shown.substr(length + 1)});
  }
  if (const grpc::Status refused = recognise(authorization_in(context.client_metadata()), caller);
      !refused.ok())
    throw Error{static_cast<Code>(refused.error_code()), refused.error_message()};
  return caller;
}

Caller AccessControl::of_dashboard(const std::string& token) const {
  if (token.empty()) return {.from_dashboard = true};
  const std::lock_guard lock{mutex_};
  if (const std::string why = why_over(token); !why.empty()) throw Error{Code::kUnauthenticated, why};
  const storage::TokenRecord& record = tokens_.at(token).record;
  return {.token = record.id,
          .name = record.name,
          .role = record.role,
          .expires = record.expires,
          .from_dashboard = true};
}

void AccessControl::begin(const std::string& token, grpc::ServerContextBase* call) {
  const std::lock_guard lock{mutex_};
  calls_[token].insert(call);
  seen_.insert(token);
  const auto known = tokens_.find(token);  // revoked since it was recognised?
  if (known == tokens_.end() || known->second.record.revoked) call->TryCancel();
}

void AccessControl::end(const std::string& token, grpc::ServerContextBase* call) {
  const std::lock_guard lock{mutex_};
  const auto calls = calls_.find(token);
  if (calls == calls_.end()) return;
  calls->second.erase(call);
  if (calls->second.empty()) calls_.erase(calls);
}

/// Under the lock: a call that ends meanwhile waits for it in `end`, so that each that is in the set is
/// there.
void AccessControl::cancel_calls(const std::string& token, const grpc::ServerContextBase* but) {
  if (one_ended_) one_ended_();
  const auto calls = calls_.find(token);
  if (calls == calls_.end()) return;
  const std::vector<grpc::ServerContextBase*> all{calls->second.begin(), calls->second.end()};
  for (grpc::ServerContextBase* call : all) {
    const auto still = calls_.find(token);
    if (call != but && still != calls_.end() && still->second.contains(call)) call->TryCancel();
  }
}

void AccessControl::note(const Caller& caller, std::string_view method, const std::string& target,
                         const grpc::Status& outcome) {
  const bool refused = outcome.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
                       outcome.error_code() == grpc::StatusCode::UNAUTHENTICATED;
  if (refused && ++refusals_waiting_ > kMostRefusalsWaiting) {
    --refusals_waiting_;
    return;
  }
  storage::AuditLine line{
      .time = clock_.now(),
      .token = caller.token,
      .who = caller.name,
      .what = std::string{short_name(method)} + (caller.from_dashboard ? " (dashboard)" : ""),
      .target = target,
      .outcome = outcome.ok() ? "ok" : outcome.error_message()};
  writer_.post([line = std::move(line)](storage::Database& db) { TokenStore{db}.note(line); },
               [this, refused](std::exception_ptr error) {
                 if (refused) --refusals_waiting_;
                 if (error) log_warning("a line of the audit is not stored: {}", message_of(error));
               });
}

void AccessControl::note_expiry() {
  next_expiry_ = Time::max();
  const Time now = clock_.now();
  for (const auto& [id, token] : tokens_)
    if (token.record.expires && *token.record.expires > now)
      next_expiry_ = std::min(next_expiry_, *token.record.expires);
}

void AccessControl::tick() {
  const Time now = clock_.now();
  std::set<std::string> seen;
  {
    const std::lock_guard lock{mutex_};
    if (now >= next_expiry_) {
      for (const auto& [id, token] : tokens_)
        if (token.record.expires && *token.record.expires <= now) cancel_calls(id);
      note_expiry();
    }
    if (now - seen_stored_ >= kSeenEvery && !seen_.empty()) {
      seen_stored_ = now;
      seen = std::exchange(seen_, {});
      for (const auto& [id, calls] : calls_) seen_.insert(id);  // streams go on being used
    }
  }
  if (!seen.empty())
    writer_.post([seen = std::move(seen), now](storage::Database& db) {
      for (const std::string& id : seen) TokenStore{db}.note_seen(id, now);
    });
}

void AccessControl::follow_added(const TokenDigest& token) {
  const std::lock_guard lock{mutex_};
  if (tokens_.size() >= static_cast<std::size_t>(TokenStore::kMostTokens)) {  // the store has let some go
    const Time now = clock_.now();
    std::erase_if(tokens_, [&](const auto& known) {
      const storage::TokenRecord& record = known.second.record;
      return (record.revoked || (record.expires && *record.expires <= now)) && !calls_.contains(known.first);
    });
  }
  tokens_.insert_or_assign(token.record.id, token);
  note_expiry();
}

void AccessControl::follow_used(const std::string& id) {
  const std::lock_guard lock{mutex_};
  if (const auto known = tokens_.find(id); known != tokens_.end() && !known->second.record.used)
    known->second.record.used = clock_.now();
}

void AccessControl::follow_revoked(const std::string& id, const grpc::ServerContextBase* but) {
  const std::lock_guard lock{mutex_};
  if (const auto known = tokens_.find(id); known != tokens_.end())
    known->second.record.revoked = clock_.now();
  cancel_calls(id, but);
}

access::Token AccessControl::make_join_token(const std::string& name, Time expires) {
  const access::Token token = access::Token::make();
  const TokenDigest digest{.record = {.id = token.id(),
                                      .role = Role::kJoin,
                                      .name = name,
                                      .made_by = TokenStore::kFleet,
                                      .created = clock_.now(),
                                      .expires = expires},
                           .sha256 = token.digest()};
  writer_.call([&](storage::Database& db) {
    TokenStore{db}.add(digest, digest.record.created);
    return true;
  });
  follow_added(digest);
  note({.name = TokenStore::kFleet}, "CreateToken", fmt::format("{} {}", token.id(), name), grpc::Status::OK);
  return token;
}

std::optional<std::string> AccessControl::worker_of(const std::string& id) {
  return writer_.call([&](storage::Database& db) { return TokenStore{db}.worker_of(id); });
}

void AccessControl::end_join(const std::string& id) {
  const Time now = clock_.now();
  for (const std::string& revoked :
       writer_.call([&](storage::Database& db) { return TokenStore{db}.end_join(id, now); })) {
    follow_revoked(revoked);
    note({.name = TokenStore::kFleet}, "RevokeToken", revoked, grpc::Status::OK);
  }
}

}  // namespace abl::scheduler
