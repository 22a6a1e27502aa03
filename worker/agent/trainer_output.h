// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "base/last_lines.h"
#include "protocol/events.h"
#include "protocol/failure.h"
#include "protocol/metric_source.h"

namespace abl::metrics {
class Finder;
}

namespace abl::agent {

/// What the batches of a run say beside the trainer's own words.
struct RunFacts {
  std::filesystem::path directory;  ///< the run's own folder
  std::string host;
  std::uint32_t resume_run = 0;                   ///< the run whose checkpoint the trainer was given; 0: none
  std::uint32_t resume_step = 0;                  ///< that checkpoint's
  std::size_t log_end = 0;                        ///< so much of the end of its log is kept to be looked at
  std::vector<protocol::MetricSource> sources{};  ///< of numbers that it does not say as events
};

/// What the trainer's `end` event said.
struct TrainerEnd {
  ablate::v1::RunEnded::Status status = ablate::v1::RunEnded::STATUS_UNSPECIFIED;
  std::string reason;
  bool retryable = true;
  std::optional<protocol::Fault::Part> fault;       ///< it is the machine's, not the trial's
  std::uint64_t needed_bytes = 0;                   ///< of a disk that had no room; 0: it did not say
  std::optional<protocol::FailureClass> failure{};  ///< whose it is, in its own words
};

/// For how long a trainer has waited for its data, of the training that its reports speak of.
struct DataWait {
  Seconds waited{}, of{};
};

/// Turns what a trainer prints (docs/trainer-protocol.md) into batches: events by their meaning, everything
/// else as log. A line that looks like an event and cannot be understood is kept as log, followed by the
/// reason; those of metrics are counted, since numbers are missing then. Where the sweep file says so,
/// numbers are looked for in the log, and in files of the run's folder. Thread: one.
class TrainerOutput {
 public:
  TrainerOutput(RunFacts facts, const Clock& clock);
  ~TrainerOutput();

  void read_stdout(std::string_view bytes);
  void read_stderr(std::string_view bytes);
  void note(std::string_view text);  ///< a line of the worker's own in the run's log
  /// A checkpoint that the program wrote and did not speak of. `sha256`: empty where nobody looked.
  void wrote_checkpoint(const std::filesystem::path& file, std::uint32_t step, const std::string& sha256);
  void launched(Time when);  ///< its program was started
  /// Reads on in the files that numbers are in, as much as one batch takes. Returns: whether anything came.
  bool look_at_files();
  /// The pipes are at their end, and files were read to theirs: what they left of a line counts as one.
  void close();
  /// Counts a line of metrics, or what else is of them, that is not taken.
  void refuse(std::string_view text, const std::string& problem);

  /// Content has waited for 250 ms, or is larger than 64 KiB.
  bool due() const;
  bool empty() const { return bytes_ == 0; }
  /// What came since the last `clear`, by ascending step for each metric.
  const ablate::v1::RunBatch& batch() const { return batch_; }
  void clear();
  /// Something is left for further batches: what a probe found may be large, and a batch has that of one.
  bool has_more() const { return !probes_.empty(); }
  /// Brings the next of that into the batch, if it has none. After a batch was taken care of.
  void read_more();
  /// What it has reported since the last call of how long it waited for its data (the metric time/data): each
  /// report is of the time since the one before.
  DataWait take_data_wait() { return std::exchange(data_wait_, {}); }
  /// Its program said that it has trained its model.
  bool trained() const { return trained_; }
  /// The run's last batch: what is left, and how it ended.
  ablate::v1::RunBatch take_last(ablate::v1::RunEnded ended);

  const std::optional<TrainerEnd>& said_end() const { return end_; }
  bool heard() const { return heard_; }  ///< any event
  /// The end of the log for a reason.
  std::string last_lines() const { return last_.text(); }
  /// The last `RunFacts::log_end` bytes of the log.
  std::string_view log_end() const;
  /// Whether the end of the log has what systems say where a write finds no room.
  bool speaks_of_full_disk() const;
  /// Whether the end of the log has these words.
  bool speaks_of(std::string_view words) const { return last_.bytes().find(words) != std::string::npos; }
  /// Or what programs say where memory, a disk or a quota has no more.
  bool speaks_of_exhaustion() const;
  /// The first metric value that is not finite, in words; empty: all are.
  const std::string& not_finite() const { return not_finite_; }
  /// The highest step that it has said a number of, or that was found; of a run that goes on, its
  /// checkpoint's.
  std::uint32_t highest_step() const { return highest_step_; }
  /// Why a run that has completed has no numbers where its sweep file says that they are; empty: it has.
  std::string lacks_metrics() const;
  /// It went on from a checkpoint, or had nothing left to do after it: what it lacks, the attempt before may
  /// have said.
  bool went_on() const { return facts_.resume_run != 0 && (went_on_ || !found_any_); }

 private:
  class Finds;
  void line(std::string_view text);
  void line(std::string_view whole, std::string_view text);
  bool event(const nlohmann::json& json);
  void take(const protocol::Start& start);
  void take(const protocol::Metric& metric);
  void take(const protocol::Log& log);
  void take(const protocol::Checkpoint& said);
  void take(const protocol::Probe& said);
  void take(const protocol::Trained&) { trained_ = true; }
  void take(const protocol::Rendezvous& rendezvous);
  void take(const protocol::End& end);
  void begin(bool resumed);
  void append_log(std::string_view bytes);
  void log_stdout(std::string_view bytes);
  void look_for_metrics(protocol::MetricSource::Stream stream, std::string_view bytes);
  void begin_found(std::uint32_t step);
  void add_point(const std::string& name, std::uint32_t step, double value);
  void note_data_wait(double share);
  void grow(std::size_t bytes);

  RunFacts facts_;
  const Clock& clock_;
  std::unique_ptr<metrics::Finder> finder_;  ///< null: nothing is looked for
  std::string stdout_rest_, stderr_rest_;    ///< the beginning of a line
  bool line_too_long_ = false;               ///< the stdout line is being passed on as log, in pieces
  ablate::v1::RunBatch batch_;
  std::size_t bytes_ = 0;                        ///< about the size of `batch_`
  Time since_{};                                 ///< when its first content came
  std::unordered_map<std::string, int> series_;  ///< name -> place in `batch_`
  std::uint32_t highest_step_ = 0;
  bool has_started_ = false, heard_ = false, found_any_ = false, went_on_ = false, trained_ = false;
  std::deque<protocol::Probe> probes_;  ///< that were said and are in no batch
  std::uint32_t probes_said_ = 0;
  bool probes_refused_ = false;  ///< and that was said
  LastLines last_;               ///< of the log
  std::string log_end_;
  std::string not_finite_;
  DataWait data_wait_;
  Time reported_;  ///< by the steady clock: the last report of that, or the begin of the training
  std::optional<TrainerEnd> end_;
};

}  // namespace abl::agent
