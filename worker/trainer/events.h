// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace abl::trainer {

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
    std::string part;                ///< "disk" or "device"
    std::uint64_t needed_bytes = 0;  ///< of a disk; 0: not known
  };
  /// In place of `end`, of a run that failed by the machine's fault.
  virtual void end_by(const Fault& fault, const std::string& reason) {
    (void)fault;
    end("failed", reason, true);
  }
};

/// One JSON object a line on stdout, each written whole.
class JsonLines final : public Events {
 public:
  void start(const Start& start) override;
  void metric(std::int64_t step, const std::map<std::string, double>& values) override;
  void log(const std::string& level, const std::string& text) override;
  void checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256) override;
  void end(const std::string& status, const std::string& reason, bool retryable) override;
  void end_by(const Fault& fault, const std::string& reason) override;

 private:
  void say(const nlohmann::json& event);
  std::mutex mutex_;
};

}  // namespace abl::trainer
