// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Runs of a sweep's trials, of one trial, older than one: of all where nothing is said.
struct WhichRuns {
  std::optional<SweepId> sweep = std::nullopt;
  std::optional<TrialId> trial = std::nullopt;
  RunId before = 0;
};

/// A run that is leased or running, as a scheduler that starts anew has to know it.
struct RunUnderWay {
  RunId id = 0;
  std::vector<std::uint32_t> slots{};  ///< of its worker, that it was leased for
  int priority = 0;                    ///< the highest of the sweeps that want its trial
  bool command = false;
  bool asked_to_stop = false;
};

/// The queue, leases and runs.
/// Thread: the connection's.
class TrialStore {
 public:
  /// So many workers in a row that died with nothing but this trial on them, or met trouble, and it is held.
  static constexpr int kDeathsInARow = 5;
  static constexpr std::chrono::minutes kLongestBackOff{10};  ///< after a loss

  explicit TrialStore(Database& db) : db_{db} {}

  TrialRecord get(TrialId trial) const;  ///< Throws: Error{kNotFound}
  /// The trial with this identity that may be shared: its fingerprint is the pinned one of its data, or not
  /// known yet.
  std::optional<TrialRecord> find_same(const std::string& config_hash, int result_version,
                                       const std::string& data) const;
  /// A completed trial of the same document whose results are of an older version: they are not reused.
  std::optional<TrialRecord> find_before_mend(const std::string& config_hash, int result_version) const;
  /// Why a queued trial waits, where that is of it alone (a back-off, a refusal), kept until it is leased or
  /// the next call; empty: for what its shape waits (`QueueStore::set_waiting`).
  void set_waiting(TrialId trial, const std::string& reason);
  /// The reasons of back-offs that were over by `now` (steady) go.
  void end_back_offs(Time now);

  /// Leases a queued trial to `worker` until `expires` as a new run, in these of its slots; nothing when it
  /// is no longer queued, or no active sweep wants it.
  std::optional<Lease> lease(TrialId trial, const std::string& worker, const std::string& host, Time now,
                             Time expires, const std::vector<std::uint32_t>& slots = {});
  /// Extends the lease of a leased or running run. False: the run is not under way (any more): it is fenced.
  bool renew(RunId run, Time expires);
  /// Extends every lease there is: after a restart workers get the time to come back.
  void renew_all(Time expires);
  /// No trial backs off for longer from now on than its failures and losses make it: what was stored before a
  /// restart is of another clock, and may be anywhere by this one.
  void limit_back_offs(Time now);
  /// Leases that ran out by `now` (steady).
  std::vector<RunId> expired(Time now) const;
  /// The worker of these runs died, or fell silent: notes which of them was all that it had. To be called
  /// before any of them ends.
  void note_death(const std::vector<RunId>& runs);
  /// Takes a run up again that its silent worker still has: it goes on, and its loss counts for nothing.
  /// False when another attempt has the trial, or nobody wants it: the run stays lost.
  bool adopt(RunId run, Time expires);

  /// Remembers that runs under way were asked to stop, and why.
  void ask_to_stop(const std::vector<RunId>& runs, const std::string& reason);
  /// A sweep wants its trials again: what was not told to a worker yet need not be.
  void take_stops_back(SweepId sweep);

  /// Runs under way that share a GPU with so many others now.
  void note_packed(const std::vector<RunId>& runs, std::uint32_t others);

  /// A run is under way exactly when it is leased or running, and the newest of its trial.
  bool under_way(RunId run) const;
  std::vector<RunId> under_way_on(const std::string& worker) const;
  std::vector<RunUnderWay> runs_under_way_on(const std::string& worker) const;  ///< in the order of leases
  /// Slots of a worker that have runs under way: index -> the oldest, then others that run beside it. Runs
  /// leased ahead for a slot that has one are left out.
  std::map<std::uint32_t, std::vector<RunId>> slots_in_use(const std::string& worker) const;
  std::uint32_t count_under_way() const;  ///< trials, on any worker

  struct Started {
    std::uint32_t total_steps = 0;
    std::string data_fingerprint, directory, environment_json;
    std::map<std::string, std::string> weights;  ///< name -> SHA-256 of the file
    std::optional<std::uint32_t> resumed_from_step;
    RunId resumed_from_run = 0;
    bool bit_exact = true;
  };
  /// leased -> running: its program was started, at `when` by its worker's clock, which is taken where it
  /// lies between its lease and `now`. A stale run is refused (kFailedPrecondition).
  void launch(RunId run, Time when, Time now);
  /// What the program said as it began; running from now on where `launch` was not told. A stale run is
  /// refused (kFailedPrecondition). Pins the data fingerprint of the
  /// trial's data and the digests of its weights on the first report; copies the metric points of the run it
  /// resumed from up to that step, so that every run holds its whole history, and is bit-exact when both are.
  /// Throws: Error{kFailedPrecondition} when the fingerprint or a digest is not the pinned one.
  void start(RunId run, const Started& started, Time now);
  /// How a run's data differ from those that this store's results are of; empty: they do not.
  std::string wrong_data(const RunRecord& run, const std::string& fingerprint) const;

  struct Ended {
    RunState state = RunState::kCompleted;  ///< completed | failed | stopped | lost
    std::string reason;
    std::optional<int> exit_code, signal;
    bool retryable = true;  ///< false: the same would happen again
    protocol::FailureClass failure =
        protocol::FailureClass::kTrial;       ///< of a failed one, before its trial's rules
    std::vector<std::string> log_patterns{};  ///< of these rules', those that the end of its log has
    bool silent = false;          ///< of a lost one: its lease ran out, its worker may still have it
    bool worker_trouble = false;  ///< of a lost one: its worker could not run it
    double beside = 0;            ///< other runs on its GPU, on the average of its time
    std::optional<Milliseconds>
        took{};  ///< from the start of its program to its end, where its worker says so
  };
  /// Ends a run. completed -> the trial is completed; stopped, lost -> queued again (cancelled when nobody
  /// claims it); failed -> queued again after a back-off (1 s, 2 s, 4 s … at most 60 s) while retries are
  /// left and `retryable`, otherwise failed with the reason. The trial's rules may give failures of this kind
  /// attempts of their own, or count them as another class: as infrastructure's, the run is lost.
  ///
  /// A loss is no fault of the trial and never fails it: the first leads to the queue at once, each further
  /// one that comes no further than those before to a longer back-off (1 s, 2 s … at most kLongestBackOff). A
  /// trial that was all that its worker had when that died, or that left its worker in trouble, or whose run
  /// over several workers could not go on, kDeathsInARow times in a row, may be the cause: it is held until
  /// somebody queues it again. Returns the trial's new state.
  /// Throws: Error{kFailedPrecondition} for a run that is not under way.
  TrialState end(RunId run, const Ended& ended, Moment now);

  /// Of what became of trials, step by step (the table `transition`), the newest so many are kept; 10,000 at
  /// most go with one call.
  static constexpr std::int64_t kMostTransitions = 1'000'000;
  void forget_transitions(std::int64_t keep = kMostTransitions);

  RunRecord run(RunId run) const;                       ///< Throws: Error{kNotFound}
  std::vector<RunRecord> runs_of(TrialId trial) const;  ///< by attempt
  /// At most `limit`, newest first.
  std::vector<RunRecord> list_runs(const WhichRuns& which, int limit) const;
  std::uint32_t count_runs(const WhichRuns& which) const;

  static constexpr std::size_t kMostCheckpoints = 100;  ///< of a run, those of the highest steps
  void add_checkpoint(const CheckpointRecord& checkpoint);
  /// Newest attempt first, then highest step; then those of the trial that it continues (sweep_extension.cc).
  std::vector<CheckpointRecord> checkpoints_of(TrialId trial) const;

  /// The pinned fingerprint of a data name, or nothing.
  std::optional<std::string> fingerprint(const std::string& data) const;

 private:
  void pin(const RunRecord& run, const std::string& reported);
  bool came_further(const RunRecord& run) const;
  bool claimed(TrialId trial) const;
  bool is_of(TrialId trial, TrialId other) const;
  void add_gpu_time(const TrialRecord& trial, RunId run, Milliseconds time);
  Database& db_;
};

}  // namespace abl::storage
