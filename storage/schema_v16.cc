// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV16 = R"sql(
-- What long stretches of curves look like, so that a chart of a long run does not read its points. Blocks of a
-- metric cover ranges of steps that do not overlap; one that is there is of all points that are kept of its range.
-- What no block covers (the newest points, and all of short runs) is read from `point`.
CREATE TABLE point_block (
  run_id INTEGER NOT NULL REFERENCES run,
  metric_id INTEGER NOT NULL REFERENCES metric,
  first_step INTEGER NOT NULL,   -- a multiple of its length
  steps_log2 INTEGER NOT NULL,   -- its length: 2 to the power of this
  points INTEGER NOT NULL,       -- in `point`
  coarse BLOB NOT NULL,          -- its quarters, as storage/point_blocks.h says
  fine BLOB NOT NULL,            -- its sixty-fourths
  PRIMARY KEY (run_id, metric_id, first_step)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace abl::storage
