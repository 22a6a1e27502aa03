// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/log_limit.h"

#include <fmt/format.h>

#include <algorithm>

namespace abl::agent {
namespace {

constexpr std::uint64_t kLongestTail = 1 << 20;  // kept in memory, and well below gRPC's 4 MiB

}  // namespace

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
}

LogLimit::LogLimit(std::uint64_t limit)
    : limit_{limit}, tail_limit_{std::min(kLongestTail, limit / 2)}, head_left_{limit - tail_limit_} {}

std::string LogLimit::admit(std::string_view bytes) {
  std::string passes;
  if (head_left_ > 0) {
    auto now = static_cast<std::size_t>(std::min<std::uint64_t>(head_left_, bytes.size()));
    if (now < bytes.size()) {  // the head ends with a line, where it can
      if (const auto line_end = bytes.substr(0, now).rfind('\n'); line_end != std::string_view::npos)
        now = line_end + 1;
      else if (at_line_start_ && bytes.size() <= tail_limit_)
        now = 0;
    }
    passes = bytes.substr(0, now);
    if (!passes.empty()) at_line_start_ = passes.back() == '\n';
    head_left_ = now < bytes.size() ? 0 : head_left_ - now;
    bytes.remove_prefix(now);
    if (head_left_ == 0)
      passes += fmt::format(
          "{}[worker] this log is near its limit of {}: of what follows, the last {} come when the run "
          "ends\n",
          at_line_start_ ? "" : "\n", size_text(limit_), size_text(tail_limit_));
  }
  tail_ += bytes;
  if (tail_.size() > 2 * tail_limit_) {  // not for every byte anew
    left_out_ += tail_.size() - tail_limit_;
    tail_.erase(0, tail_.size() - tail_limit_);
  }
  return passes;
}

std::string LogLimit::rest() {
  std::size_t cut = tail_.size() > tail_limit_ ? tail_.size() - tail_limit_ : 0;
  if (cut > 0 || left_out_ > 0)  // the tail begins with a line, where it can
    if (const auto line_end = tail_.find('\n', cut);
        line_end != std::string::npos && line_end + 1 < tail_.size())
      cut = line_end + 1;
  left_out_ += cut;
  std::string rest =
      left_out_ == 0 ? "" : fmt::format("[worker] {} of the log were left out here\n", size_text(left_out_));
  rest.append(tail_, cut);
  tail_.clear();
  left_out_ = 0;
  return rest;
}

}  // namespace abl::agent
