// SPDX-License-Identifier: Apache-2.0
// Workers that start no program, for bench.py: what they are assigned has ended as soon as it was to start,
// or after --work-ms. Their sessions are real ones, each over a connection of its own. Says what came of it
// as one JSON object, when --trials have ended and that is acknowledged, when --seconds are over, when every
// session is over, or on SIGTERM or SIGINT.
#include <grpcpp/grpcpp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ablate/v1/workers.grpc.pb.h"
#include "base/guarded.h"

namespace {

using namespace std::chrono_literals;
using ablate::v1::RunEnded;
using ablate::v1::SchedulerMessage;
using ablate::v1::WorkerLink;
using ablate::v1::WorkerMessage;
using Clock = std::chrono::steady_clock;
using WallClock = std::chrono::system_clock;

struct Options {
  std::string scheduler, name = "null";
  int sessions = 1, slots = 16;
  long work_ms = 0;
  std::uint64_t trials = 0;  ///< 0: no end by trials
  double seconds = 0;        ///< 0: no end by time
  double patience = 10;      ///< until a session is welcomed
};

/// Since the epoch, as bench.py's own clock has it.
double seconds_of(WallClock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// Of this process, so far.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What all sessions have seen.
struct Tally {
  std::uint64_t assigned = 0, ended = 0, stopped = 0, fenced = 0, welcomed = 0, broken = 0;
  std::optional<WallClock::time_point> first_welcome, first_assign, last_ack;
  std::vector<float> ack_ms;  ///< from the write of a batch to its acknowledgement
};

nlohmann::json to_json(Tally tally) {
  std::ranges::sort(tally.ack_ms);
  const auto at = [&](double share) -> nlohmann::json {
    if (tally.ack_ms.empty()) return nullptr;
    return tally.ack_ms[static_cast<std::size_t>(share * static_cast<double>(tally.ack_ms.size() - 1))];
  };
  const auto moment = [](const std::optional<WallClock::time_point>& time) -> nlohmann::json {
    return time ? nlohmann::json(seconds_of(*time)) : nullptr;
  };
  return {{"assigned", tally.assigned},
          {"ended", tally.ended},
          {"stopped", tally.stopped},
          {"fenced", tally.fenced},
          {"welcomed", tally.welcomed},
          {"broken", tally.broken},
          {"first_welcome", moment(tally.first_welcome)},
          {"first_assign", moment(tally.first_assign)},
          {"last_ack", moment(tally.last_ack)},
          {"cpu_s", cpu_seconds()},
          {"ack_ms", {{"p50", at(0.5)}, {"p90", at(0.9)}, {"p99", at(0.99)}, {"max", at(1)}}}};
}

/// Does what is due, in order, on one thread.
class Timer {
 public:
  Timer() : thread_{[this](const std::stop_token& stop) { run(stop); }} {}

  /// Thread: any.
  void at(Clock::time_point when, std::function<void()> what) {
    {
      const std::scoped_lock lock{mutex_};
      due_.push({when, ++count_, std::move(what)});
    }
    changed_.notify_one();
  }
  /// Nothing that is due is done any more.
  void stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Due {
    Clock::time_point when;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Due& other) const {  // the earliest is on top
      return std::pair{when, number} > std::pair{other.when, other.number};
    }
  };

  void run(const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    while (!stop.stop_requested()) {
      if (due_.empty()) {
        changed_.wait(lock, stop, [this] { return !due_.empty(); });
      } else if (const auto when = due_.top().when; when > Clock::now()) {
        changed_.wait_until(lock, stop, when, [&] { return due_.top().when < when; });
      } else {
        const auto what = due_.top().what;
        due_.pop();
        lock.unlock();
        what();
        lock.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::priority_queue<Due> due_;
  std::uint64_t count_ = 0;
  std::jthread thread_;  // after what it uses
};

std::shared_ptr<grpc::Channel> open_channel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection for each session
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

/// One session of one worker, from Hello to its end.
class Session final : public grpc::ClientBidiReactor<WorkerMessage, SchedulerMessage> {
 public:
  Session(const Options& options, int number, abl::Guarded<Tally>& tally, Timer& timer)
      : options_{options},
        number_{number},
        tally_{tally},
        timer_{timer},
        stub_{WorkerLink::NewStub(open_channel(options.scheduler))} {
    stub_->async()->Session(&context_, this);
    AddHold();  // writes start outside of reactions; given back when nothing more can be read
    StartRead(&incoming_);
    StartCall();
    const std::scoped_lock lock{mutex_};
    say(hello());
  }
  ~Session() override {
    cancel();
    std::unique_lock lock{mutex_};
    over_changed_.wait(lock, [this] { return done_; });
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void cancel() { context_.TryCancel(); }
  bool done() const {
    const std::scoped_lock lock{mutex_};
    return done_;
  }
  bool welcomed() const {
    const std::scoped_lock lock{mutex_};
    return welcomed_;
  }
  std::string trouble() const {
    const std::scoped_lock lock{mutex_};
    return status_.error_message();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        const std::scoped_lock lock{mutex_};
        over_ = true;
      }
      RemoveHold();
      return;
    }
    receive(incoming_);
    for (const SchedulerMessage& next : incoming_.more()) receive(next);
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    const std::scoped_lock lock{mutex_};
    writing_ = false;
    if (!ok) over_ = true;
    write();
  }
  void OnDone(const grpc::Status& status) override {
    const std::scoped_lock lock{mutex_};
    status_ = status;
    done_ = over_ = true;
    if (welcomed_) ++tally_.lock()->broken;
    over_changed_.notify_all();
  }

 private:
  static constexpr int kMostTogether = 1000;  // as a worker does, which counts bytes
  struct Held {
    std::string token;
    std::uint64_t said = 0;  ///< newest batch
    bool started = false, ended = false, completed = false;
    Clock::time_point sent{};  ///< that batch
  };

  WorkerMessage hello() const {
    WorkerMessage message;
    auto& hello = *message.mutable_hello();
    hello.set_lowest_protocol(1);
    hello.set_highest_protocol(1);
    hello.set_takes_several(true);
    hello.set_name(options_.name + "-" + std::to_string(number_));
    hello.set_instance(std::to_string(getpid()) + "-" +
                       std::to_string(Clock::now().time_since_epoch().count()));
    hello.set_host("null");
    hello.set_version("0");
    hello.set_allows_commands(true);
    for (int i = 0; i < options_.slots; ++i) {
      auto& slot = *hello.add_slots();
      slot.set_index(static_cast<std::uint32_t>(i));
      slot.set_device("cpu");
      slot.set_name("null");
      slot.set_threads(1);
    }
    return message;
  }

  void receive(const SchedulerMessage& message) {
    const std::scoped_lock lock{mutex_};
    switch (message.body_case()) {
      case SchedulerMessage::kWelcome:
        return welcome(message.welcome());
      case SchedulerMessage::kAssign:
        return assign(message.assign());
      case SchedulerMessage::kStop:
        return stop(message.stop());
      case SchedulerMessage::kAck:
        return acknowledge(message.ack());
      case SchedulerMessage::kFenced:
        held_.erase(message.fenced().run());
        ++tally_.lock()->fenced;
        return;
      case SchedulerMessage::BODY_NOT_SET:
        return;
    }
  }

  // All below with the mutex held.

  void welcome(const ablate::v1::Welcome& welcome) {
    welcomed_ = true;
    takes_several_ = welcome.takes_several();
    {
      auto tally = tally_.lock();
      ++tally->welcomed;
      if (!tally->first_welcome) tally->first_welcome = WallClock::now();
    }
    heartbeat_ = std::chrono::milliseconds{std::max(1U, welcome.heartbeat_ms())};
    // not those of all sessions at one moment
    const auto first = heartbeat_ * (number_ + 1) / (options_.sessions + 1);
    timer_.at(Clock::now() + first, [this] { beat(); });
  }

  void assign(const ablate::v1::Assign& assign) {
    {
      auto tally = tally_.lock();
      ++tally->assigned;
      if (!tally->first_assign) tally->first_assign = WallClock::now();
    }
    const std::uint32_t run = assign.run();
    held_[run] = Held{.token = assign.token()};
    if (options_.work_ms == 0) {
      auto batch = next_batch(run);
      start(batch);
      end(batch, RunEnded::STATUS_COMPLETED);
      return say(std::move(batch));
    }
    const auto now = Clock::now();
    auto begin = now;  // when its slots are free, which it may wait for
    for (const std::uint32_t slot : assign.slots()) begin = std::max(begin, free_at_[slot]);
    const auto over = begin + std::chrono::milliseconds{options_.work_ms};
    for (const std::uint32_t slot : assign.slots()) free_at_[slot] = over;
    timer_.at(begin, [this, run] { begin_work(run); });
    timer_.at(over, [this, run] { end_work(run); });
  }

  void stop(const ablate::v1::StopRun& stop) {
    const auto found = held_.find(stop.run());
    if (found == held_.end() || found->second.ended || (stop.only_waiting() && found->second.started)) return;
    auto batch = next_batch(stop.run());
    end(batch, RunEnded::STATUS_STOPPED);
    batch.mutable_batch()->mutable_ended()->set_reason(stop.reason());
    batch.mutable_batch()->mutable_ended()->set_asked(true);
    say(std::move(batch));
    ++tally_.lock()->stopped;
  }

  void acknowledge(const ablate::v1::Ack& ack) {
    const auto found = held_.find(ack.run());
    if (found == held_.end() || ack.seq() < found->second.said) return;
    const Held held = found->second;
    if (held.ended) held_.erase(found);
    auto tally = tally_.lock();
    tally->ack_ms.push_back(std::chrono::duration<float, std::milli>(Clock::now() - held.sent).count());
    if (!held.completed) return;
    ++tally->ended;
    tally->last_ack = WallClock::now();
  }

  WorkerMessage next_batch(std::uint32_t run) {
    Held& held = held_.at(run);
    WorkerMessage message;
    message.mutable_batch()->set_run(run);
    message.mutable_batch()->set_seq(++held.said);
    message.mutable_batch()->set_token(held.token);
    return message;
  }
  void start(WorkerMessage& message) {
    held_.at(message.batch().run()).started = true;
    message.mutable_batch()->mutable_started()->set_directory("/null");
  }
  void end(WorkerMessage& message, RunEnded::Status status) {
    Held& held = held_.at(message.batch().run());
    held.ended = true;
    held.completed = status == RunEnded::STATUS_COMPLETED;
    auto& ended = *message.mutable_batch()->mutable_ended();
    ended.set_status(status);
    if (!held.completed) return;
    ended.set_exit_code(0);
    ended.set_took_ms(static_cast<std::uint64_t>(options_.work_ms));
  }

  void say(WorkerMessage message) {
    outbox_.push_back(std::move(message));
    write();
  }
  WorkerMessage take() {
    WorkerMessage message = std::move(outbox_.front());
    outbox_.pop_front();
    if (message.has_batch())
      if (const auto found = held_.find(message.batch().run()); found != held_.end())
        found->second.sent = Clock::now();
    return message;
  }
  void write() {
    if (writing_ || over_ || outbox_.empty()) return;
    writing_ = true;
    outgoing_ = take();
    while (takes_several_ && !outbox_.empty() && outgoing_.more_size() < kMostTogether)
      *outgoing_.add_more() = take();
    StartWrite(&outgoing_);
  }

  // The timer's, which takes the mutex itself.

  void begin_work(std::uint32_t run) {
    const std::scoped_lock lock{mutex_};
    const auto found = held_.find(run);
    if (found == held_.end() || found->second.ended || over_) return;
    auto batch = next_batch(run);
    start(batch);
    say(std::move(batch));
  }
  void end_work(std::uint32_t run) {
    const std::scoped_lock lock{mutex_};
    const auto found = held_.find(run);
    if (found == held_.end() || found->second.ended || over_) return;
    auto batch = next_batch(run);
    end(batch, RunEnded::STATUS_COMPLETED);
    say(std::move(batch));
  }
  void beat() {
    const std::scoped_lock lock{mutex_};
    if (over_) return;
    WorkerMessage message;
    auto& heartbeat = *message.mutable_heartbeat();
    for (const auto& [run, held] : held_) heartbeat.add_runs(run);
    outbox_.push_front(std::move(message));
    write();
    timer_.at(Clock::now() + heartbeat_, [this] { beat(); });
  }

  const Options& options_;
  const int number_;
  abl::Guarded<Tally>& tally_;
  Timer& timer_;
  const std::unique_ptr<WorkerLink::Stub> stub_;
  grpc::ClientContext context_;
  WorkerMessage outgoing_;
  SchedulerMessage incoming_;

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable over_changed_;
  std::deque<WorkerMessage> outbox_;
  std::unordered_map<std::uint32_t, Held> held_;
  std::map<std::uint32_t, Clock::time_point> free_at_;  // slot -> when its last run ends
  std::chrono::milliseconds heartbeat_{1000};
  bool welcomed_ = false, takes_several_ = false, writing_ = false, over_ = false, done_ = false;
  grpc::Status status_;
};

/// A descriptor for each session, and some.
void allow_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Signals are waited for and nowhere else taken.
sigset_t block_goodbyes() {
  sigset_t goodbyes;
  sigemptyset(&goodbyes);
  sigaddset(&goodbyes, SIGTERM);
  sigaddset(&goodbyes, SIGINT);
  pthread_sigmask(SIG_BLOCK, &goodbyes, nullptr);
  return goodbyes;
}

int work(const Options& options) {
  const sigset_t goodbyes = block_goodbyes();  // before any thread starts
  allow_descriptors();
  abl::Guarded<Tally> tally;
  Timer timer;
  const auto open = [&](int number) { return std::make_unique<Session>(options, number, tally, timer); };
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < options.sessions; ++i) sessions.push_back(open(i));

  const auto begun = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begun).count(); };
  constexpr timespec kTick{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds{5ms}.count()};
  std::string trouble;
  while (trouble.empty() && sigtimedwait(&goodbyes, nullptr, &kTick) < 0) {
    if (options.trials > 0 && tally.lock()->ended >= options.trials) break;
    if (options.seconds > 0 && passed() >= options.seconds) break;
    bool any = false;
    for (int i = 0; i < options.sessions; ++i) {
      auto& session = sessions[static_cast<std::size_t>(i)];
      if (session->done() && !session->welcomed()) {  // nobody listens yet: it knows no timer
        if (passed() >= options.patience) trouble = "no session: " + session->trouble();
        session.reset();
        session = open(i);
        any = true;
      }
      any = any || !session->done();
    }
    if (!any) break;
  }
  const auto result = to_json(*tally.lock());  // before the sessions end because of us
  timer.stop();
  for (const auto& session : sessions) session->cancel();
  sessions.clear();
  if (!trouble.empty()) {
    std::cerr << "null_worker: " << trouble << '\n';
    return 3;
  }
  std::cout << result.dump() << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Workers that start no program.", "null_worker"};
  Options options;
  app.add_option("--scheduler", options.scheduler, "unix:/… or host:port")->required();
  app.add_option("--name", options.name, "Of the workers, before their numbers");
  app.add_option("--sessions", options.sessions, "Workers");
  app.add_option("--slots", options.slots, "Of each");
  app.add_option("--work-ms", options.work_ms, "How long a run takes; 0: it has ended with its start");
  app.add_option("--trials", options.trials, "End when so many have ended");
  app.add_option("--seconds", options.seconds, "End after so long");
  app.add_option("--patience", options.patience, "Seconds to try to connect");
  CLI11_PARSE(app, argc, argv);
  return work(options);
}
