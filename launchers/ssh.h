// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "launchers/bounded_call.h"
#include "launchers/launcher.h"
#include "launchers/ssh_scripts.h"

namespace abl::launchers {

struct SshOptions {
  std::string store_id;   ///< the folder of its pilots on each machine: those of other stores are not ours
  std::string scheduler;  ///< where workers find it
  std::filesystem::path sockets;    ///< a folder for connections that calls share
  Milliseconds ask_every{15'000};   ///< a machine where nothing is expected to change
  Milliseconds call_limit{20'000};  ///< of a question
};

/// Pilots as processes of machines that somebody reaches by `ssh`, at most one of a queue on each. The
/// machine itself keeps what there is (ssh_scripts.h). A start, which copies the bundle where it is not there
/// yet, runs on a thread of its own; its pilot waits meanwhile. A machine that does not answer is asked less
/// and less often; its pilots are as they were, until it has been silent for `kSilence`.
class SshLauncher final : public Launcher {
 public:
  using Call = std::function<CallAnswer(const std::vector<std::string>& argv, const OpenFile& input,
                                        Milliseconds limit, const std::stop_token& stop)>;
  static constexpr std::chrono::minutes kSilence{10};
  static constexpr Milliseconds kFirstPause{10'000}, kLongestPause{300'000};

  /// `queues`: those of this kind.
  SshLauncher(SshOptions options, const std::vector<QueueConfig>& queues, const Clock& clock,
              Call call = call_program);
  /// Ends starts that are under way; pilots stay.
  ~SshLauncher() override;

  std::vector<Pilot> list(const std::stop_token& stop) override;
  /// A machine that has not answered since this program started may have a pilot.
  bool knows_all(const QueueConfig& queue) override;
  std::string submit(const QueueConfig& queue, const std::optional<Pass>& pass,
                     const std::stop_token& stop) override;
  void cancel(const std::vector<Pilot>& pilots, const std::stop_token& stop) override;
  void remove(const QueueConfig& queue, const Leftovers& leftovers, const std::stop_token& stop) override;
  std::optional<Room> room(const QueueConfig& queue) override;
  std::vector<News> news() override;

 private:
  struct Trouble {  // and when the machine is tried again
    std::string text;
    int times = 0;
    Time next{}, since{};
    void again(std::string why, Time now);
  };
  struct Start {
    Pilot pilot;
    int copied_from = -1;  // a descriptor whose position is how far it is
    std::uint64_t all = 0;
    bool over = false;
  };
  struct Machine {
    const QueueConfig* queue = nullptr;
    SshHost host;
    std::vector<Pilot> pilots;   // as listed last
    std::vector<Pilot> nothing;  // starts that came to nothing, the last few
    bool answered = false;       // since this program has started
    bool hurry = true;           // something is expected to have changed
    int starts = 0;              // an answer to a question of before is old
    Time asked{};
    Trouble silent, refused;
    std::set<std::string> to_end, asked_to_end;  // by names; the first when it answers
    Leftovers left;                              // likewise; passes by the names of their pilots
    std::optional<Start> start;
    std::jthread job;
  };
  struct Digest {  // of a bundle, and of which state of the file
    std::uintmax_t size = 0;
    std::filesystem::file_time_type changed{};
    std::string hex;
  };
  struct State {
    std::vector<std::unique_ptr<Machine>> machines;
    std::vector<News> news;
  };

  CallAnswer ask(const Machine& machine, std::string_view script, const std::vector<std::string>& words,
                 Milliseconds limit, const std::stop_token& stop) const;
  std::vector<std::string> ssh_argv(const Machine& machine, const std::string& command) const;
  std::vector<std::string> place(const Machine& machine, std::vector<std::string> words) const;
  int starts_of(const Machine& machine);
  void ask_all(const std::vector<Machine*>& machines, const std::stop_token& stop);
  void take(State& state, Machine& machine, const CallAnswer& answer, int starts);
  static void say(State& state, const Machine& machine, std::string text);
  void silent(State& state, Machine& machine, const std::string& why);
  void refused(State& state, Machine& machine, const std::string& why);
  void catch_up(Machine& machine, const std::stop_token& stop);
  void run_start(Machine& machine, Pilot pilot, const std::optional<Pass>& pass, const std::stop_token& stop);
  std::string copy_bundle(Machine& machine, const std::stop_token& stop);
  std::string digest_of(const std::string& bundle);
  std::vector<std::string> words_for(const Machine& machine, const Pilot& pilot,
                                     const std::optional<Pass>& pass, const std::string& bundle) const;
  bool is_free(const Machine& machine) const;
  Room room_of(const State& state, const std::string& queue) const;

  const SshOptions options_;
  const std::vector<QueueConfig> queues_;
  const Clock& clock_;
  const Call call_;
  Guarded<std::map<std::string, Digest>> digests_;
  Guarded<State> state_;
};

}  // namespace abl::launchers
