// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ablate/v1/retention.pb.h"
#include "ablate/v1/runs.pb.h"
#include "ablate/v1/sweeps.pb.h"
#include "ablate/v1/workers.pb.h"
#include "cli/context.h"

namespace abl::cli {

/// Which form of a table, and how much of it.
struct TableAsked {
  std::uint32_t rows = 0;  ///< of a longer table the first so many (`left_out` says how many others); 0: all
  bool statistics = false;
  bool long_form = false;            ///< without the pivot that its file asks for
  std::vector<std::string> pivot{};  ///< in its place: factors whose levels lie along the columns
};

/// Where the commands that only look read from: a scheduler, or a results file. Both give the same messages.
/// Throws (all): Error{kNotFound} naming what is not there and the nearest name; kUnavailable when no
/// scheduler answers.
class Source {
 public:
  virtual ~Source() = default;
  virtual ablate::v1::ListSweepsResponse list_sweeps() = 0;
  /// Some whole rows of a sweep, from one on, by its place: as many as have `trials` trials together, one at
  /// least (0: as many as one answer holds). `next` of the message is where to go on.
  virtual ablate::v1::SweepDetail rows(const std::string& name, std::uint32_t first,
                                       std::uint32_t trials = 0) = 0;
  /// All of them at once: a sweep has 100,000 trials at most.
  ablate::v1::SweepDetail sweep(const std::string& name);
  virtual ablate::v1::Table table(const std::string& name, const TableAsked& asked = {}) = 0;
  virtual ablate::v1::ListWorkersResponse list_workers() = 0;
  /// Calls `sink` with the log of a run in pieces; with `follow` until the run has ended.
  virtual void log(std::uint32_t run, bool follow,
                   const std::function<void(const ablate::v1::LogText&)>& sink) = 0;
  virtual ablate::v1::RunDetail run(std::uint32_t run) = 0;
  /// Every point of every metric of a run.
  virtual ablate::v1::GetMetricsResponse metrics(std::uint32_t run) = 0;
  /// The file of a sweep in one of its revisions; 0: the newest.
  virtual ablate::v1::SweepText sweep_text(const std::string& sweep, std::uint32_t revision) = 0;
  virtual ablate::v1::ProvenanceResponse provenance(const std::string& sweep) = 0;
  /// Throws: Error{kFailedPrecondition} for a sweep without tune and search.
  virtual ablate::v1::TuningResponse tuning(const std::string& sweep) = 0;
  virtual ablate::v1::Retention retention() = 0;
  virtual ablate::v1::WhyResponse why(const ablate::v1::WhyRequest& request) = 0;
  virtual ablate::v1::CompareResponse compare(const ablate::v1::CompareRequest& request) = 0;
  virtual ablate::v1::ProbesResponse probes(const ablate::v1::ProbesRequest& request) = 0;
  /// Stores what probes found. Throws: Error{kUnavailable} for a results file that a scheduler has.
  virtual void put_probes(const ablate::v1::PutProbesRequest& request) = 0;
  /// Calls `sink` for each run of the sweep's table and each metric, in table order.
  virtual void export_points(const std::string& name,
                             const std::function<void(const ablate::v1::ExportBlock&)>& sink) = 0;
};

/// The results file of --store where it is given, otherwise the scheduler. Where none runs in the home and no
/// other is named: the results file of the home, if there is one.
std::unique_ptr<Source> open_source(const Context& context);

}  // namespace abl::cli
