// SPDX-License-Identifier: Apache-2.0
#include "cli/client.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "access/reach.h"
#include "cli/logins.h"

namespace abl::cli {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<grpc::Channel> open_channel(const std::string& address, const access::ClientAccess& access) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a scheduler is in the local network
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
                   1);  // a new client does not inherit an old one's back-off
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  // also the time that one attempt to connect may take: a loaded machine needs more than a moment
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(address, access::channel_credentials(access), arguments);
}

}  // namespace

Client::Client(std::string address) : Client{address, access_to(address)} {}

Client::Client(std::string address, access::ClientAccess access)
    : address_{std::move(address)},
      access_{std::move(access)},
      channel_{open_channel(address_, access_)},
      sweeps_{ablate::v1::Sweeps::NewStub(channel_)},
      runs_{ablate::v1::Runs::NewStub(channel_)},
      workers_{ablate::v1::Workers::NewStub(channel_)},
      access_service_{ablate::v1::Access::NewStub(channel_)},
      depot_{ablate::v1::Depot::NewStub(channel_)},
      keeping_{ablate::v1::Keeping::NewStub(channel_)} {}

Client::Client(const Context& context) : Client{context.scheduler()} {
  context_ = &context;
  if (!context.scheduler_flag.empty() || !address_.starts_with("unix:")) return;
  if (const auto up = running_up(context); up && address_ == "unix:" + up->socket)
    channel_->WaitForConnected(std::chrono::system_clock::now() + kDeadline);
}

void Client::pass_on_trouble(const grpc::ClientContext& context) const {
  const auto& metadata = context.GetServerTrailingMetadata();
  if (const auto said = metadata.find("ablate-trouble-bin"); context_ && said != metadata.end())
    context_->note("the scheduler can store nothing: " +
                   std::string{said->second.data(), said->second.size()});
}

void Client::check(const grpc::Status& status, seconds deadline) const {
  if (status.ok()) return;
  const auto code = static_cast<Code>(status.error_code());
  if (code == Code::kUnavailable) throw unreached(address_, access_);
  if (code == Code::kCancelled) {  // not by us: nobody looks at a call that we have given up
    if (const std::string why = why_refused(); !why.empty()) throw Error{Code::kUnauthenticated, why};
    throw Error{
        Code::kUnavailable,
        fmt::format("the scheduler at {} stopped before it had answered: whether it heeded the request is "
                    "not known; give it again when it is back",
                    address_)};
  }
  if (code == Code::kDeadlineExceeded)
    throw Error{code,
                fmt::format("the scheduler at {} gave no answer within {} s", address_, deadline.count())};
  if (code == Code::kUnimplemented)
    throw Error{code, fmt::format("the scheduler at {} does not know this request: it is of another version",
                                  address_)};
  throw Error{code, status.error_message()};
}

std::string Client::why_refused() const {
  if (!access_.tls) return {};
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 5s);
  ablate::v1::Caller caller;
  const grpc::Status status = access_service_->WhoAmI(&context, {}, &caller);
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ? status.error_message() : std::string{};
}

Error unreached(const std::string& address, const access::ClientAccess& access) {
  using Kind = access::Trouble::Kind;
  const access::Trouble trouble = access::look_for_trouble(address, access);
  switch (trouble.kind) {
    case Kind::kTls:
      return Error{
          Code::kUnauthenticated,
          fmt::format("the scheduler at {0} speaks TLS and wants a token: run 'ablate login {0}'", address)};
    case Kind::kAddress:
      return Error{Code::kInvalidArgument, trouble.text};
    case Kind::kPlain:
      return Error{Code::kUnavailable, fmt::format("{}; 'ablate logout {}' forgets that one logged in there",
                                                   trouble.text, address)};
    case Kind::kNoCertificate:
    case Kind::kOurCertificate:
      return Error{Code::kUnauthenticated, trouble.text};
    case Kind::kUnknownHost:
    case Kind::kRefused:
    case Kind::kUnreachable:
    case Kind::kSilent:
    case Kind::kClosed:
    case Kind::kHttp:
    case Kind::kElse:
    case Kind::kCertificate:
      return Error{Code::kUnavailable, trouble.text};
    case Kind::kNone:
      break;
  }
  return Error{
      Code::kUnavailable,
      fmt::format("no scheduler answers at {}: start one with 'ablate up', or name another with --scheduler",
                  address)};
}

bool is_interruption(const Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kDeadlineExceeded;
}

void with_reconnection(const std::function<void(bool& progress)>& attempt,
                       const std::function<void(const Error&)>& on_wait) {
  constexpr auto kPatience = 60s;
  bool connected = false;
  auto lost = std::chrono::steady_clock::now();
  for (;;) {
    bool progress = false;
    try {
      return attempt(progress);
    } catch (const Error& error) {
      connected = connected || progress;
      if (progress) lost = std::chrono::steady_clock::now();
      const bool patient = connected && std::chrono::steady_clock::now() - lost < kPatience;
      if (!is_interruption(error) || !patient) throw;
      if (error.code() == Code::kUnavailable) on_wait(error);
    }
    std::this_thread::sleep_for(500ms);
  }
}

}  // namespace abl::cli
