// SPDX-License-Identifier: Apache-2.0
#include "views/convert.h"
#include "views/picked_pivot.h"
#include "views/read.h"

namespace abl::views {

extern const Read kFactorsRead{
    .path = "sweeps/*/factors",
    .of = &kSweepOfPath,
    .about = "Factors in which the sweep's rows differ: the table can be pivoted by them",
    .message = ablate::v1::TableFactors::descriptor,
    .answer = [](const Query& query,
                 const Stored& stored) { return to_json(table_factors(stored.db, query.name)); },
};

}  // namespace abl::views
