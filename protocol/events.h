// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/enum_names.h"
#include "base/log.h"
#include "protocol/failure.h"

/// What a trainer says, in the words of docs/trainer-protocol.md: here it is written and read.
namespace abl::protocol {

struct Start {
  std::int64_t total_steps = 0;  ///< 0: it did not say
  std::int64_t images_per_step = 0;
  std::optional<std::int64_t> resumed_step;
  bool bit_exact = true;
  std::string data_fingerprint;
  nlohmann::json environment;  ///< an object; null where it said none
};
struct Metric {
  std::int64_t step = 0;
  std::map<std::string, double> values;
};
struct Log {
  LogLevel level = LogLevel::kInfo;
  std::string text;
};
struct Checkpoint {
  std::int64_t step = 0;
  std::filesystem::path path;  ///< may be relative to the run's folder
  std::string sha256;          ///< empty: it did not say
  std::filesystem::path best;  ///< of the best evaluation so far: where the same file stays; empty: it is not
};
/// What was found by looking into the model (protocol/probe_results.h).
struct Probe {
  std::int64_t step = 0;  ///< after which its weights were
  std::filesystem::path
      path;              ///< of a file that says it, may be relative to the run's folder; empty: `found`
  nlohmann::json found;  ///< an object
};
/// The model is trained, and its checkpoints are there. What follows are probes: however they end, the run
/// has completed.
struct Trained {};
/// Where the ranks of other machines find those of this one.
struct Rendezvous {
  std::string address;  ///< HOST:PORT
};
/// What of the machine made a run fail: another machine may have it.
struct Fault {
  enum class Part { kDisk, kDevice, kData, kFile };
  Part part = Part::kDisk;
  std::uint64_t needed_bytes = 0;  ///< of a disk; 0: not known
};
constexpr std::string_view name_of(Fault::Part part) {
  switch (part) {
    case Fault::Part::kDisk:
      return "disk";
    case Fault::Part::kDevice:
      return "device";
    case Fault::Part::kData:
      return "data";
    case Fault::Part::kFile:
      return "file";
  }
  return {};
}
struct End {
  enum class Status { kCompleted, kStopped, kFailed };
  Status status = Status::kFailed;
  std::string reason;
  bool retryable = true;
  std::optional<Fault> fault;
  std::optional<FailureClass> failure{};  ///< whose it is, where the program knows better than its exit code
};
constexpr std::string_view name_of(End::Status status) {
  switch (status) {
    case End::Status::kCompleted:
      return "completed";
    case End::Status::kStopped:
      return "stopped";
    case End::Status::kFailed:
      return "failed";
  }
  return {};
}
using Event = std::variant<Start, Metric, Log, Checkpoint, Probe, Trained, Rendezvous, End>;

/// Reads an event as leniently as programs write it: a step may be 3.0 or "3", keys that have a default may
/// be missing, unknown ones are left out. Nothing where the object is no event, or one of an unknown name.
/// Throws: Error{kInvalidArgument} naming the key that is wrong.
std::optional<Event> parse_event(const nlohmann::json& object);

/// One line of JSON with its end.
std::string to_line(const Event& event);

/// Where a trainer says its events. Thread: any.
class Events {
 public:
  virtual ~Events() = default;
  using Start = protocol::Start;
  using Fault = protocol::Fault;
  using Status = End::Status;
  virtual void start(const Start& start) = 0;
  virtual void metric(std::int64_t step, const std::map<std::string, double>& values) = 0;
  virtual void log(LogLevel level, const std::string& text) = 0;
  virtual void checkpoint(std::int64_t step, const std::filesystem::path& path,
                          const std::string& sha256) = 0;
  /// In place of `checkpoint`, of the best evaluation so far. `best`: where the same file stays when `path`
  /// goes.
  virtual void best_checkpoint(std::int64_t step, const std::filesystem::path& path,
                               const std::string& sha256, const std::filesystem::path& best) {
    (void)best;
    checkpoint(step, path, sha256);
  }
  virtual void trained() {}
  /// `file`: what was found, as JSON.
  virtual void probe(std::int64_t step, const std::filesystem::path& file) { (void)step, (void)file; }
  /// Of a run over several machines, once they may come.
  virtual void rendezvous(const std::string& address) { (void)address; }
  virtual void end(Status status, const std::string& reason, bool retryable) = 0;
  /// In place of `end`, of a run that failed and knows whose failure it is.
  virtual void end_as(FailureClass failure, const std::string& reason, bool retryable) {
    (void)failure;
    end(Status::kFailed, reason, retryable);
  }
  /// In place of `end`, of a run that failed by the machine's fault.
  virtual void end_by(const Fault& fault, const std::string& reason) {
    (void)fault;
    end(Status::kFailed, reason, true);
  }
  /// Whether all that was said so far was taken.
  virtual bool heard() const { return true; }
};

/// One JSON object a line on stdout, each written whole. When stdout takes no more, since its reader has gone
/// or its disk is full, stderr says so and gets the lines from that one on.
class JsonLines final : public Events {
 public:
  JsonLines() = default;
  /// `on_loss` is called once, when stdout takes no more, by the thread that had something to say.
  explicit JsonLines(std::function<void()> on_loss) : on_loss_{std::move(on_loss)} {}
  void start(const Start& start) override;
  void metric(std::int64_t step, const std::map<std::string, double>& values) override;
  void log(LogLevel level, const std::string& text) override;
  void checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256) override;
  void best_checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256,
                       const std::filesystem::path& best) override;
  void trained() override;
  void probe(std::int64_t step, const std::filesystem::path& file) override;
  void rendezvous(const std::string& address) override;
  void end(Status status, const std::string& reason, bool retryable) override;
  void end_as(FailureClass failure, const std::string& reason, bool retryable) override;
  void end_by(const Fault& fault, const std::string& reason) override;
  bool heard() const override { return heard_; }

 private:
  void say(const Event& event);
  const std::function<void()> on_loss_ = [] {};
  std::atomic<bool> heard_ = true;
  std::mutex mutex_;
};

/// Those of a rank that is not the first: it says how it ended, and nothing else.
class QuietEvents final : public Events {
 public:
  void start(const Start&) override {}
  void metric(std::int64_t, const std::map<std::string, double>&) override {}
  void log(LogLevel, const std::string&) override {}
  void checkpoint(std::int64_t, const std::filesystem::path&, const std::string&) override {}
  void end(Status status, const std::string& reason, bool retryable) override {
    lines_.end(status, reason, retryable);
  }
  void end_as(FailureClass failure, const std::string& reason, bool retryable) override {
    lines_.end_as(failure, reason, retryable);
  }
  void end_by(const Fault& fault, const std::string& reason) override { lines_.end_by(fault, reason); }

 private:
  JsonLines lines_;
};

}  // namespace abl::protocol
