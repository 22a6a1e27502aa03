// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <memory>

#include "scheduler/scheduler.h"
#include "tests/fuzz/target.h"
#include "tests/scheduler/fixtures.h"

namespace abl::fuzz {
namespace {

using namespace std::chrono_literals;

/// The first byte of an input chooses one; those that follow are its request as it comes over the wire.
constexpr std::array kMethods{"Sweeps/Validate",
                              "Sweeps/Plan",
                              "Sweeps/Submit",
                              "Sweeps/ExtendSweep",
                              "Sweeps/ListSweeps",
                              "Sweeps/GetSweep",
                              "Sweeps/GetTable",
                              "Sweeps/WatchSweep",
                              "Sweeps/CancelSweep",
                              "Sweeps/PauseSweep",
                              "Sweeps/ResumeSweep",
                              "Sweeps/RetrySweep",
                              "Sweeps/RemoveSweep",
                              "Sweeps/RenameSweep",
                              "Sweeps/GetProvenance",
                              "Sweeps/GetTuning",
                              "Runs/ListRuns",
                              "Runs/GetRun",
                              "Runs/GetMetrics",
                              "Runs/TailLog",
                              "Runs/Export",
                              "Runs/Why",
                              "Workers/ListWorkers",
                              "Workers/DrainWorker",
                              "Workers/GetFleet",
                              "Workers/PauseFleetQueue",
                              "WorkerLink/Session",
                              "Access/WhoAmI",
                              "Access/CreateToken",
                              "Access/ListTokens",
                              "Access/RevokeToken",
                              "Access/Join",
                              "Access/ListAudit",
                              "Depot/PutCheckpoint",
                              "Depot/Get",
                              "Depot/PutData",
                              "Depot/PushData",
                              "Depot/RemoveData",
                              "Depot/ListData",
                              "Depot/RepinData",
                              "Sweeps/AdjustSweep",
                              "Sweeps/CancelTrial"};

/// A scheduler that is asked over a channel of this process.
class Counter {
 public:
  static constexpr int kInputs = 1000;

  Counter() {
    grpc::ServerBuilder builder;
    scheduler_.register_services(builder);
    server_ = builder.BuildAndStart();
    stub_ = std::make_unique<grpc::GenericStub>(server_->InProcessChannel({}));
    call("Sweeps/Submit", example().SerializeAsString());
  }
  ~Counter() {
    scheduler_.coordinator().close_sessions();
    server_->Shutdown(std::chrono::system_clock::now() + 5s);
    server_->Wait();
  }

  grpc::Status call(const std::string& method, std::string_view request) {
    constexpr int kMostMessages = 3;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 20s);
    grpc::CompletionQueue queue;
    const bool streams = is_stream(method);
    const auto stream = stub_->PrepareCall(&context, "/ablate.v1." + method, &queue);
    const auto wait = [&] {
      void* tag = nullptr;
      bool ok = false;
      // a watcher's stream does not end, and one of a worker may say nothing; all others are to be answered
      const auto enough = std::chrono::system_clock::now() + 50ms;
      if (streams && queue.AsyncNext(&tag, &ok, enough) == grpc::CompletionQueue::TIMEOUT) {
        context.TryCancel();
        queue.Next(&tag, &ok);
      } else if (!streams) {
        queue.Next(&tag, &ok);
      }
      return ok;
    };
    stream->StartCall(nullptr);
    bool goes_on = wait();
    const grpc::Slice slice{request.data(), request.size()};
    if (goes_on) {
      stream->WriteLast(grpc::ByteBuffer{&slice, 1}, grpc::WriteOptions{}, nullptr);
      wait();
    }
    for (int messages = 0; goes_on; ++messages) {
      grpc::ByteBuffer answer;
      stream->Read(&answer, nullptr);
      goes_on = wait();
      if (streams && messages == kMostMessages) context.TryCancel();
    }
    grpc::Status status;
    stream->Finish(&status, nullptr);
    wait();
    return status;
  }

  /// "Sweeps/WatchSweep": what goes on until somebody ends it.
  static bool is_stream(const std::string& method) {
    const auto slash = method.find('/');
    const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        "ablate.v1." + method.substr(0, slash));
    const auto* found = service ? service->FindMethodByName(method.substr(slash + 1)) : nullptr;
    require(found != nullptr, "a method of the contract");
    return found->server_streaming() || found->client_streaming();
  }

 private:
  static ablate::v1::SubmitRequest example() {
    ablate::v1::SubmitRequest request;
    request.mutable_file()->set_path("demo.yaml");
    request.mutable_file()->set_text(
        "ablate: 1\nname: demo\nbase: {model: {preset: simple-vit-ti}, data: {name: shapes}, recipe: {use: "
        "demo}}\n"
        "rows: [{id: a, label: original}, {id: b, label: shared, set: {model.attention.share: QQQ-W}}]\n"
        "seeds: [0]\ntable: {columns: [{name: acc, metric: val/top1}]}\n");
    return request;
  }

  TemporaryFolder folder_;
  scheduler::FakeClock clock_;
  scheduler::Scheduler scheduler_{{.store = folder_ / "results.db",
                                   .watch_interval = 0ms,
                                   .trainer = folder_ / "no-trainer",
                                   .depot = {.limit = 1 << 20, .keep_free = 0}},
                                  clock_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace

/// A request of a client whose program is not ours: every answer is a status that says what is wrong, and the
/// scheduler serves the next.
void read_client_call(std::string_view bytes) {
  static std::unique_ptr<Counter> counter;
  static int inputs = 0;
  if (!counter || inputs++ % Counter::kInputs == 0) {
    counter.reset();
    counter = std::make_unique<Counter>();
  }
  if (bytes.empty()) return;
  const char* method = kMethods.at(static_cast<unsigned char>(bytes.front()) % kMethods.size());
  const grpc::Status status = counter->call(method, bytes.substr(1));
  require(status.error_code() != grpc::StatusCode::UNKNOWN &&
              status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED &&
              (status.error_code() != grpc::StatusCode::CANCELLED || Counter::is_stream(method)),
          std::string{method} + ": " + status.error_message());
}

}  // namespace abl::fuzz
