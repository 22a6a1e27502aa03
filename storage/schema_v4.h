// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::storage {

/// Version 4: the store has an identity of its own, so that a worker can tell that a results file was
/// restored or exchanged under its scheduler; a trial can be held back from the queue.
inline constexpr const char* kSchemaV4 = R"sql(
CREATE TABLE store (             -- one line
  id TEXT NOT NULL               -- 32 random hexadecimal digits; a copied file keeps it
) STRICT;
INSERT INTO store (id) VALUES (lower(hex(randomblob(16))));

-- A trial may be 'held': SQLite changes a CHECK in a new table alone. In legacy mode the rename leaves views and the
-- references to `trial` as they are written.
PRAGMA legacy_alter_table = ON;
CREATE TABLE trial_4 (
  id INTEGER PRIMARY KEY,
  config_hash TEXT NOT NULL,     -- identity, with the two below
  result_version INTEGER NOT NULL,
  data_fingerprint TEXT NOT NULL, -- '' until a worker has reported it
  reusable INTEGER NOT NULL CHECK (reusable IN (0, 1)),
  config TEXT NOT NULL,
  seed INTEGER NOT NULL,
  data TEXT NOT NULL,
  command_json TEXT NOT NULL,
  gpus INTEGER NOT NULL,
  max_retries INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'running', 'completed', 'failed', 'held', 'cancelled')),
  failures INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',     -- of the last failure
  waiting TEXT NOT NULL DEFAULT '',    -- why it is still queued
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  finished_ms INTEGER,
  attempt INTEGER NOT NULL DEFAULT 0,  -- of the newest run
  run_id INTEGER REFERENCES run,       -- the newest run
  losses INTEGER NOT NULL DEFAULT 0,   -- runs lost one after the other, none further than those before: the back-off
  deaths INTEGER NOT NULL DEFAULT 0    -- of them, those that were all that their worker had
) STRICT;
INSERT INTO trial_4 (id, config_hash, result_version, data_fingerprint, reusable, config, seed, data,
                     command_json, gpus, max_retries, state, failures, reason, waiting, not_before_ms, finished_ms, attempt, run_id)
SELECT id, config_hash, result_version, data_fingerprint, reusable, config, seed, data,
       command_json, gpus, max_retries, state, failures, reason, waiting, not_before_ms, finished_ms, attempt, run_id FROM trial;
DROP TABLE trial;
ALTER TABLE trial_4 RENAME TO trial;
PRAGMA legacy_alter_table = OFF;
CREATE UNIQUE INDEX trial_identity ON trial (config_hash, result_version, data_fingerprint) WHERE reusable = 1;
CREATE INDEX trial_queued ON trial (id) WHERE state = 'queued';

-- random: tells a run from one of the same number that a copy of this file was given
ALTER TABLE run ADD COLUMN token TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN silent INTEGER NOT NULL DEFAULT 0;   -- lost because its lease ran out: its worker may still have it
ALTER TABLE run ADD COLUMN alone INTEGER NOT NULL DEFAULT 0;    -- its worker died while it had no other run
CREATE INDEX run_lost ON run (worker, ended_ms) WHERE state = 'lost';

-- what is wrong with a worker, in its own words, as of its last heartbeat; empty: nothing is
ALTER TABLE worker ADD COLUMN trouble TEXT NOT NULL DEFAULT '';
)sql";

}  // namespace abl::storage
