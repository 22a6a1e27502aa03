// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/runs.pb.h"
#include "ablate/v1/sweeps.pb.h"
#include "storage/resource_store.h"
#include "storage/sweep_store.h"
#include "storage/table.h"
#include "storage/types.h"

/// One record, one message.
namespace abl::views {

struct StatisticsMemo;

ablate::v1::TrialState to_proto(storage::TrialState state);
ablate::v1::RunState to_proto(storage::RunState state);
ablate::v1::FailureClass to_proto(std::optional<protocol::FailureClass> failure);
/// What people see: what was set, or what follows from the trials once nothing is open.
ablate::v1::SweepState state_of(const storage::SweepRecord& sweep);

ablate::v1::TrialCounts to_proto(const storage::TrialCounts& counts);
ablate::v1::TrialSummary to_proto(const storage::ClaimRecord& claim);
ablate::v1::SweepRevision to_proto(const storage::SweepRevision& revision);
ablate::v1::RunSummary to_proto(const storage::RunRecord& run);
ablate::v1::MetricSummary to_proto(const storage::MetricSummary& summary);
ablate::v1::Series to_proto(const storage::Series& series);
ablate::v1::ResourceUse resource_use(const storage::ResourceUse& use);
ablate::v1::Checkpoint to_proto(const storage::CheckpointRecord& checkpoint);
ablate::v1::Column to_proto(const storage::Column& column);
/// `memo`: has what an earlier state of it needed; may be null.
ablate::v1::Table to_proto(const storage::Table& table, StatisticsMemo* memo = nullptr);
/// The same into a message that may be an arena's: of a long table it is half a million small pieces.
void to_proto(const storage::Table& table, StatisticsMemo* memo, ablate::v1::Table& message);
/// The same of a table that nobody needs any more: its rows go as they are converted.
ablate::v1::Table to_proto(storage::Table&& table);
/// A table whose file asks for a pivot, with a line for rows that differ in that factor alone. Its cells
/// stand as they were compared; what is best is of each column anew. `levels`: the columns' order, where it
/// is not that of the rows. `message`: is empty, and may be an arena's.
void pivoted(const ablate::v1::Table& table, const std::vector<std::string>& levels, StatisticsMemo* memo,
             ablate::v1::Table& message);
inline ablate::v1::Table pivoted(const ablate::v1::Table& table, StatisticsMemo* memo = nullptr) {
  ablate::v1::Table message;
  pivoted(table, {}, memo, message);
  return message;
}
/// Whether it is one that can be pivoted and is not yet.
inline bool has_pivot(const ablate::v1::Table& table) {
  return table.has_pivot() && !table.pivoted() && table.rows_size() > 0 && !table.rows(0).line().empty();
}
google::protobuf::Timestamp to_proto(Time time);

}  // namespace abl::views
