// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ablate/v1/depot.pb.h"
#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "base/error.h"
#include "scheduler/lease_policy.h"
#include "scheduler/placement.h"
#include "storage/part_store.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"

namespace abl::scheduler {

/// The way to one worker.
/// Thread: all methods, from any.
class WorkerChannel {
 public:
  virtual ~WorkerChannel() = default;
  /// Sends after what was sent before; nothing happens when the session is over.
  virtual void send(ablate::v1::SchedulerMessage message) = 0;
  virtual void close(const Error& reason) = 0;
};

/// One worker's session: who it is, as it said in its Hello. Constant while it lasts.
struct Session {
  std::uint64_t id = 0;
  ablate::v1::Hello hello;
  std::shared_ptr<WorkerChannel> channel;
};

/// What is wrong with a worker, in its own words.
struct Ailments {
  std::string trouble;                               ///< why it can run nothing, or empty
  std::map<std::string, std::string> data, weights;  ///< names that it cannot offer now -> why
  std::map<Wanted, std::string> wrong_weights;       ///< of which it has another file -> how that differs
  bool operator==(const Ailments&) const = default;

  /// As a Hello or a Heartbeat says it.
  template <class Message>
  static Ailments of(const Message& message) {
    Ailments ailments{message.trouble(),
                      {message.gone_data().begin(), message.gone_data().end()},
                      {message.gone_weights().begin(), message.gone_weights().end()},
                      {}};
    for (const auto& wrong : message.wrong_weights())
      ailments.wrong_weights.emplace(Wanted{wrong.name(), wrong.sha256()}, wrong.reason());
    return ailments;
  }
  /// In one line, for people; empty: nothing is.
  std::string text() const;
};

/// The connected workers and what their slots are busy with. In a slot one run executes, the longest there;
/// the others are leased ahead. Thread: the coordinator's.
class Fleet {
 public:
  /// Takes a session up that goes on with `runs`, in ascending order. Its Hello says which of them execute in
  /// which slots; younger ones that were leased for these slots wait there. `parts`: what it does of others'
  /// runs. Returns: the session that it replaces (same worker name), or nullptr.
  std::shared_ptr<const Session> add(std::shared_ptr<const Session> session,
                                     const std::vector<storage::RunUnderWay>& runs, Time now,
                                     const std::vector<storage::RunPart>& parts = {});
  /// True when the session was there.
  bool remove(std::uint64_t session);

  void heard(std::uint64_t session, Time now);
  /// True when the run has said nothing in this session before.
  bool first_batch(std::uint64_t session, storage::RunId run);
  /// It is stopping and gets nothing more. Returns: whether that is news.
  bool drain(std::uint64_t session);
  /// Somebody wants a worker to get nothing, and why; nothing: it may get trials.
  void set_drained(const std::string& worker, const std::optional<std::string>& reason);
  /// A worker gets one trial at a time, none before `until`, and why; nothing: it gets what it can take.
  void set_quarantine(const std::string& worker, const std::optional<std::string>& why, Time until);
  /// Of workers in quarantine, those whose time is over may get their one trial. Returns: whether that is
  /// news.
  bool end_rests(Time now);
  /// Whether a run is that one trial.
  bool is_probe(storage::RunId run) const;
  /// Whether a worker but this one could take such trials.
  bool could_go_elsewhere(const Demand& demand, const std::string& worker) const;
  /// What is wrong with it, as it said last. Returns: whether that is news.
  bool ails(std::uint64_t session, const Ailments& ailments);
  /// What is known of a run that is leased.
  struct Kind {
    int priority = 0;         ///< of its trial
    bool resumable = false;   ///< it writes a checkpoint when it is stopped
    bool quick = false;       ///< others may be leased behind it
    double memory_bytes = 0;  ///< that it takes of its GPU, where others may be put beside it; 0: none may
    bool beside = false;      ///< it executes at once, beside those that do in its slot
  };
  void occupy(std::uint64_t session, storage::RunId run, const std::vector<std::uint32_t>& slots,
              const Kind& kind, Time now);
  void release(storage::RunId run, Time now);
  /// A worker's part of another one's run: nothing else goes into these slots.
  void occupy_part(std::uint64_t session, storage::RunId run, const std::vector<std::uint32_t>& slots);
  /// Returns: whether it had one.
  bool release_part(std::uint64_t session, storage::RunId run);
  /// Of whom a run has parts.
  std::vector<std::shared_ptr<const Session>> sessions_with_part_of(storage::RunId run) const;
  /// The runs that execute in a slot.
  std::vector<storage::RunId> executing(std::uint64_t session, std::uint32_t slot) const;
  /// Other runs in a run's slot, on the average since it was leased.
  double beside(storage::RunId run, Time now) const;

  /// Which content each data set's name stands for, and which are in the depot for workers that lack them.
  /// Returns: whether that is news.
  bool set_data(std::map<std::string, std::string> pins, std::set<std::string> pushed);
  /// Where a worker's data sets lie and what they are, as it says. Returns: whether that is news.
  bool has_data(std::uint64_t session,
                const google::protobuf::RepeatedPtrField<ablate::v1::DataPlace>& places);
  /// By name, for people: who has it, and why it cannot be used there.
  std::map<std::string, std::vector<ablate::v1::DataOnWorker>> data() const;

  /// It has another version of this data set, or of these weights: it gets no trial that needs it. Of weights
  /// it says so itself when it has looked at its file; from then on its own word holds (`ails`).
  void refuse_data(std::uint64_t session, const std::string& data, const std::string& reason);
  void refuse_weights(std::uint64_t session, const Wanted& weights, const std::string& reason);
  /// What is wrong with it for people: what it says, and what else it gets no trial for. Empty: nothing.
  std::string trouble(std::uint64_t session, const Ailments& said) const;

  /// A session by its id, by its worker's name, or by a run that it executes; nullptr when there is none.
  std::shared_ptr<const Session> session(std::uint64_t id) const;
  std::shared_ptr<const Session> session_of(const std::string& worker) const;
  std::shared_ptr<const Session> session_with(storage::RunId run) const;
  std::vector<std::shared_ptr<const Session>> all() const;
  std::vector<std::shared_ptr<const Session>> silent(const LeasePolicy& policy, Time now) const;

  /// For placement, which marks the slots that it gives; what comes of that is said by `occupy`, or taken
  /// back by `unmark`.
  std::vector<WorkerState>& workers() { return workers_; }
  void unmark(const Placement& placement);
  /// Of a trial that nobody knows to be short: nothing is leased behind it.
  void mark_slow(const Placement& placement);
  bool any_free() const;
  /// What is left of the workers' time, for placement. Returns: whether the time of any of them ends.
  bool note_time(Time now);

  /// Runs that were leased ahead and wait, to be recalled, each named once: those of a lower priority on
  /// workers that could take this trial; those behind a run that has been executing since before `since`; all
  /// of a worker.
  std::vector<storage::RunId> recall_for(const Demand& trial, int priority);
  std::vector<storage::RunId> recall_behind(
      Time since);  // and nothing more is leased there until it has ended
  std::vector<storage::RunId> recall_of(const std::string& worker);
  /// Runs that are to give way to so many trials like this one, each named once: of a lower priority and
  /// resumable, on the worker where fewest have to stop; of these the lowest priority first, then those that
  /// have run shortest. Nothing for a trial that has the slots as soon as those named before have ended.
  std::vector<storage::RunId> preempt_for(const Demand& trial, int priority, std::size_t trials);
  /// They could not be told to give way and may be named again.
  void not_preempted(const std::vector<storage::RunId>& runs);

 private:
  struct Held {
    std::vector<std::uint32_t> slots;  // none: it has only batches left to send
    int priority = 0;
    bool resumable = false;
    bool quick = false;
    bool recalled = false;  // where it waits; it may have begun before its worker heard of that
    bool stopping = false;  // its slots will soon be free
    double memory_bytes = 0;
    Time leased{};
    double shared_ms = 0;  // other runs in its slot times their time, until its line's `changed`
  };
  struct Line {  // at a slot
    std::deque<storage::RunId> runs;
    std::set<storage::RunId> beside;  // that execute as the first one does
    Time changed{};                   // those that execute
    Time since{};                     // the first one executes
    bool slow = false;                // and takes long
  };
  struct Entry {
    std::shared_ptr<const Session> session;
    Time last_heard{};
    std::map<storage::RunId, Held> runs;
    std::set<storage::RunId> heard_of;  // of them, those that have sent a batch
    std::map<std::uint32_t, Line> lines;
    std::map<storage::RunId, std::vector<std::uint32_t>> parts;  // of other workers' runs -> slots
    std::map<Wanted, std::string> wrong_data, wrong_weights;     // how it differs
    std::map<std::string, ablate::v1::DataPlace> data;           // by name, as it said last
    Ailments ailments;
    Time rests_until{};        // in quarantine
    storage::RunId probe = 0;  // the one run that it has got there
  };
  template <class Wanted>
  std::vector<storage::RunId> recall_if(Wanted wanted);
  WorkerState& state(std::uint64_t session);
  void count_priority(const Held& held, int sign);
  void mark(const Entry& entry, std::uint32_t slot);
  static void count_shared(Entry& entry, Line& line, Time now);
  void note_files(const Entry& entry);
  std::map<Wanted, std::string> other_data(const Entry& entry) const;

  std::map<std::uint64_t, Entry> entries_;
  std::unordered_map<storage::RunId, std::uint64_t> session_of_run_;
  std::vector<WorkerState> workers_;       // of each entry, in the same order
  std::map<int, std::size_t> priorities_;  // of the runs in slots -> how many
  std::map<std::string, std::string> pins_;
  std::set<std::string> pushed_;
};

/// Throws: Error{kFailedPrecondition} naming both ranges when worker and scheduler speak no common protocol
/// version, Error{kInvalidArgument} when the name is empty or two slots have one index.
void check_hello(const ablate::v1::Hello& hello, std::uint32_t lowest_protocol,
                 std::uint32_t highest_protocol);

/// A connected worker as it is stored.
storage::WorkerRecord worker_record(const ablate::v1::Hello& hello, Time now);

}  // namespace abl::scheduler
