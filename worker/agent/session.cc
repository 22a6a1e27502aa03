// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/session.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <random>
#include <utility>

#include "access/reach.h"
#include "base/error.h"
#include "base/log.h"

namespace abl::agent {
using ablate::v1::SchedulerMessage;
using ablate::v1::WorkerLink;
using ablate::v1::WorkerMessage;
namespace {

constexpr std::uint32_t kProtocol = 1;

/// Of what stands last in a message of several.
std::size_t size_of_last(const WorkerMessage& message) {
  return message.more().empty() ? message.ByteSizeLong() : message.more().rbegin()->ByteSizeLong();
}
constexpr std::size_t kEnoughBytesTogether = 256 << 10;

/// A channel for one attempt: gRPC's own waiting between attempts would come on top of ours.
std::shared_ptr<grpc::Channel> open_channel(const std::string& address, const access::ClientAccess& access) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // turns on TCP_USER_TIMEOUT: a heartbeat that stays unconfirmed for 20 s breaks the connection; servers
  // tolerate pings this rare
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 310'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  return grpc::CreateCustomChannel(address, access::channel_credentials(access), arguments);
}

/// Why the scheduler is not reached, where more can be said than gRPC does.
std::string explained(const std::string& address, const access::ClientAccess& access,
                      const grpc::Status& status) {
  using Kind = access::Trouble::Kind;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    access::Trouble trouble = access::look_for_trouble(address, access);
    if (trouble.kind == Kind::kTls)
      return "it speaks TLS: pass --ca, and --join-token-file at the first start";
    if (!trouble.text.empty()) return std::move(trouble.text);
  }
  return status.error_message();
}

}  // namespace

/// One attempt. Lives on the stack of `converse` and goes only after OnDone. gRPC may end the call at any
/// time, also between its start and our first word, and what it then had for it is gone: nothing is written
/// unless `writable`. Its fields are guarded by the session's mutex.
class Session::Stream final : public grpc::ClientBidiReactor<WorkerMessage, SchedulerMessage> {
 public:
  Stream(Session& session, WorkerLink::Stub& stub) : session_{session} {
    stub.async()->Session(&context_, this);
    AddHold();  // writes start outside of reactions; given back when nothing more can be read
    StartRead(&incoming_);
    StartCall();
  }
  ~Stream() override {
    cancel();
    std::unique_lock lock{session_.mutex_};
    session_.changed_.wait(lock, [this] { return done_; });
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// These with the session's mutex held. Who begins to write, while `writable`, goes on with `write` or
  /// gives up.
  bool writable() const { return !writing_ && !over_; }
  void begin_to_write() { writing_ = true; }
  void write(WorkerMessage message) {
    if (over_) return;  // in the meantime
    outgoing_ = std::move(message);
    StartWrite(&outgoing_);
  }
  void give_up() { writing_ = false; }
  void cancel() { context_.TryCancel(); }
  bool done() const { return done_; }
  bool takes_several() const { return takes_several_; }
  const grpc::Status& status() const { return status_; }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        const std::scoped_lock lock{session_.mutex_};
        over_ = true;
      }
      RemoveHold();
      return;
    }
    if (incoming_.has_welcome()) welcome();
    receive(incoming_);
    for (const SchedulerMessage& next : incoming_.more()) receive(next);
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    {
      const std::scoped_lock lock{session_.mutex_};
      writing_ = false;
      if (!ok) over_ = true;
    }
    session_.send_pending();
  }

  void OnDone(const grpc::Status& status) override {
    const std::scoped_lock lock{session_.mutex_};
    status_ = status;
    done_ = true;
    session_.changed_.notify_all();
  }

 private:
  void receive(const SchedulerMessage& message) {
    try {
      session_.peer_.receive(message);
    } catch (const std::exception& error) {
      log_error("message from the scheduler dropped: {}", error.what());
    }
  }

  void welcome() {
    if (incoming_.welcome().protocol() != kProtocol) {
      log_error("the scheduler speaks protocol {}, this worker {}: use programs of one version",
                incoming_.welcome().protocol(), kProtocol);
      return cancel();
    }
    log_info("connected to the scheduler at {}", session_.address_);
    const std::scoped_lock lock{session_.mutex_};
    session_.connected_ = session_.pending_ = true;
    takes_several_ = incoming_.welcome().takes_several();
    session_.changed_.notify_all();
  }

  Session& session_;
  grpc::ClientContext context_;
  WorkerMessage outgoing_;
  SchedulerMessage incoming_;
  bool writing_ = false, over_ = false, done_ = false, takes_several_ = false;
  grpc::Status status_;
};

Session::Session(std::string address, Peer& peer, Backoff backoff, access::ClientAccess access)
    : address_{std::move(address)}, peer_{peer}, backoff_{backoff}, access_{std::move(access)} {}

void Session::start() {
  thread_ = std::jthread{[this](std::stop_token stop) { talk(std::move(stop)); }};
}

void Session::close() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Session::wake() {
  const std::scoped_lock lock{mutex_};
  pending_ = true;
  changed_.notify_all();
}

void Session::flush() {
  {
    const std::scoped_lock lock{mutex_};
    pending_ = true;
  }
  send_pending();
}

/// Until nothing is left, or while a message is on its way: its end goes on with the next.
void Session::send_pending() {
  std::unique_lock lock{mutex_};
  while (stream_ && connected_ && pending_ && stream_->writable()) {
    pending_ = false;
    stream_->begin_to_write();
    asking_ = true;
    const bool several = stream_->takes_several();
    lock.unlock();
    std::optional<WorkerMessage> message;
    bool failed = false;
    try {
      message = peer_.next();
      for (std::size_t bytes = 0;
           several && message && (bytes += size_of_last(*message)) < kEnoughBytesTogether;) {
        auto next = peer_.next();
        if (!next) break;
        *message->add_more() = *std::move(next);
      }
    } catch (const std::exception& error) {  // no memory: as a connection that broke
      log_error("the session with the scheduler broke: {}", error.what());
      failed = true;
    }
    lock.lock();
    asking_ = false;
    if (stream_->done()) changed_.notify_all();
    if (failed) stream_->cancel();
    if (message) {
      pending_ = true;  // there may be more
      stream_->write(*std::move(message));
    } else {
      stream_->give_up();
    }
  }
}

bool Session::connected() const {
  const std::scoped_lock lock{mutex_};
  return connected_;
}

void Session::talk(std::stop_token stop) {
  std::minstd_rand random{std::random_device{}()};
  Milliseconds wait = backoff_.first;
  while (!stop.stop_requested()) {
    bool welcomed = false;
    try {
      welcomed = converse(stop);
    } catch (const std::exception& error) {  // no memory, no thread: as a connection that broke
      log_error("the session with the scheduler broke: {}", error.what());
    }
    wait = welcomed ? backoff_.first : std::min(wait * 2, backoff_.longest);
    const Milliseconds shortened{std::uniform_int_distribution{wait.count() / 2, wait.count()}(random)};
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, stop, shortened, [] { return false; });
  }
}

/// One session from hello to its end. Returns: whether the scheduler welcomed it.
bool Session::converse(std::stop_token stop) {
  std::shared_ptr<grpc::Channel> channel;
  try {
    channel = open_channel(address_, access_);
  } catch (const Error& error) {  // a certificate of its own that has expired, or is gone
    const std::scoped_lock lock{mutex_};
    if (std::exchange(last_trouble_, error.what()) != error.what())
      log_warning("no connection to the scheduler at {}: {}; trying again", address_, error.what());
    return false;
  }
  const auto stub = WorkerLink::NewStub(channel);
  Stream stream{*this, *stub};
  WorkerMessage first;
  *first.mutable_hello() = peer_.hello();
  first.mutable_hello()->set_lowest_protocol(kProtocol);
  first.mutable_hello()->set_highest_protocol(kProtocol);
  first.mutable_hello()->set_takes_several(true);

  std::unique_lock lock{mutex_};
  connected_ = pending_ = false;
  stream_ = &stream;
  if (stream.writable()) {  // a refused connection ends the call before
    stream.begin_to_write();
    stream.write(std::move(first));
  }
  while (!stream.done()) {
    if (stop.stop_requested()) {
      stream.cancel();
      changed_.wait(lock, [&] { return stream.done(); });
      break;
    }
    changed_.wait(lock, stop, [&] { return stream.done() || (connected_ && pending_ && stream.writable()); });
    if (stream.done() || stop.stop_requested()) continue;
    lock.unlock();
    send_pending();
    lock.lock();
  }
  // who asks now would otherwise get, and lose, what the peer has for the next session
  changed_.wait(lock, [this] { return !asking_; });
  stream_ = nullptr;
  const bool welcomed = std::exchange(connected_, false);
  const std::string trouble =
      stream.status().ok() ? "it closed the session" : stream.status().error_message();
  const bool news = welcomed || trouble != last_trouble_;
  last_trouble_ = trouble;
  lock.unlock();
  if (!stop.stop_requested()) say_why(stream.status(), trouble, news);
  return welcomed;
}

/// Once, as well as it can be: where nothing was found out that gRPC does not say, it is asked again later.
void Session::say_why(const grpc::Status& status, const std::string& trouble, bool news) {
  constexpr std::chrono::seconds kAskAgain{10};
  const auto now = std::chrono::steady_clock::now();
  if (!news && (explained_ || now - asked_ < kAskAgain)) return;
  asked_ = now;
  const std::string why = status.ok() ? trouble : explained(address_, access_, status);
  explained_ = why != trouble;
  if (news || explained_)
    log_warning("no connection to the scheduler at {}: {}; trying again", address_, why);
}

}  // namespace abl::agent
