// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::storage {

/// Version 9: where sweeps come from; files that are archives of some sweeps.
inline constexpr const char* kSchemaV9 = R"sql(
-- What was seen of a sweep's folder when it was submitted.
CREATE TABLE provenance_text (   -- diffs and lists of packages, each once, however many sweeps have it
  sha256 TEXT PRIMARY KEY,
  bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sweep_provenance (  -- none of sweeps that are older, or whose submitter said nothing
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,     -- 0: as it was submitted first; then as it grew
  time_ms INTEGER NOT NULL,
  facts_json TEXT NOT NULL CHECK (json_valid(facts_json)),  -- user, host, folder, commit, …: ablate.v1.Provenance but for the two below
  diff TEXT REFERENCES provenance_text,      -- what of the folder was not committed; NULL: nothing, or it is not known
  packages TEXT REFERENCES provenance_text,  -- of the command's Python
  PRIMARY KEY (sweep_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX provenance_diff ON sweep_provenance (diff) WHERE diff IS NOT NULL;
CREATE INDEX provenance_packages ON sweep_provenance (packages) WHERE packages IS NOT NULL;

-- A file that 'ablate archive' has made has one line; a scheduler's has none.
CREATE TABLE archive (
  store_id TEXT NOT NULL,        -- of the store that it was made of
  points TEXT NOT NULL CHECK (points IN ('all', 'thin', 'none')),  -- which metric points it has; summaries are of all
  checkpoints TEXT NOT NULL CHECK (checkpoints IN ('none', 'last', 'best'))
) STRICT;
CREATE TABLE checkpoint_piece (  -- the files of checkpoints, in an archive that has them
  run_id INTEGER NOT NULL,
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (run_id, step, position),
  FOREIGN KEY (run_id, step) REFERENCES checkpoint (run_id, step)
) STRICT;
)sql";

}  // namespace abl::storage
