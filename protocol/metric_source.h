// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

namespace abl::protocol {

/// Where numbers of a command come from that prints no events: an entry of `command.metrics` in a sweep file,
/// and of the trial's document, from which its worker takes it.
struct MetricSource {
  /// Lines of its log that a pattern is in; a table that it writes; TensorBoard's event files.
  enum class Kind { kPattern, kFile, kTensorboard };
  /// What of the log is searched.
  enum class Stream { kBoth, kStdout, kStderr };
  /// Which of several matches of one step counts.
  enum class Take { kLast, kFirst };

  Kind kind = Kind::kPattern;
  std::vector<std::string> patterns;         ///< RE2's regular expressions with named groups
  std::string path;                          ///< in the run's folder, with `*` and `?`: a file, or a folder
  std::map<std::string, std::string> names;  ///< a group, column or tag -> its metric's name
  std::string step;   ///< the group or column of the step, kCountedStep or kLastStep; empty: a usual name
  std::string split;  ///< "val": what is not in `names` is called val/NAME
  Stream stream = Stream::kBoth;
  Take take = Take::kLast;

  bool operator==(const MetricSource&) const = default;
};

inline constexpr std::string_view kCountedStep = "count";  ///< each match, or row, is one step more
inline constexpr std::string_view kLastStep = "last";      ///< the step that another source has found last

/// What a worker writes into a run's folder of the points that it has found: no source of any.
inline constexpr const char* kRunMetrics = "metrics.csv";

/// How programs call the step, the likeliest first: the group or column of it where nobody says which.
inline constexpr std::array<std::string_view, 6> kStepNames{"step",  "global_step", "_step",
                                                            "epoch", "iteration",   "iter"};

/// The key under which a file says it.
constexpr std::string_view name_of(MetricSource::Kind kind) {
  switch (kind) {
    case MetricSource::Kind::kPattern:
      return "pattern";
    case MetricSource::Kind::kFile:
      return "file";
    case MetricSource::Kind::kTensorboard:
      return "tensorboard";
  }
  return {};
}
constexpr std::string_view name_of(MetricSource::Stream stream) {
  switch (stream) {
    case MetricSource::Stream::kBoth:
      return "both";
    case MetricSource::Stream::kStdout:
      return "stdout";
    case MetricSource::Stream::kStderr:
      return "stderr";
  }
  return {};
}
constexpr std::string_view name_of(MetricSource::Take take) {
  switch (take) {
    case MetricSource::Take::kLast:
      return "last";
    case MetricSource::Take::kFirst:
      return "first";
  }
  return {};
}

/// What the metric of a group, column or tag is called.
std::string metric_name(const MetricSource& source, const std::string& found);

/// For a trial's document: what is as usual is left out.
nlohmann::json to_json(const std::vector<MetricSource>& sources);
/// Throws: Error{kInvalidArgument} for what `to_json` does not write.
std::vector<MetricSource> metric_sources(const nlohmann::json& written);

}  // namespace abl::protocol
