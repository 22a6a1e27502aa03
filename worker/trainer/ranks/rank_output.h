// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "worker/trainer/events.h"

namespace abl::trainer {

/// How a rank says that it ended.
struct RankEnd {
  std::string status, reason;
  bool retryable = true;
  std::optional<Events::Fault> fault;  ///< the machine's, of one that failed
};

/// What a rank prints: events on stdout, as docs/trainer-protocol.md has them, and anything on stderr. The
/// events but `end` are said again by `events`, its stderr goes on to ours. Thread: one.
class RankOutput {
 public:
  /// `events`: null for a rank whose events are not to be heard.
  RankOutput(int rank, Events* events) : rank_{rank}, events_{events} {}

  void read_stdout(std::string_view piece);
  void read_stderr(std::string_view piece);

  const std::optional<RankEnd>& said_end() const { return end_; }
  /// Of what it wrote to stderr; empty when there is nothing.
  std::string last_words() const;

 private:
  void take_event(const std::string& line);
  void take_log(const std::string& line);

  const int rank_;
  Events* const events_;
  std::string out_, err_;  ///< begun lines
  std::optional<RankEnd> end_;
  std::deque<std::string> last_;
};

}  // namespace abl::trainer
