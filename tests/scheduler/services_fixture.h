// SPDX-License-Identifier: Apache-2.0
// The services as a client sees them: over an in-process channel, with a worker that follows a script.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "ablate/v1/depot.grpc.pb.h"
#include "ablate/v1/runs.grpc.pb.h"
#include "ablate/v1/sweeps.grpc.pb.h"
#include "ablate/v1/workers.grpc.pb.h"
#include "scheduler/scheduler.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {

using namespace ablate::v1;

inline constexpr auto kSweep = R"(ablate: 1
name: NAME
base:
  model: {preset: simple-vit-ti}
  data: {name: shapes}
  recipe: {use: demo}
rows:
  - {id: a, label: "original"}
  - {id: b, label: "shared", set: {model.attention.share: QQQ-W}}
seeds: [0]
table: {columns: [{name: acc, metric: val/top1}]}
)";

inline SweepFile file_of(const std::string& name, std::string text = kSweep) {
  SweepFile file;
  file.set_path(name + ".yaml");
  if (const auto at = text.find("NAME"); at != std::string::npos) text.replace(at, 4, name);
  file.set_text(text);
  return file;
}

/// A deadline far beyond what any call takes: a hanging test ends.
struct Patience : grpc::ClientContext {
  Patience() { set_deadline(std::chrono::system_clock::now() + std::chrono::minutes{4}); }
};

/// A worker's stream that follows the script of a test.
class ScriptedWorker {
 public:
  explicit ScriptedWorker(const std::shared_ptr<grpc::Channel>& channel)
      : stub_{WorkerLink::NewStub(channel)}, stream_{stub_->Session(&context_)} {}

  void hello(const Hello& hello) {
    WorkerMessage message;
    *message.mutable_hello() = hello;
    stream_->Write(message);
  }
  void say(const RunBatch& batch) {
    WorkerMessage message;
    *message.mutable_batch() = batch;
    stream_->Write(message);
  }
  /// The next message; empty when the stream has ended.
  SchedulerMessage hear() {
    SchedulerMessage message;
    if (!stream_->Read(&message)) return {};
    return message;
  }
  grpc::Status finish() {
    stream_->WritesDone();
    while (hear().body_case() != SchedulerMessage::BODY_NOT_SET) {
    }
    return stream_->Finish();
  }

 private:
  Patience context_;
  std::unique_ptr<WorkerLink::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<WorkerMessage, SchedulerMessage>> stream_;
};

class ServicesTest : public testing::Test {
 protected:
  ServicesTest() { start(); }
  ~ServicesTest() override { stop(); }

  void start() {
    scheduler = std::make_unique<Scheduler>(
        SchedulerOptions{.store = folder / "results.db",
                         .watch_interval = 0ms,
                         .trainer = folder / "no-trainer",
                         .depot = {.folder = {}, .limit = 1 << 20, .keep_free = 0, .rate = 0, .every = 5s}},
        clock);
    grpc::ServerBuilder builder;
    scheduler->register_services(builder);
    server = builder.BuildAndStart();
    channel = server->InProcessChannel({});
    sweeps = Sweeps::NewStub(channel);
    runs = Runs::NewStub(channel);
    workers = Workers::NewStub(channel);
    depot = ablate::v1::Depot::NewStub(channel);
  }
  void stop() {
    scheduler->coordinator().close_sessions();
    server->Shutdown(std::chrono::system_clock::now() + 5s);
    server->Wait();
    server.reset();
    scheduler.reset();
  }

  /// Asks for the removal, and how far it is, until the sweep is gone.
  void wait_until_removed(RemoveSweepRequest request) {
    for (RemoveSweepResponse removed; !removed.gone(); request.set_id(removed.id())) {
      Patience context;
      ASSERT_TRUE(sweeps->RemoveSweep(&context, request, &removed).ok());
    }
  }

  grpc::Status submit(const SweepFile& file, SubmitResponse* response = nullptr) {
    Patience context;
    SubmitRequest request;
    *request.mutable_file() = file;
    SubmitResponse ignored;
    return sweeps->Submit(&context, request, response ? response : &ignored);
  }
  /// A table that comes in one message.
  Table table_of(const SweepRequest& request) {
    Patience context;
    const auto stream = sweeps->GetTable(&context, request);
    Table table, more;
    EXPECT_TRUE(stream->Read(&table));
    EXPECT_FALSE(stream->Read(&more));
    EXPECT_TRUE(stream->Finish().ok());
    return table;
  }
  /// Changes the results file beside the scheduler.
  void change(const char* sql) {
    storage::Database{folder / "results.db", storage::Database::Mode::kWrite}.execute(sql);
  }
  /// Connects and hears Welcome.
  std::unique_ptr<ScriptedWorker> connect(const WorkerOptions& options = {}) {
    auto worker = std::make_unique<ScriptedWorker>(channel);
    worker->hello(hello_of(options));
    EXPECT_TRUE(worker->hear().has_welcome());
    return worker;
  }

  TemporaryFolder folder;
  FakeClock clock;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<grpc::Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Sweeps::Stub> sweeps;
  std::unique_ptr<Runs::Stub> runs;
  std::unique_ptr<Workers::Stub> workers;
  std::unique_ptr<ablate::v1::Depot::Stub> depot;
};

inline SweepRequest sweep_request(const std::string& name) {
  SweepRequest request;
  request.set_sweep(name);
  return request;
}

}  // namespace abl::scheduler
