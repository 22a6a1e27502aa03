// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/events.h"

namespace abl::trainer {

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

}  // namespace abl::trainer
