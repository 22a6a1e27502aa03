// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "launchers/scaling.h"
#include "scheduler/access_control.h"
#include "scheduler/coordinator.h"

namespace abl::scheduler {

struct FleetOptions {
  launchers::FleetConfig config;
  bool dry_run = false;            ///< says what it would do, and does not do it
  bool tls = false;                ///< the scheduler has it: workers need a token and an authority
  Milliseconds list_every{5'000};  ///< how often the launchers are asked how their pilots are
};
/// Throws: Error in one line for what cannot work, before anything is opened.
void check(const FleetOptions& options);

/// Gets workers from launchers while trials wait, and lets them go: on a thread of its own, so that nobody
/// waits for a batch system. What is to be done is decided by launchers/scaling.h; that a queue is paused,
/// what its pilots have cost and with which tokens they get in is kept in a file beside the results file.
/// Thread: all methods, from any.
class Autoscaler {
 public:
  /// The coordinator has recovered, and notes what is needed (Coordinator::note_needs). `launchers`: one for
  /// each kind that the fleet file names, in the order of kinds.
  /// Throws: Error where the file beside the store cannot be read.
  Autoscaler(FleetOptions options, const std::filesystem::path& store, const Coordinator& coordinator,
             AccessControl& access, const Clock& clock,
             std::vector<std::unique_ptr<launchers::Launcher>> launchers);
  /// Ends what it has under way; pilots stay.
  ~Autoscaler();

  ablate::v1::FleetStatus status();
  /// Throws: Error{kNotFound} for a queue that there is not.
  void pause(const std::string& queue, const std::string& reason);
  void resume(const std::string& queue);

  /// One look, as the thread makes one a second. For tests, which start no thread.
  void look(const std::stop_token& stop);
  void start();

 private:
  struct Admission {      // of one pilot's worker, by a join token
    std::string pilot{};  // not known: its submission was not answered
    Time made{}, expires{};
    bool used = false;
    std::optional<Time> gone{};  // since then its pilot is not there any more
  };
  struct Queue {
    launchers::QueueStanding standing;
    launchers::Launcher* launcher = nullptr;
    launchers::SubmissionPolicy submissions;
    std::string why;                              // the last look's words
    std::string would;                            // said last of what is not done in a dry run
    std::set<std::string> connected;              // pilots whose worker was there once
    double ended_gpu_seconds = 0;                 // of pilots that have ended
    std::map<std::string, std::int64_t> seconds;  // of those that have not, as listed last
    std::map<std::string, std::int64_t> charged;  // of those that have perhaps: what is in the sum above
    std::map<std::string, Admission> passes;      // by the token's public part
    std::deque<std::string> ended, failures;      // workers whose folders are kept, the oldest first
    std::vector<std::string> old;                 // whose folders are to go
    std::string trouble;                          // said last of what could not be removed
  };
  struct Stray {  // an admission of a queue that the fleet file does not name any more
    std::string queue, id;
    Admission admission;
  };
  struct Event {
    Time at{};
    std::string queue, text;
  };
  struct State {
    std::vector<Queue> queues;
    std::vector<Stray> strays;
    std::deque<Event> events;
    std::map<const launchers::Launcher*, std::string> trouble;
    bool listed = false;
    bool save = false;
  };

  void say(State& state, const std::string& queue, const std::string& text);
  void merge(State& state, Queue& queue, const std::vector<launchers::Pilot>& listed, Time now);
  void note_workers(Queue& queue, const std::set<std::string>& connected, const std::set<std::string>& busy,
                    Time now);
  void failed(State& state, Queue& queue, const std::string& why, Time now);
  void carry_out(const launchers::Decision& decision, Time now, const std::stop_token& stop);
  void submit(const launchers::Decision& decision, Time now, const std::stop_token& stop);
  std::optional<launchers::Pass> new_pass(std::size_t queue);
  void clean_up(std::size_t queue, const std::set<std::string>& connected, const std::stop_token& stop);
  void end_strays(const std::set<std::string>& connected);
  void cancel(const launchers::Decision& decision, Time now, const std::stop_token& stop);
  std::vector<launchers::WaitingTrials> waiting_for(const State& state, const Figures::Needs& needs) const;
  Queue& queue_named(State& state, const std::string& name);
  static nlohmann::json json_of(const Admission& pass);
  static Admission admission_of(const nlohmann::json& pass);
  void load(State& state);
  void save(State& state);

  const FleetOptions options_;
  const std::filesystem::path file_;
  const Coordinator& coordinator_;
  AccessControl& access_;
  const Clock& clock_;
  std::vector<std::unique_ptr<launchers::Launcher>> launchers_;
  Guarded<State> state_;
  std::optional<Time> last_list_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

/// The launchers that a fleet file names. `folder`: for what they write.
std::vector<std::unique_ptr<launchers::Launcher>> make_launchers(const launchers::FleetConfig& config,
                                                                 const std::string& store_id,
                                                                 const std::filesystem::path& store,
                                                                 const Clock& clock);

}  // namespace abl::scheduler
