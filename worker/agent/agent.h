// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "worker/agent/launch.h"
#include "worker/agent/run.h"
#include "worker/agent/session.h"
#include "worker/agent/slots.h"
#include "worker/agent/spool.h"

namespace abl::agent {

struct AgentOptions {
  std::string scheduler;        ///< "unix:/run/ablate/scheduler.sock" or "host:port"
  std::filesystem::path spool;  ///< folder of the runs' spools
  std::string name, version;
  std::uint32_t result_version = 0;  ///< of the trainer; 0: there is none
  bool allow_commands = false;
  std::vector<Slot> slots;
  RunSettings runs;
  Backoff backoff;
};

/// The worker: takes assignments, runs them in its slots, and sends what they say until it is acknowledged.
/// State is one map of runs under one lock; runs and the session call in from their own threads.
class Agent final : private Peer, private RunOwner {
 public:
  /// Opens the spools that an earlier program left; their runs died with it and end as stopped, so that their
  /// trials go on from their last checkpoints. Then connects. Throws: Error when a spool cannot be read.
  Agent(AgentOptions options, const Clock& clock);
  ~Agent() override;

  /// Heartbeat when due, and what is left to do for ended runs. To be called a few times a second.
  void tick();
  /// Takes nothing more and stops every run: they write a checkpoint and end.
  void stop(const std::string& reason);
  bool busy();     ///< a run's program is under way
  bool settled();  ///< nothing is under way or unacknowledged
  bool connected() const { return session_.connected(); }

 private:
  /// A run from its assignment to the acknowledgement of its last batch.
  struct Held {
    RunSpool spool;
    std::string token;                          ///< as its assignment had it; it goes with every batch
    std::optional<ablate::v1::Assign> waiting;  ///< its slots are not free yet
    std::unique_ptr<Run> run;                   ///< none: waiting, or of an earlier program
    bool under_way = false;                     ///< its program may be alive
    bool fenced = false;                        ///< killed; only its slots are still taken
    std::uint64_t sent = 0;                     ///< newest batch sent in this session
  };
  struct State {
    std::map<std::uint32_t, Held> runs;
    std::map<std::uint32_t, std::uint32_t> taken;  ///< slot -> run
    std::vector<ablate::v1::WorkerMessage> refusals;
    std::vector<std::unique_ptr<Run>> over;  ///< their threads are about to end
    std::chrono::milliseconds heartbeat_every{1000};
    bool heartbeat_due = false;
    std::string stopping;  ///< why; empty: it is not
    std::string store_id;  ///< of the results file that its scheduler has
  };

  ablate::v1::Hello hello() override;
  std::optional<ablate::v1::WorkerMessage> next() override;
  void receive(const ablate::v1::SchedulerMessage& message) override;
  void append(std::uint32_t run, const ablate::v1::RunBatch& batch) override;
  void finished(std::uint32_t run, std::optional<ablate::v1::RunBatch> last) override;

  void assign(State& state, const ablate::v1::Assign& assign);
  std::string cannot_run(const State& state, const ablate::v1::Assign& assign) const;
  void start_waiting(State& state);
  void stop_run(Held& held, const std::string& reason);
  static void note_store(State& state, const std::string& id);
  void fence(State& state, std::uint32_t run, const std::string& reason);
  void acknowledge(State& state, std::uint32_t run, std::uint64_t seq);

  const AgentOptions options_;
  const Clock& clock_;
  const std::string instance_;
  Guarded<State> state_;
  std::chrono::steady_clock::time_point last_heartbeat_{};
  Session session_;
};

}  // namespace abl::agent
