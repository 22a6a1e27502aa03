// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/metric_source.h"
#include "worker/metrics/found.h"
#include "worker/metrics/log_patterns.h"

namespace abl::metrics {

/// Files of the run's folder that one source names, as they grow. Thread: one.
class WatchedFiles {
 public:
  virtual ~WatchedFiles() = default;
  /// Reads on in each file, until all had their turn or `found` is full. Returns: whether there may be more
  /// at once.
  virtual bool look(Found& found) = 0;
  /// The program is gone, and all was read.
  virtual void close(Found& found) = 0;
  /// Why a run that has completed lacks what they were to have; empty: it lacks nothing.
  virtual std::string lacking() const = 0;
};

/// The numbers of a command that prints no events, from all places that its sweep file names
/// (docs/any-script.md). A point is found once, whatever is read again. Thread: one.
class Finder {
 public:
  /// `folder`: the run's. `resume_step`: of the checkpoint that the program was given, or 0: what is counted
  /// goes on from there.
  Finder(const std::vector<protocol::MetricSource>& sources, const std::filesystem::path& folder,
         std::uint32_t resume_step);
  ~Finder();

  void read_log(protocol::MetricSource::Stream stream, std::string_view bytes, Found& found);
  /// Looks at the files, until `found` is full. Returns: whether there may be more at once.
  bool look(Found& found);
  /// The program is gone, and all that it wrote was read.
  void close(Found& found);
  /// Why a run that has completed has no numbers of one of the sources; empty: it has.
  std::string lacking() const;

 private:
  void read_line(protocol::MetricSource::Stream stream, const std::string& line, Found& found);

  std::vector<LogPatterns> patterns_;
  std::vector<std::unique_ptr<WatchedFiles>> files_;
  std::size_t turn_ = 0;  ///< of the files: where the next look begins
  TerminalLines out_, err_;
  LastStep last_;
};

}  // namespace abl::metrics
