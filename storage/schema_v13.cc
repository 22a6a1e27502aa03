// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV13 = R"sql(
-- What probes found in trained models. Their values are metrics of the run: probe:KEY/VALUE.
ALTER TABLE sweep ADD COLUMN probes TEXT NOT NULL DEFAULT '' CHECK (probes = '' OR json_valid(probes));  -- that look into its trained models: [{"name": "attention", "images": 8}]; '': none
CREATE TABLE probe (             -- the newest of each run and probe
  run_id INTEGER NOT NULL REFERENCES run,
  name TEXT NOT NULL,            -- its key: the name, and settings that are not the usual ones: attention(images=8)
  step INTEGER NOT NULL,         -- after which the weights were that it looked at
  time_ms INTEGER NOT NULL,
  missing TEXT NOT NULL,         -- why it found nothing: the model has nothing for it to look at; or ''
  found TEXT NOT NULL CHECK (json_valid(found)),  -- {"probe", "settings", "values", "arrays", "pictures", "notes"}
  UNIQUE (run_id, name)
) STRICT;
CREATE TABLE probe_picture (
  run_id INTEGER NOT NULL REFERENCES run,
  probe TEXT NOT NULL,           -- probe.name
  name TEXT NOT NULL,
  width INTEGER NOT NULL,
  height INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  png BLOB NOT NULL,
  UNIQUE (run_id, probe, name)
) STRICT;
)sql";

}  // namespace abl::storage
