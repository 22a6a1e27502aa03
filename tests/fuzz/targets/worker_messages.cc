// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <future>
#include <memory>

#include "tests/fuzz/target.h"
#include "tests/scheduler/fixtures.h"

namespace abl::fuzz {
namespace {

using namespace scheduler;

/// A coordinator with a queue, for so many inputs: what they leave behind does not grow.
class Desk {
 public:
  static constexpr int kInputs = 300;

  Desk() {
    coordinator_.recover();
    std::promise<void> submitted;
    submit_sweep(coordinator_, sweep_of("s", 4, 50), {},
                 [&](std::exception_ptr, const Submission&) { submitted.set_value(); });
    submitted.get_future().wait();
  }
  ~Desk() {
    coordinator_.close_sessions();
    settle();
    writer_.reset();  // ends with callbacks into the coordinator
  }

  void read(std::string_view bytes) {
    namespace io = google::protobuf::io;
    io::ArrayInputStream array{bytes.data(), static_cast<int>(bytes.size())};
    ablate::v1::WorkerMessage message;
    bool clean_end = false;
    const auto channel = std::make_shared<FakeChannel>();
    std::shared_ptr<const Session> session;
    std::vector<std::uint32_t> runs;
    while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &array, &clean_end)) {
      try {
        if (!session) {
          session = coordinator_.open_session(message.hello(), channel);
        } else {
          lead_to(message, runs);
          coordinator_.receive(session, message);
        }
      } catch (const Error& error) {
        require(error.code() != Code::kInternal && error.code() != Code::kUnknown, "it is the peer's fault");
      }
      settle();
      for (const auto& said : channel->take())
        if (said.has_assign()) runs.push_back(said.assign().run());
      message.Clear();
    }
    if (session) coordinator_.disconnected(session);
    clock_.pass(10min);
    coordinator_.tick();
    settle();
    const auto [queue, stored] = coordinator_.queue_and_store();
    require(queue == stored, "the queue in memory is the stored one");
  }

 private:
  /// Small numbers of runs stand for those that it was given: no guess would find them.
  static void lead_to(ablate::v1::WorkerMessage& message, const std::vector<std::uint32_t>& runs) {
    const auto real = [&](std::uint32_t run) { return run < runs.size() ? runs[run] : run; };
    if (message.has_batch()) message.mutable_batch()->set_run(real(message.batch().run()));
    if (message.has_refused()) message.mutable_refused()->set_run(real(message.refused().run()));
    if (message.has_heartbeat())
      for (auto& run : *message.mutable_heartbeat()->mutable_runs()) run = real(run);
  }

  void settle() {
    for (int i = 0; i < 3; ++i) {
      std::promise<void> done;
      coordinator_.store_counts({}, [&](std::exception_ptr) { done.set_value(); });
      done.get_future().wait();
    }
  }

  TemporaryFolder folder_;
  FakeClock clock_;
  ChangeFeed feed_{0ms};
  std::unique_ptr<storage::Writer> writer_ = std::make_unique<storage::Writer>(folder_ / "results.db");
  Coordinator coordinator_{*writer_, clock_, LeasePolicy{}, feed_};
};

}  // namespace

/// A worker's stream: delimited messages, of which the first is its Hello.
void read_worker_messages(std::string_view bytes) {
  static std::unique_ptr<Desk> desk;
  static int inputs = 0;
  if (!desk || inputs++ % Desk::kInputs == 0) {
    desk.reset();
    desk = std::make_unique<Desk>();
  }
  desk->read(bytes);
}

}  // namespace abl::fuzz
