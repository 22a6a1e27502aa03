// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/retention.pb.h"
#include "ablate/v1/runs.pb.h"
#include "ablate/v1/sweeps.pb.h"
#include "ablate/v1/workers.pb.h"
#include "protocol/probe_results.h"
#include "storage/database.h"
#include "storage/probe_store.h"
#include "storage/provenance_store.h"
#include "storage/types.h"

/// How stored sweeps, tables and runs look to the outside: `storage` records -> `ablate.v1` messages, by the
/// same functions for the scheduler's services, the dashboard, and `ablate … --store FILE`. Read-only
/// connections suffice. Thread: the connection's.
namespace abl::views {

/// What an answer is of, where not of everything. `left_out` of the message says how much it has not.
struct Page {
  std::uint32_t first = 0, count = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t most_trials = std::numeric_limits<std::uint32_t>::max();
  bool with_baseline = false;    ///< of rows: the baseline's too, before the others where it is none of them
  bool with_statistics = false;  ///< of a table's cells: their statistics too, some 0.1 ms for each
  /// Of a table's rows: as many as fit, one at least.
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
};

ablate::v1::SweepSummary sweep_summary(storage::Database& db, const storage::SweepRecord& sweep,
                                       Time now = SystemClock{}.now());
/// The same of several, for little more than one costs.
std::vector<ablate::v1::SweepSummary> sweep_summaries(storage::Database& db,
                                                      const std::vector<storage::SweepRecord>& sweeps,
                                                      Time now = SystemClock{}.now());
/// One of which it is known when it will be complete; and that.
ablate::v1::SweepSummary sweep_summary(const storage::SweepRecord& sweep,
                                       std::optional<ablate::v1::Forecast> forecast);
std::optional<ablate::v1::Forecast> forecast_of(storage::Database& db, const storage::SweepRecord& sweep,
                                                Time now = SystemClock{}.now());
/// A run with its place in the sweeps that claim its trial, and its metrics, at most so many.
ablate::v1::RunSummary run_summary(storage::Database& db, const storage::RunRecord& run,
                                   std::uint32_t most_metrics = std::numeric_limits<std::uint32_t>::max());
/// Newest first; `after` a sweep those that were submitted before it: the one way to read on that costs what
/// it returns. `sweeps.first` passes over that many.
ablate::v1::ListSweepsResponse list_sweeps(storage::Database& db, const Page& sweeps = {},
                                           const std::string& after = "");
/// Throws (all below): Error{kNotFound} naming what is not there, with the nearest name.
ablate::v1::SweepDetail sweep_detail(storage::Database& db, const std::string& sweep, const Page& rows = {});
/// Of such a detail the trials, and where they go on: to look at all of them page by page without counting
/// them all for each.
ablate::v1::SweepDetail sweep_trials(storage::Database& db, const storage::SweepRecord& sweep,
                                     const Page& rows);
/// The whole table, which each part needs: its units, the best of its columns. Parts: table_cache.h.
ablate::v1::Table table(storage::Database& db, const std::string& sweep);
/// What one answer holds at most: enough for every page and table, and not all of a large store at once. More
/// is an Error{kInvalidArgument} that says how to ask for less.
inline constexpr std::uint32_t kMostRunsListed = 10'000;
inline constexpr int kMostRunsMeasured = 1000;
inline constexpr std::uint64_t kMostPoints = 1'000'000;
ablate::v1::ListRunsResponse list_runs(storage::Database& db, const ablate::v1::ListRunsRequest& request);
ablate::v1::RunDetail run_detail(storage::Database& db, storage::RunId run);
/// Each run once, however often it is named. Where every series thinned to `max_points` has more than
/// `most_points` together, they are thinned further (`thinned_to`); every point of so many is an error.
ablate::v1::GetMetricsResponse metrics(storage::Database& db, const ablate::v1::GetMetricsRequest& request,
                                       std::uint64_t most_points = kMostPoints);
/// What a run took of its machine, in a stretch of the time since its program was started: every sample, or
/// of each bucket of time the mean, the lowest and the highest, where there are more than `points`.
ablate::v1::ResourcesResponse resources(storage::Database& db, storage::RunId run, std::uint64_t from_ms,
                                        std::uint64_t to_ms, std::uint32_t points);
/// What probes found in the model of a run: of all the values, of one all of it.
ablate::v1::ProbesResponse probes(storage::Database& db, const ablate::v1::ProbesRequest& request);
/// What to store of what a probe found. Throws: Error{kInvalidArgument} saying what is wrong with it.
struct ProbeRecord {
  protocol::ProbeResult found;
  std::uint32_t step = 0;
  std::vector<storage::StoredPicture> pictures{};
};
ProbeRecord probe_record(const ablate::v1::ProbeFound& message);
/// Workers, those that are connected first; `left_out` and `next` of the message say what others there are.
ablate::v1::ListWorkersResponse list_workers(storage::Database& db, const Page& workers = {});
/// Workers of one such answer, some megabytes: each comes with all its slots.
inline constexpr std::uint32_t kMostWorkers = 500;
/// The file of a sweep in one of its revisions.
/// Throws: Error{kNotFound} where it has fewer, saying how many.
ablate::v1::SweepText sweep_text(storage::Database& db, const std::string& sweep, std::uint32_t revision);
/// Where a program keeps more than the results file. Thread: any.
using OtherPlaces = std::function<std::vector<ablate::v1::KeptPlace>()>;
/// Adds what is kept there, by which rule, and the option or command that changes that.
ablate::v1::Kept& add_kept(ablate::v1::KeptPlace& place, const std::string& what, const std::string& rule,
                           const std::string& setting = "");
/// What is kept for how long: of the results file `file`, which `db` reads, and of `others` where there are
/// any.
ablate::v1::Retention retention(storage::Database& db, const std::filesystem::path& file,
                                const OtherPlaces& others = {});
/// Where a sweep comes from, as its submitters said.
ablate::v1::ProvenanceResponse provenance(storage::Database& db, const std::string& sweep);
/// What to store of one; nothing of an empty one. Throws: Error{kInvalidArgument} where it is too large.
std::optional<storage::ProvenanceRecord> provenance_record(const ablate::v1::Provenance& message);
/// How the rows of a sweep are tuned, or what its search finds; `points`: counted over all rows, of which
/// those without any of them are left out. Throws: Error{kFailedPrecondition} for a sweep with neither.
ablate::v1::TuningResponse tuning(storage::Database& db, const std::string& sweep, const Page& points = {});
/// Points of one such answer, some megabytes.
inline constexpr std::uint32_t kMostTuningPoints = 5000;
/// How a cell of a sweep's table came about. Reads the whole table: what is best in it, and what is noted.
ablate::v1::WhyResponse why(storage::Database& db, const ablate::v1::WhyRequest& request);
/// Two sweeps, rows or runs side by side. Reads what the answer has, however much else is stored.
/// Throws: Error{kFailedPrecondition} for a trial without a run, kInvalidArgument for a sweep against a row.
ablate::v1::CompareResponse compare(storage::Database& db, const ablate::v1::CompareRequest& request);
/// Every point of the runs of a sweep's table, in table order, block by block, and its runs row by row. No
/// snapshot is held between blocks: the store could not tidy its log while a reader takes its time.
class PointBlocks {
 public:
  PointBlocks(storage::Database& db, const std::string& sweep);
  /// The next block; nothing after the last.
  std::optional<ablate::v1::ExportBlock> next(storage::Database& db);

 private:
  struct Source {
    std::string row;
    std::int64_t seed = 0;
    storage::TrialId trial = 0;
    storage::RunId run = 0;
  };
  bool read_rows(storage::Database& db);

  storage::SweepId sweep_;
  std::optional<std::uint32_t> next_row_ = 0;  // after those of the sources; none: there is no other
  std::deque<Source> sources_;                 // the first is being read
  std::vector<std::string> names_;             // of its metrics; the last is being read
  bool named_ = false;
  std::int64_t after_step_ = -1;  // of that metric
};
/// Calls `sink` for each of these blocks.
void export_points(storage::Database& db, const std::string& sweep,
                   const std::function<void(const ablate::v1::ExportBlock&)>& sink);

}  // namespace abl::views
