// SPDX-License-Identifier: Apache-2.0
#include "scheduler/dashboard_actions.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/nearest_name.h"
#include "sweeps/form.h"
#include "views/json.h"

namespace abl::scheduler {
namespace {

namespace pb = google::protobuf;
using web::Answer;
using web::error_answer;

/// Planning counts models, which takes a while for many; everything else is a commit.
constexpr auto kDeadline = std::chrono::seconds{90};

std::string short_name(const std::string& offered) { return offered.substr(offered.find('.') + 1); }

const pb::MethodDescriptor& method_of(const std::string& name) {
  std::vector<std::string> names;
  for (const std::string offered : web::kOffered) {
    names.push_back(short_name(offered));
    if (names.back() != name) continue;
    return *pb::DescriptorPool::generated_pool()->FindMethodByName("ablate.v1." + offered);
  }
  throw Error{Code::kNotFound, fmt::format("unknown action '{}'{}", name.substr(0, 60),
                                           name.size() > 60 ? "" : did_you_mean(name, names))};
}

/// "/ablate.v1.Sweeps/Submit"
std::string path_of(const pb::MethodDescriptor& method) {
  return fmt::format("/{}/{}", method.service()->full_name(), method.name());
}

std::unique_ptr<pb::Message> new_message(const pb::Descriptor& type) {
  return std::unique_ptr<pb::Message>{pb::MessageFactory::generated_factory()->GetPrototype(&type)->New()};
}

grpc::ByteBuffer bytes_of(const pb::Message& message) {
  const grpc::Slice slice{message.SerializeAsString()};
  return grpc::ByteBuffer{&slice, 1};
}

/// The account that the scheduler runs as: it owns the sweeps that are submitted without a sign-in.
std::string own_account() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found ? found->pw_name : fmt::format("uid-{}", ::geteuid());
}

std::string token_of(const web::Actions::Asker& who) { return who ? who->token : std::string{}; }

}  // namespace

/// One call on its way.
struct DashboardActions::Call {
  const pb::MethodDescriptor* method = nullptr;
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  std::function<void(Answer)> done;
  std::optional<std::stop_callback<std::function<void()>>> when_gone;
};

DashboardActions::DashboardActions(AccessControl& access)
    : access_{access}, own_account_{own_account()}, schema_{sweeps::sweep_schema().dump()} {}

void DashboardActions::connect(std::shared_ptr<grpc::Channel> channel) {
  const std::lock_guard lock{mutex_};
  channel_ = std::move(channel);
}

void DashboardActions::introduce(const Asker& who, ablate::v1::Caller& caller) const {
  try {
    const Caller known = access_.of_dashboard(token_of(who));
    caller.set_owner(known.local() ? own_account_ : known.name);
    for (const std::string offered : web::kOffered) {
      const std::string name = short_name(offered);
      if (access_.allows(known, path_of(method_of(name)))) caller.add_may(name);
    }
  } catch (const Error& error) {  // its token has just ended
    caller.set_read_only(error.what());
  }
}

void DashboardActions::act(const Asker& who, const std::string& name, const std::string& request,
                           std::stop_token gone, std::function<void(Answer)> done) {
  try {
    const pb::MethodDescriptor& method = method_of(name);
    const std::string path = path_of(method);
    const Caller caller = access_.of_dashboard(token_of(who));
    if (const grpc::Status refused = access_.check(caller, path); !refused.ok())
      throw Error{static_cast<Code>(refused.error_code()), refused.error_message()};
    const auto message = new_message(*method.input_type());
    views::from_json(request, *message);
    const auto call = std::make_shared<Call>();
    call->method = &method;
    call->request = bytes_of(*message);
    call->done = done;
    const auto [key, pass] = access_.pass_for(caller.token);
    call->context.AddMetadata(key, pass);
    call->context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    begin(call);
    // what changes something is carried out even if nobody waits for it
    if (!rule_of(path)->changes)
      call->when_gone.emplace(gone, [of = std::weak_ptr{call}] {  // its end, on this thread, may free it
        if (const auto under_way = of.lock()) under_way->context.TryCancel();
      });
  } catch (const Error& error) {
    done(error_answer(error.code(), error.what()));
  } catch (const std::exception& error) {
    log_error("{}: {}", name.substr(0, 60), error.what());
    done(error_answer(Code::kInternal, "internal error"));
  }
}

/// Throws: Error{kUnavailable} where nobody is there to call.
void DashboardActions::begin(const std::shared_ptr<Call>& call) {
  {
    const std::lock_guard lock{mutex_};
    if (!channel_)
      throw Error{Code::kUnavailable, "the scheduler is starting or stopping: try again in a moment"};
    call->channel = channel_;
    calls_.push_back(call);
  }
  grpc::GenericStub{call->channel}.UnaryCall(&call->context, path_of(*call->method), {}, &call->request,
                                             &call->response,
                                             [this, call](const grpc::Status& status) { end(call, status); });
}

Answer DashboardActions::answer_of(Call& call, const grpc::Status& status) {
  if (!status.ok()) return error_answer(static_cast<Code>(status.error_code()), status.error_message());
  try {
    const auto message = new_message(*call.method->output_type());
    grpc::ProtoBufferReader bytes{&call.response};
    if (message->ParseFromZeroCopyStream(&bytes)) return Answer{.body = views::to_json(*message)};
    log_error("{}: the response cannot be parsed", call.method->name());
  } catch (const std::exception& error) {  // gRPC would swallow it, and somebody waits for an answer
    log_error("{}: {}", call.method->name(), error.what());
  }
  return error_answer(Code::kInternal, "internal error");
}

void DashboardActions::end(const std::shared_ptr<Call>& call, const grpc::Status& status) {
  call->done(answer_of(*call, status));
  const std::lock_guard lock{mutex_};
  calls_.remove(call);
  if (calls_.empty()) all_answered_.notify_all();  // under the lock: who waits for it may be gone then
}

void DashboardActions::finish() {
  std::unique_lock lock{mutex_};
  channel_ = nullptr;
  const auto calls = calls_;
  lock.unlock();  // a call that is cancelled may end on this thread
  for (const auto& call : calls) call->context.TryCancel();
  lock.lock();
  all_answered_.wait(lock, [this] { return calls_.empty(); });
}

}  // namespace abl::scheduler
