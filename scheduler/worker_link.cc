// SPDX-License-Identifier: Apache-2.0
#include "scheduler/worker_link.h"

#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <utility>

#include "scheduler/server_stream.h"
#include "scheduler/status.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SchedulerMessage;
using ablate::v1::WorkerMessage;
using Stream = ServerStream<grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>, SchedulerMessage>;

/// One worker's session. Its first message is Hello; one message is read at a time, so the coordinator sees
/// them in order.
class WorkerSession final : public Stream {
 public:
  /// `caller`: whose stream this is, or why it is nobody's.
  WorkerSession(Coordinator& coordinator, Caller caller)
      : coordinator_{coordinator}, caller_{std::move(caller)} {}

  auto* start() {
    auto* reactor = keep();
    StartRead(&message_);
    return reactor;
  }

 private:
  /// The coordinator's hold on the stream: the stream lives as long as somebody may send.
  class Channel final : public WorkerChannel {
   public:
    explicit Channel(std::shared_ptr<Stream> stream) : stream_{std::move(stream)} {}
    void send(SchedulerMessage message) override { stream_->send(std::move(message)); }
    void close(const Error& reason) override { stream_->finish(to_status(reason)); }

   private:
    std::shared_ptr<Stream> stream_;
  };

  void OnReadDone(bool ok) override {
    if (!ok || ended()) return finish(grpc::Status::OK);
    const grpc::Status status = status_of([&] { receive(); });
    if (!status.ok()) return finish(status);
    StartRead(&message_);
  }

  void receive() {
    if (session_) {
      coordinator_.receive(session_, message_);
      for (const WorkerMessage& next : message_.more()) coordinator_.receive(session_, next);
      return;
    }
    if (!message_.has_hello()) throw Error{Code::kFailedPrecondition, "a session begins with Hello"};
    if (!caller_.local() && message_.hello().name() != caller_.name)
      throw Error{Code::kPermissionDenied,
                  fmt::format("this token belongs to worker {}: it cannot connect as {}", caller_.name,
                              message_.hello().name())};
    takes_several_ = message_.hello().takes_several();
    session_ = coordinator_.open_session(message_.hello(), std::make_shared<Channel>(shared_from_this()));
  }

  void gather(std::deque<SchedulerMessage>& waiting) override {
    if (!takes_several_) return;
    std::size_t bytes = waiting.front().ByteSizeLong();
    while (waiting.size() > 1 && (bytes += waiting[1].ByteSizeLong()) <= kMostBytesTogether) {
      *waiting.front().add_more() = std::move(waiting[1]);
      waiting.erase(waiting.begin() + 1);
    }
  }

  void OnCancel() override { finish(grpc::Status::CANCELLED); }

  void on_closed() override {
    if (session_) coordinator_.disconnected(session_);
    session_.reset();  // it holds the channel, which holds this
  }

  static constexpr std::size_t kMostBytesTogether = 256 << 10;
  Coordinator& coordinator_;
  const Caller caller_;
  std::atomic<bool> takes_several_{false};
  WorkerMessage message_;
  std::shared_ptr<const Session> session_;
};

}  // namespace

grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>* WorkerLinkService::Session(
    grpc::CallbackServerContext* context) {
  Caller caller;
  const grpc::Status known = status_of([&] { caller = access_.caller(*context); });
  const auto session = std::make_shared<WorkerSession>(coordinator_, std::move(caller));
  auto* reactor = session->start();
  if (!known.ok()) session->finish(known);
  return reactor;
}

}  // namespace abl::scheduler
