// SPDX-License-Identifier: Apache-2.0
#include "scheduler/worker_link.h"

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
  explicit WorkerSession(Coordinator& coordinator) : coordinator_{coordinator} {}

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
    if (session_) return coordinator_.receive(session_, message_);
    if (!message_.has_hello()) throw Error{Code::kFailedPrecondition, "a session begins with Hello"};
    session_ = coordinator_.open_session(message_.hello(), std::make_shared<Channel>(shared_from_this()));
  }

  void OnCancel() override { finish(grpc::Status::CANCELLED); }

  void on_closed() override {
    if (session_) coordinator_.disconnected(session_);
    session_.reset();  // it holds the channel, which holds this
  }

  Coordinator& coordinator_;
  WorkerMessage message_;
  std::shared_ptr<const Session> session_;
};

}  // namespace

grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>* WorkerLinkService::Session(
    grpc::CallbackServerContext*) {
  return std::make_shared<WorkerSession>(coordinator_)->start();
}

}  // namespace abl::scheduler
