// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ablate/v1/workers.pb.h"
#include "protocol/metric_source.h"

namespace abl::agent {

/// `metrics.csv` in a run's folder: step,metric,value, a line for each point, for whoever looks there with
/// other tools. The store does not depend on it: what keeps it from being written ends no run, and is said
/// once. It begins with the first point; one that the program has made itself, or has changed, is the
/// program's. A run that goes on from a checkpoint begins with the points of the run before, up to the
/// checkpoint's step, where that one's folder is on this machine.
///
/// A point said again is not written again, as long as it is among the last 65,536. Values keep every bit;
/// what is not finite is nan, inf, -inf.
/// Thread: one.
class MetricsFile {
 public:
  static constexpr const char* kName = protocol::kRunMetrics;
  struct Options {
    std::filesystem::path before{};  ///< folder of the run that this one goes on from; empty: from none
    std::uint32_t before_step = 0;   ///< up to which that one's points count, unless the run says another
    std::filesystem::path root{};    ///< under which `before` has to lie, wherever links lead
    std::uint64_t most_bytes = 256 << 20;  ///< beyond it nothing more is written
    std::size_t most_pending = 256 << 10;  ///< what waits for a disk without room, before it is given up
  };
  MetricsFile(std::filesystem::path folder, Options options);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  /// Appends the points of a batch, by step. Returns: what there is to say in the run's log, a line or
  /// nothing.
  std::string append(const ablate::v1::RunBatch& batch);
  /// At the run's end: tries once more what waits. Returns: as `append`.
  std::string finish();

 private:
  bool open(std::string& said);
  void copy_before();
  bool is_new(const std::string& metric, std::uint32_t step);
  bool is_ours() const;
  std::string write_pending();
  std::string give_up(const std::string& why);

  const std::filesystem::path folder_;
  Options options_;
  int descriptor_ = -1;
  bool over_ = false;            ///< nothing is written any more
  bool complained_ = false;      ///< of a write that failed
  std::uint64_t size_ = 0;       ///< of whole lines
  std::uint32_t last_step_ = 0;  ///< that is in the file
  std::uint32_t copied_to_ = 0;  ///< points up to this step are there from before
  std::string pending_;
  std::uint32_t pending_step_ = 0;
  std::unordered_map<std::string, std::uint32_t> highest_;  ///< step of each metric
  std::unordered_set<std::uint64_t> recent_;
  std::deque<std::uint64_t> order_;  ///< of `recent_`
};

}  // namespace abl::agent
