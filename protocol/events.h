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
#include <utility>

namespace abl::protocol {

/// What a trainer says, in the words of docs/trainer-protocol.md. Thread: any.
class Events {
 public:
  virtual ~Events() = default;
  struct Start {
    std::int64_t total_steps = 0;
    std::int64_t images_per_step = 0;
    std::optional<std::int64_t> resumed_step;
    bool bit_exact = true;
    std::string data_fingerprint;
    nlohmann::json environment;
  };
  virtual void start(const Start& start) = 0;
  virtual void metric(std::int64_t step, const std::map<std::string, double>& values) = 0;
  virtual void log(const std::string& level, const std::string& text) = 0;
  virtual void checkpoint(std::int64_t step, const std::filesystem::path& path,
                          const std::string& sha256) = 0;
  virtual void end(const std::string& status, const std::string& reason, bool retryable) = 0;
  /// What of the machine made a run fail: another machine may have it.
  struct Fault {
    std::string part;                ///< "disk", "device" or "data"
    std::uint64_t needed_bytes = 0;  ///< of a disk; 0: not known
  };
  /// In place of `end`, of a run that failed by the machine's fault.
  virtual void end_by(const Fault& fault, const std::string& reason) {
    (void)fault;
    end("failed", reason, true);
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
  void log(const std::string& level, const std::string& text) override;
  void checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256) override;
  void end(const std::string& status, const std::string& reason, bool retryable) override;
  void end_by(const Fault& fault, const std::string& reason) override;
  bool heard() const override { return heard_; }

 private:
  void say(const nlohmann::json& event);
  const std::function<void()> on_loss_ = [] {};
  std::atomic<bool> heard_ = true;
  std::mutex mutex_;
};

/// Those of a rank that is not the first: it says how it ended, and nothing else.
class QuietEvents final : public Events {
 public:
  void start(const Start&) override {}
  void metric(std::int64_t, const std::map<std::string, double>&) override {}
  void log(const std::string&, const std::string&) override {}
  void checkpoint(std::int64_t, const std::filesystem::path&, const std::string&) override {}
  void end(const std::string& status, const std::string& reason, bool retryable) override {
    lines_.end(status, reason, retryable);
  }
  void end_by(const Fault& fault, const std::string& reason) override { lines_.end_by(fault, reason); }

 private:
  JsonLines lines_;
};

}  // namespace abl::protocol
