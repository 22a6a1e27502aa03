// SPDX-License-Identifier: Apache-2.0
#include "views/convert.h"
#include "views/picked_pivot.h"
#include "views/read.h"

namespace abl::views {

extern const Read kFactorsRead{
    .path = "sweeps/*/factors",
    .of = &kSweepOfPath,
    .about = "What the rows of the sweep's table differ in, by which the table can be pivoted",
    .message = ablate::v1::TableFactors::descriptor,
    .answer = [](const Query& query,
                 const Stored& stored) { return to_json(table_factors(stored.db, query.name)); },
};

}  // namespace abl::views
