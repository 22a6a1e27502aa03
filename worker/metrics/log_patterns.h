// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/pattern.h"
#include "protocol/metric_source.h"
#include "worker/metrics/found.h"

namespace abl::metrics {

/// Makes lines of what a program writes to a terminal: a carriage return and backspaces, with which progress
/// bars are drawn, end a line as a line feed does; colours and other commands to terminals are left out.
/// Thread: one.
class TerminalLines {
 public:
  /// Returns: the lines that these bytes end, none of them empty. What of a line is beyond 64 KiB is left
  /// out.
  std::vector<std::string> read(std::string_view bytes);
  /// Returns: the line that nothing has ended, or nothing.
  std::vector<std::string> close();

 private:
  std::string rest_;
};

/// The metrics that the patterns of one source find in lines. Thread: one.
class LogPatterns {
 public:
  /// `counted`: the step that its own count goes on from.
  explicit LogPatterns(const protocol::MetricSource& source, std::uint32_t counted);

  bool reads(protocol::MetricSource::Stream stream) const {
    return source_.stream == protocol::MetricSource::Stream::kBoth || source_.stream == stream;
  }
  void read(std::string_view line, LastStep& last, Found& found);
  /// Another source has found a step: points of those before, that this one takes from it, wait no longer.
  void goes_on(const LastStep& last, Found& found);
  /// The points that waited for a later match of their step.
  void close(Found& found);
  bool found_any() const { return found_any_; }
  /// Why it has found nothing, with the line that looks most like what was to be found.
  std::string lacking() const;

 private:
  struct Place {
    std::string group, metric;  ///< metric: empty of the step's group
  };
  struct Wanted {
    GroupPattern pattern;
    std::vector<Place> places;
    std::vector<std::string> pieces;  ///< texts without which it does not match
    bool has_step = false;
  };
  void say_before(std::uint32_t step, Found& found);
  void take(const Wanted& wanted, std::string_view line, LastStep& last, Found& found);
  void compare(std::string_view line);

  protocol::MetricSource source_;
  std::vector<Wanted> wanted_;
  std::uint32_t counted_;
  LastStep step_;  ///< of this source
  std::map<std::string, std::pair<std::uint32_t, double>> waiting_;
  std::vector<std::optional<std::string_view>> parts_;
  bool found_any_ = false;
  std::string missed_;   ///< what was wrong with the first match that gave no number
  std::string nearest_;  ///< line that no pattern is in
  std::size_t nearness_ = 0;
};

/// The group or column of the step among these, by the source's words or a usual name; empty: there is none.
std::string step_name(const protocol::MetricSource& source, const std::vector<std::string>& names);

}  // namespace abl::metrics
