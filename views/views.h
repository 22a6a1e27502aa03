// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "ablate/v1/runs.pb.h"
#include "ablate/v1/sweeps.pb.h"
#include "ablate/v1/workers.pb.h"
#include "storage/database.h"
#include "storage/types.h"

/// How stored sweeps, tables and runs look to the outside: `storage` records -> `ablate.v1` messages, by the
/// same functions for the scheduler's services, the dashboard, and `ablate … --store FILE`. Read-only
/// connections suffice. Thread: the connection's.
namespace abl::views {

ablate::v1::SweepSummary sweep_summary(storage::Database& db, const storage::SweepRecord& sweep);
ablate::v1::ListSweepsResponse list_sweeps(storage::Database& db);
/// Throws (all below): Error{kNotFound} naming what is not there, with the nearest name.
ablate::v1::SweepDetail sweep_detail(storage::Database& db, const std::string& sweep);
ablate::v1::Table table(storage::Database& db, const std::string& sweep);
ablate::v1::SweepProgress progress(storage::Database& db, const std::string& sweep);
ablate::v1::ListRunsResponse list_runs(storage::Database& db, const ablate::v1::ListRunsRequest& request);
ablate::v1::RunDetail run_detail(storage::Database& db, storage::RunId run);
ablate::v1::GetMetricsResponse metrics(storage::Database& db, const ablate::v1::GetMetricsRequest& request);
ablate::v1::ListWorkersResponse list_workers(storage::Database& db);
/// Calls `sink` for each run of the sweep's table and each metric, in table order.
void export_points(storage::Database& db, const std::string& sweep,
                   const std::function<void(const ablate::v1::ExportBlock&)>& sink);

/// A message as JSON: field names as in the .proto, zeros and empty lists present, one line unless `pretty`.
std::string to_json(const google::protobuf::Message& message, bool pretty = false);

}  // namespace abl::views
