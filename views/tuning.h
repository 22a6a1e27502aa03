// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "storage/tuning_store.h"
#include "views/views.h"

namespace abl::views {

/// What `tune` or `search` of a sweep's file asks for, from how it is stored, and the legend; without rows.
/// `points`: that each row has, where lists and whole numbers have fewer than were asked for; 0: those.
ablate::v1::TuningResponse tuning_head(const std::string& tune_json, std::size_t points = 0);

/// Leaves out of a tuning all points but those of a page, counted over all rows, and the rows that have none
/// of these.
void keep_points(ablate::v1::TuningResponse& tuning, const Page& page);
/// Puts a page behind those before it, which may end within a row.
void append_points(ablate::v1::TuningResponse& page, ablate::v1::TuningResponse& all);

/// "recipe.lr 0.0031, the best of 8 points", or why there is none.
std::string tuned_text(const storage::TuningChoice& choice);

/// How each row is tuned, a line for what all have in common and one for each row that differs in more than
/// its values: rows that are tuned less than others must not go unnoticed. Empty without choices.
std::vector<std::string> tuning_notes(const std::string& tune_json,
                                      const std::vector<storage::TuningChoice>& choices);

}  // namespace abl::views
