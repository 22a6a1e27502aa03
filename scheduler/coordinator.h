// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ablate/v1/depot.pb.h"
#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "scheduler/change_feed.h"
#include "scheduler/dispatch.h"
#include "scheduler/failure_policy.h"
#include "scheduler/figures.h"
#include "scheduler/fleet.h"
#include "scheduler/lease_policy.h"
#include "scheduler/run_reports.h"
#include "scheduler/work_queue.h"
#include "storage/measured_store.h"
#include "storage/types.h"
#include "storage/writer.h"
#include "views/views.h"

namespace abl::scheduler {

/// The protocol versions of the worker stream that this scheduler speaks.
inline constexpr std::uint32_t kLowestProtocol = 1, kHighestProtocol = 1;

/// Decides what happens: takes sweeps in, leases trials to workers, stores what runs say.
///
/// Its thread is the writer's. Every change is a job of the writer, and everything that leaves the process
/// (an RPC's answer, an acknowledgement, an assignment) leaves in the callback after the commit, as does
/// every effect on the state in memory: the queue follows each commit. So one thread owns
/// the state, what was said is on disk, and when a commit fails (disk full) nothing was said and nothing has
/// changed. Thread: all methods, from any; callbacks run on the coordinator's.
class Coordinator {
 public:
  /// Called once, after the commit, with nullptr, or with what went wrong.
  template <class... Result>
  using Answer = std::function<void(std::exception_ptr, const Result&...)>;

  Coordinator(storage::Writer& writer, const Clock& clock, const LeasePolicy& policy, ChangeFeed& feed);

  /// Once, before anything else: nobody is connected, and live trainers get the time to come back.
  /// Throws: as Writer::call.
  void recover();

  /// Runs that a change leaves to be stopped, and why, as workers and stored runs say it.
  struct Stops {
    std::vector<storage::RunId> runs;
    std::string reason;
  };
  /// Makes one change to a sweep (scheduler/sweep_control.h has those that there are): `work`, told the time,
  /// is a job of the writer. After the commit `answer` is called, the sweep's watchers hear of it, and the
  /// queue is looked at. `what`: for the log.
  void change(const std::string& sweep, const char* what, std::function<Stops(storage::Database&, Time)> work,
              Answer<> answer);
  /// From now on a worker gets no trials, for this reason; nothing: it does again. `stop_running`: its runs
  /// checkpoint and go back to the queue. Answers Error{kNotFound} of a worker that never connected.
  void drain(const std::string& worker, const std::optional<std::string>& reason, bool stop_running,
             Answer<> answer);
  void store_counts(std::map<std::string, std::map<std::string, double>> counts, Answer<> answer);
  void keep_calibrations(std::vector<storage::Calibration> calibrations, Answer<> answer);
  /// `seconds`: of trials by their rows' config_hash.
  void keep_predictions(std::map<std::string, double> seconds, int gpus, Answer<> answer);

  /// What probes found in the model of a run, in place of what they found before.
  void put_probes(storage::RunId run, std::vector<views::ProbeRecord> found, Answer<> answer);

  /// Opens a session; `Welcome` follows. The messages of one session are to be handed over in the order in
  /// which they came.
  /// Throws: Error{kFailedPrecondition} when no protocol version is common, Error{kInvalidArgument} for a
  /// Hello that makes no sense.
  std::shared_ptr<const Session> open_session(ablate::v1::Hello hello,
                                              std::shared_ptr<WorkerChannel> channel);
  void receive(const std::shared_ptr<const Session>& session, const ablate::v1::WorkerMessage& message);
  void disconnected(const std::shared_ptr<const Session>& session);
  /// Closes every session: the scheduler stops. Leases stay.
  void close_sessions();

  /// Looks at the clock: ends leases that ran out and sessions that fell silent, and at the queue. To be
  /// called every second or so.
  void tick();

  /// Why nothing can be stored, in one line; empty: all is well. Its coming and going is published as a
  /// change of everything.
  /// Thread: any.
  std::string trouble() const { return *trouble_.lock(); }

  /// What its work comes to. Thread: any.
  const Figures& figures() const { return figures_; }
  /// From now on its figures say what waits for workers too (Figures::Needs). Before the first tick.
  void note_needs() { notes_needs_ = true; }
  /// From now on `mark` says of each assignment what the depot has of what it names, and workers hear how
  /// often they are to bring checkpoints. Before anybody connects.
  /// `pushed`: the data sets that the depot has, with their fingerprints.
  void serve_depot(std::function<void(ablate::v1::Assign&)> mark,
                   std::function<std::map<std::string, std::string>()> pushed, Milliseconds every) {
    mark_ = std::move(mark);
    pushed_ = std::move(pushed);
    depot_every_ = every;
  }
  /// Looks again what data sets' names stand for, and at the queue.
  void look_at_data(Answer<> answer);
  /// From now on a data set's name stands for another content: a fingerprint, or what a worker has.
  struct Repinned {
    std::string before, fingerprint;
    std::uint32_t trials = 0, waiting = 0;
  };
  void repin(const std::string& name, const std::string& fingerprint, const std::string& from_worker,
             bool dry_run, Answer<Repinned> answer);
  /// By a data set's name the connected workers that have it. Thread: any.
  std::map<std::string, std::vector<ablate::v1::DataOnWorker>> data() const { return *data_.lock(); }
  /// Of the results file, once `recover` has returned.
  const std::string& store_id() const { return store_id_; }
  /// Nothing is leased, for a commit could not be followed: the next tick reads the queue anew. Thread: any.
  bool has_lost_queue() const { return queue_lost_ > 0; }

  /// The queue as it is in memory and as it is stored (`WorkQueue::dump`): equal, between two commits. For
  /// tests. Throws: as Writer::call.
  std::pair<std::vector<std::string>, std::vector<std::string>> queue_and_store();

 private:
  template <class Work, class Then>
  void commit(Work work, Then then);
  void note_store(std::exception_ptr error);
  void follow_commit(storage::Database& db, const storage::Touched& touched);  // like all below, on the
                                                                               // coordinator's thread only
  void check_queue(storage::Database& db) const;
  void note_standing();
  void judge(storage::Database& db, const std::string& worker, bool measured, Reported& report);
  void learn(const std::string& worker, bool measured, bool probe, const Reported& report);
  void hold_on(const storage::SweepLevel& level, storage::HoldFrom from);
  void follow_holds(const Reported& report);
  void grow_on();
  void confine(std::vector<Quarantine::Change> changes);
  void count_workers();
  void look_at_queue();
  void dispatch_queue();
  void assign(const Pick& pick, const Dispatched* dispatched);
  void call_back(storage::RunId run);
  void preempt(const std::vector<storage::RunId>& runs, int priority);
  void explain_waiting();
  void hello(const std::shared_ptr<const Session>& session);
  void heartbeat(const std::shared_ptr<const Session>& session, const ablate::v1::Heartbeat& heartbeat);
  void batch(const std::shared_ptr<const Session>& session, const ablate::v1::RunBatch& batch);
  void refusal(const std::shared_ptr<const Session>& session, const ablate::v1::Refused& refused);
  void part_ended(const std::shared_ptr<const Session>& session, const ablate::v1::PartEnded& ended);
  void send_parts(const std::vector<std::pair<std::string, ablate::v1::Assign>>& parts);
  void stop_parts(storage::RunId run);
  bool current(const Session& session) const;
  void apply(const Session* session, const Reported& report);
  void stop_runs(const std::vector<storage::RunId>& runs, const std::string& reason);
  void publish(const std::vector<std::string>& sweeps, storage::RunId run = 0);
  void give_back(storage::RunId run);
  void close_silent(const std::shared_ptr<const Session>& session);
  void note_data(std::map<std::string, std::string> pins);

  storage::Writer& writer_;
  const Clock& clock_;
  const LeasePolicy policy_;
  std::function<void(ablate::v1::Assign&)> mark_;
  std::function<std::map<std::string, std::string>()> pushed_;
  mutable Guarded<std::map<std::string, std::vector<ablate::v1::DataOnWorker>>> data_;  // as of the last tick
  Milliseconds depot_every_{0};
  ChangeFeed& feed_;
  const bool
      checks_queue_;  ///< $ABLATE_CHECK_QUEUE, for tests: after each commit, at the price of reading all
  std::atomic<std::uint64_t> next_session_{1};
  std::string store_id_;
  bool notes_needs_ = false;
  Figures figures_;
  mutable Guarded<std::string> trouble_;  // what was said when store_failed_ became true

  // The state: of the coordinator's thread alone.
  Fleet fleet_;
  Quarantine quarantine_;
  std::map<std::string, std::uint64_t>
      newest_session_;  // by worker name, from the moment its Hello is handled
  struct StoredHeartbeat {
    Time at{};
    std::string trouble;
  };
  std::map<std::string, StoredHeartbeat> stored_heartbeats_;  // by worker name, of those that are connected
  WorkQueue queue_;
  bool recovered_ = false;  // it was read as a whole
  std::atomic<int> queue_lost_ =
      0;  // so often what a commit changed could not be read: it is to be read as a whole
  std::map<storage::ShapeId, std::string> waiting_reasons_;  // as stored
  bool explain_now_ = false;  // something happened that people wait to see explained
  bool explain_due_ = false;  // the reasons may have changed since they were written down
  bool dispatching_ = false,
       dispatch_again_ = false;  // one look at the queue at a time: the next must know the slots taken
  std::vector<std::pair<storage::SweepLevel, storage::HoldFrom>>
      holds_left_;             // of which the next step could not be stored
  bool looks_due_ = false;     // rows whose seeds a rule is to look at
  bool store_failed_ = false;  // since the last successful commit
  Time last_tick_{};           // by the steady clock, as every deadline
  Time last_tidied_{};
};

/// Runs `work` as one job of the writer, and `then(error, result)` after its commit.
template <class Work, class Then>
void Coordinator::commit(Work work, Then then) {
  using Result = std::invoke_result_t<Work, storage::Database&>;
  const auto result = std::make_shared<Result>();
  writer_.post([work = std::move(work), result](storage::Database& db) { *result = work(db); },
               [this, result, then = std::move(then)](std::exception_ptr error) {
                 note_store(error);
                 if (error) *result = Result{};  // the job may have had one, which is undone
                 then(error, *result);
               });
}

}  // namespace abl::scheduler
