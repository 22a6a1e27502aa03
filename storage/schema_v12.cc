// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV12 = R"sql(
-- A trial over several workers.
ALTER TABLE trial ADD COLUMN split TEXT NOT NULL DEFAULT '' CHECK (split = '' OR json_valid(split));  -- how its slots may be divided: {"least_gpus": 8}, fewer GPUs do too; {"nodes": [1, 2]}, on so many workers, on each as many; '': all that it needs
ALTER TABLE run ADD COLUMN rendezvous TEXT NOT NULL DEFAULT '';  -- host:port where its ranks meet, once its trainer has said so; '': it has not, or one worker has it alone
CREATE TABLE run_part (          -- the workers that take part in a run beside its own, which has the lease
  run_id INTEGER NOT NULL REFERENCES run,
  node INTEGER NOT NULL CHECK (node > 0),
  worker TEXT NOT NULL,
  host TEXT NOT NULL,
  slots TEXT NOT NULL CHECK (json_valid(slots)),  -- of that worker, as of run
  PRIMARY KEY (run_id, node)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace abl::storage
