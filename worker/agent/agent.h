// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "worker/agent/crew.h"
#include "worker/agent/data_cache.h"
#include "worker/agent/depot_link.h"
#include "worker/agent/fingerprints.h"
#include "worker/agent/health.h"
#include "worker/agent/launch.h"
#include "worker/agent/parts.h"
#include "worker/agent/resource_buffer.h"
#include "worker/agent/resource_sampler.h"
#include "worker/agent/run.h"
#include "worker/agent/session.h"
#include "worker/agent/slots.h"
#include "worker/agent/spool.h"

namespace abl::agent {

struct AgentOptions {
  std::string scheduler;                 ///< "unix:/run/ablate/scheduler.sock" or "host:port"
  access::ClientAccess access{};         ///< how it is reached
  std::filesystem::path spool;           ///< folder of the runs' spools
  std::filesystem::path fingerprints{};  ///< file that keeps those of its data sets; empty: none does
  std::filesystem::path
      pushed_data{};  ///< folder of data sets from the scheduler's depot; empty: it takes none
  std::uint64_t data_limit = std::uint64_t{10} << 30;  ///< bytes of these
  std::string name, version;
  std::uint32_t result_version = 0;  ///< of the trainer; 0: there is none
  bool allow_commands = false;
  bool shared_runs = false;  ///< other machines see the runs' folders: nobody needs copies of checkpoints
  std::map<std::string, std::string> labels{};  ///< what sweeps may ask for: gpu -> h100
  std::vector<Slot> slots;
  RunSettings runs;
  Backoff backoff;
  std::optional<std::chrono::steady_clock::time_point> ends{};  ///< it asks its runs to stop then
  Milliseconds sample_every = ResourceSampler::kShortest;       ///< what young runs take of the machine
  Milliseconds first_probe{1000}, longest_probe{60000};  ///< between two looks at what is wrong with it
};

/// The worker: takes assignments, runs them in its slots, and sends what they say until it is acknowledged.
///
/// State is one map of runs under one lock, which is never held while the disk works: a slow disk delays no
/// heartbeat. Runs write their spools on their own threads, and hand what they have written on while it is in
/// memory; whatever else the disk has to do, reading, deleting, is done by one thread, the clerk, piece by
/// piece. The session calls in from its own.
///
/// A run whose slots are taken waits, and starts as soon as they are free, in the order of the runs' numbers,
/// in which they were leased. Nothing of it is on disk before it starts.
class Agent final : private Peer, private RunOwner {
 public:
  /// Opens the spools that an earlier program left; their runs died with it and end as lost, so that their
  /// trials go on from their last checkpoints. What is left of their programs is killed. Then connects.
  /// Throws: Error when a spool cannot be read.
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
  static constexpr std::uint64_t kWindow = 64;  ///< batches of a run that are sent and not acknowledged

  /// A run from its assignment to the acknowledgement of its last batch.
  struct Held {
    std::shared_ptr<RunSpool> spool;
    std::string token;                               ///< as its assignment had it; it goes with every batch
    std::string store;                               ///< the results file that it is in
    WantedDigests weights;                           ///< that its trial wants, where it says which files
    std::optional<ablate::v1::Assign> waiting;       ///< its slots are not free yet
    std::unique_ptr<Run> run;                        ///< none: waiting, or of an earlier program
    std::optional<ablate::v1::RunBatch> last_words;  ///< of one that never ran, for the clerk to write
    bool under_way = false;                          ///< its program may be alive
    bool fenced = false;                             ///< killed, or refused; only its slots are still taken
    std::uint64_t sent = 0;                          ///< newest batch read for this session
    std::uint64_t acknowledged = 0;
    std::chrono::steady_clock::time_point unread_until{};  ///< its spool could not be read
  };
  using Runs = std::map<std::uint32_t, Held>;
  struct State {
    Runs runs;
    std::multimap<std::uint32_t, std::uint32_t> taken;  ///< slot -> run; several where they share its GPU
    std::vector<ablate::v1::WorkerMessage> refusals;    ///< and ends of parts
    std::map<std::uint32_t, ablate::v1::Assign>
        waiting_parts;                              ///< of other workers' runs; their slots are not free yet
    std::deque<ablate::v1::WorkerMessage> outbox;   ///< batches of the spools
    bool outbox_was_full = false;                   ///< the clerk waits for room
    std::uint64_t session = 0;                      ///< counts them
    std::uint32_t last_read = 0;                    ///< run: the next one's turn comes after it
    std::deque<std::shared_ptr<RunSpool>> leaving;  ///< to be deleted
    std::deque<WantedDigests> doubted;              ///< of fenced runs: their files may be others
    std::vector<std::unique_ptr<Run>> over;         ///< about to leave their threads
    std::chrono::milliseconds heartbeat_every{1000};
    std::string stopping;  ///< why; empty: it is not
    std::string store_id;  ///< of the results file that its scheduler has
    bool clerk_due = false;
  };
  using Lock = Guarded<State>::Lock;

  ablate::v1::Hello hello() override;
  std::optional<ablate::v1::WorkerMessage> next() override;
  void receive(const ablate::v1::SchedulerMessage& message) override;

  void append(std::uint32_t run, const ablate::v1::RunBatch& batch) override;
  std::uint64_t backlog(std::uint32_t run) override;
  void starts(std::uint32_t run, const std::filesystem::path& directory, std::optional<pid_t> group) override;
  std::unique_ptr<ResourceSampler::Watch> watch(SampledRun run) override {
    return sampler_.watch(std::move(run));
  }
  void troubled(const Trouble& trouble) override;
  std::string fault(const ablate::v1::Assign& assign, Asked asked) override;
  std::string fetch(std::uint32_t run, const std::string& sha256, std::uint64_t bytes,
                    const std::filesystem::path& file, const std::function<bool()>& go_on) override;
  bool brings() override { return courier_.brings(); }
  void bring(std::uint32_t run, bool wanted, const std::function<bool()>& go_on) override;
  DataCache::Held fetch_data(const ablate::v1::Assign& assign, const std::function<bool()>& go_on) override;
  void vacated(std::uint32_t run) override;
  void finished(std::uint32_t run, std::optional<ablate::v1::RunBatch> last) override;
  void refused(std::uint32_t run, const std::string& reason) override;
  std::shared_ptr<RunSpool> spool_of(std::uint32_t run);
  std::string token_of(std::uint32_t run);
  std::string other_data(const ablate::v1::Assign& assign);
  template <class Message>
  void say_data(Message& message) const;

  void assign(State& state, const ablate::v1::Assign& assign);
  void assign_part(State& state, const ablate::v1::Assign& assign);
  void start_part(State& state, const ablate::v1::Assign& assign);
  void stop_part(State& state, std::uint32_t run, const std::string& reason);
  void say_part_over(State& state, std::uint32_t run, const std::string& token, const std::string& reason);
  std::string cannot_run(const State& state, const ablate::v1::Assign& assign) const;
  void refuse(State& state, std::uint32_t run, const std::string& reason);
  void start_waiting(State& state);
  void start(State& state, std::uint32_t run, Held& held);
  void hand_back_waiting(State& state);
  bool offer(State& state, std::uint32_t run);
  void stop_run(State& state, Held& held, const std::string& reason, bool lost = false);
  static void note_store(State& state, const std::string& id);
  void fence(State& state, std::uint32_t run, const std::string& reason);
  void acknowledge(State& state, std::uint32_t run, std::uint64_t seq);
  bool settle(State& state, Runs::iterator held);
  void call_clerk(State& state);

  void work_as_clerk(const std::stop_token& stop);
  bool do_one_thing(Lock& state);
  bool delete_spool(Lock& state);
  bool write_last_words(Lock& state);
  bool drop_acknowledged(Lock& state);
  bool read_batch(Lock& state);
  bool look_at_weights(Lock& state);

  const AgentOptions options_;
  const Clock& clock_;
  const std::string instance_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Crew crew_;
  SpoolFiles files_;
  Guarded<State> state_;
  std::condition_variable_any clerk_wake_;
  std::atomic<bool> heartbeat_due_ = false;
  std::atomic<bool> data_due_ = false;  ///< its data sets are others than it said last
  std::chrono::steady_clock::time_point last_heartbeat_{};
  Session session_;
  Health health_;
  Parts parts_;
  Fingerprints fingerprints_;
  DataCache data_cache_;
  DepotLink depot_;
  Courier courier_;
  ResourceBuffer resources_;
  ResourceSampler sampler_;
  std::jthread clerk_;
};

}  // namespace abl::agent
