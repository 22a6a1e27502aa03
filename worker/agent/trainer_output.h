// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "base/last_lines.h"
#include "protocol/failure.h"

namespace abl::protocol {
struct Start;
struct Metric;
struct Log;
struct Checkpoint;
struct Rendezvous;
struct End;
}  // namespace abl::protocol

namespace abl::agent {

/// What the batches of a run say beside the trainer's own words.
struct RunFacts {
  std::filesystem::path directory;  ///< the run's own folder
  std::string host;
  std::uint32_t resume_run = 0;   ///< the run whose checkpoint the trainer was given; 0: none
  std::uint32_t resume_step = 0;  ///< that checkpoint's
  std::size_t log_end = 0;        ///< so much of the end of its log is kept to be looked at
};

/// What the trainer's `end` event said.
struct TrainerEnd {
  ablate::v1::RunEnded::Status status = ablate::v1::RunEnded::STATUS_UNSPECIFIED;
  std::string reason;
  bool retryable = true;
  enum class Fault { kDisk, kDevice, kData };
  std::optional<Fault> fault;                       ///< it is the machine's, not the trial's
  std::uint64_t needed_bytes = 0;                   ///< of a disk that had no room; 0: it did not say
  std::optional<protocol::FailureClass> failure{};  ///< whose it is, in its own words
};

/// Turns what a trainer prints (docs/trainer-protocol.md) into batches: events by their meaning, everything
/// else as log. A line that looks like an event and cannot be understood is kept as log, followed by the
/// reason; those of metrics are counted, since numbers are missing then.
/// Thread: one.
class TrainerOutput {
 public:
  TrainerOutput(RunFacts facts, const Clock& clock);

  void read_stdout(std::string_view bytes);
  void read_stderr(std::string_view bytes);
  void note(std::string_view text);  ///< a line of the worker's own in the run's log
  void launched(Time when);          ///< its program was started
  void close();                      ///< the pipes are at their end: what they left of a line counts as one

  /// Content has waited for 250 ms, or is larger than 64 KiB.
  bool due() const;
  bool empty() const { return bytes_ == 0; }
  /// What came since the last `clear`, by ascending step for each metric.
  const ablate::v1::RunBatch& batch() const { return batch_; }
  void clear();
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

 private:
  void line(std::string_view text);
  void line(std::string_view whole, std::string_view text);
  bool event(const nlohmann::json& json);
  void take(const protocol::Start& start);
  void take(const protocol::Metric& metric);
  void take(const protocol::Log& log);
  void take(const protocol::Checkpoint& said);
  void take(const protocol::Rendezvous& rendezvous);
  void take(const protocol::End& end);
  void begin(bool resumed);
  void refuse(std::string_view text, const std::string& problem);
  void append_log(std::string_view bytes);
  void add_point(const std::string& name, std::uint32_t step, double value);
  void grow(std::size_t bytes);

  RunFacts facts_;
  const Clock& clock_;
  std::string stdout_rest_, stderr_rest_;  ///< the beginning of a line
  bool line_too_long_ = false;             ///< the stdout line is being passed on as log, in pieces
  ablate::v1::RunBatch batch_;
  std::size_t bytes_ = 0;                        ///< about the size of `batch_`
  Time since_{};                                 ///< when its first content came
  std::unordered_map<std::string, int> series_;  ///< name -> place in `batch_`
  bool has_started_ = false, heard_ = false;
  LastLines last_;  ///< of the log
  std::string log_end_;
  std::string not_finite_;
  std::optional<TrainerEnd> end_;
};

}  // namespace abl::agent
