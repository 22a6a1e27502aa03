// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/database.h"
#include "views/json.h"
#include "views/query.h"
#include "views/table_cache.h"

namespace abl::views {

/// What a read reads.
struct Stored {
  storage::Database& db;
  TableCache& tables;
  const OtherPlaces* others = nullptr;  ///< where the program keeps more than the store; null: nowhere
};

/// One read of the HTTP API (docs/http-api.md). Each file of views/reads/ defines one, beside the function
/// that the scheduler's service and `--store` share with it; no list names them.
///
/// What an answer holds at most (sweeps, rows, trials, runs, points) is some 10 MB of JSON. What is left out
/// is said (`left_out`, `metrics_left_out`), and asked for with `first`, or a run at a time.
struct Read {
  std::string_view path;              ///< below /api/v1/: "runs/*"; "*" is one segment, `Query::name`
  const Parameter* of = nullptr;      ///< what the "*" is
  std::string_view about;             ///< what it answers: a phrase
  std::vector<Parameter> parameters;  ///< checked before `answer` is called
  const google::protobuf::Descriptor* (*message)();    ///< what it answers, of ablate.v1
  bool quick = false;                                  ///< a few lookups at most, however much is stored
  std::string (*answer)(const Query&, const Stored&);  ///< that message as JSON
};

/// The form of a sweep's table that a query asks for (`pivot`, `long_form`).
/// Throws: Error{kInvalidArgument}, and as TableCache.
std::shared_ptr<const PackedTable> table_asked(const Query& query, const Stored& stored);

/// Every read of views/reads/.
std::span<const Read* const> all_reads();

}  // namespace abl::views
