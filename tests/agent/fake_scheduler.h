// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ablate/v1/workers.grpc.pb.h"
#include "tests/agent/fixtures.h"

namespace abl::agent {

/// A scheduler that keeps what it hears and says what the test tells it to. Real gRPC, on a Unix socket.
class FakeScheduler final : public ablate::v1::WorkerLink::Service {
 public:
  explicit FakeScheduler(const std::filesystem::path& folder)
      : address_{"unix:" + (folder / "scheduler.sock").string()} {
    start();
  }
  ~FakeScheduler() override { stop(); }

  const std::string& address() const { return address_; }
  void acknowledge(bool yes) {
    change([&] { acknowledges_ = yes; });
  }
  void welcome(bool yes) {
    change([&] { welcomes_ = yes; });
  }

  void start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  /// Breaks every session, as a scheduler that is killed does.
  void stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  void say(const ablate::v1::SchedulerMessage& message) {
    std::unique_lock lock{mutex_};
    ASSERT_TRUE(changed_.wait_for(lock, kPatience, [&] { return stream_ != nullptr; }))
        << "no worker has connected";
    stream_->Write(message);
  }
  void assign(const ablate::v1::Assign& assign) {
    ablate::v1::SchedulerMessage message;
    *message.mutable_assign() = assign;
    say(message);
  }
  void stop_run(std::uint32_t run, const std::string& reason) {
    ablate::v1::SchedulerMessage message;
    message.mutable_stop()->set_run(run);
    message.mutable_stop()->set_reason(reason);
    say(message);
  }
  void fence(std::uint32_t run) {
    ablate::v1::SchedulerMessage message;
    message.mutable_fenced()->set_run(run);
    message.mutable_fenced()->set_reason("its lease ran out");
    say(message);
  }
  void acknowledge_run(std::uint32_t run, std::uint64_t seq) {
    ablate::v1::SchedulerMessage message;
    message.mutable_ack()->set_run(run);
    message.mutable_ack()->set_seq(seq);
    say(message);
  }

  /// Waits until `condition` holds for all messages heard so far. Returns: whether it did.
  template <class Condition>
  bool heard(Condition condition) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kPatience, [&] { return condition(messages_); });
  }
  std::vector<ablate::v1::WorkerMessage> messages() {
    const std::scoped_lock lock{mutex_};
    return messages_;
  }
  void forget() {
    change([&] { messages_.clear(); });
  }

  /// Waits for the n-th hello.
  ablate::v1::Hello hello(std::size_t count = 1) {
    EXPECT_TRUE(heard([&](const auto&) { return hellos_.size() >= count; })) << "no hello";
    const std::scoped_lock lock{mutex_};
    return hellos_.size() >= count ? hellos_[count - 1] : ablate::v1::Hello{};
  }
  /// The run's batches, once its last one has come.
  std::vector<ablate::v1::RunBatch> wait_for_end(std::uint32_t run) {
    EXPECT_TRUE(heard([&](const auto&) {
      const auto all = batches_of(run);
      return !all.empty() && all.back().has_ended();
    })) << "run "
        << run << " has not ended";
    const std::scoped_lock lock{mutex_};
    return batches_of(run);
  }
  std::vector<ablate::v1::RunBatch> batches(std::uint32_t run) {
    const std::scoped_lock lock{mutex_};
    return batches_of(run);
  }

 private:
  using Stream = grpc::ServerReaderWriter<ablate::v1::SchedulerMessage, ablate::v1::WorkerMessage>;

  grpc::Status Session(grpc::ServerContext*, Stream* stream) override {
    ablate::v1::WorkerMessage message;
    while (stream->Read(&message)) {
      const std::scoped_lock lock{mutex_};
      messages_.push_back(message);
      changed_.notify_all();
      if (message.has_hello()) {
        hellos_.push_back(message.hello());
        if (!welcomes_) return {grpc::StatusCode::UNAVAILABLE, "not yet"};
        ablate::v1::SchedulerMessage answer;
        answer.mutable_welcome()->set_protocol(1);
        answer.mutable_welcome()->set_heartbeat_ms(100);
        answer.mutable_welcome()->set_lease_ms(10000);
        stream->Write(answer);
        stream_ = stream;
        changed_.notify_all();
      }
      if (message.has_batch() && acknowledges_) {
        ablate::v1::SchedulerMessage answer;
        answer.mutable_ack()->set_run(message.batch().run());
        answer.mutable_ack()->set_seq(message.batch().seq());
        stream->Write(answer);
      }
    }
    change([&] { stream_ = nullptr; });
    return grpc::Status::OK;
  }

  template <class Change>
  void change(Change what) {
    const std::scoped_lock lock{mutex_};
    what();
    changed_.notify_all();
  }
  std::vector<ablate::v1::RunBatch> batches_of(std::uint32_t run) const {
    std::vector<ablate::v1::RunBatch> result;
    for (const auto& message : messages_)
      if (message.has_batch() && message.batch().run() == run) result.push_back(message.batch());
    return result;
  }

  const std::string address_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Stream* stream_ = nullptr;  ///< of the newest session
  bool acknowledges_ = true, welcomes_ = true;
  std::vector<ablate::v1::WorkerMessage> messages_;
  std::vector<ablate::v1::Hello> hellos_;
};

}  // namespace abl::agent
