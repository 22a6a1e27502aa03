// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV15 = R"sql(
-- What runs take of their machines. No part of a result: NULL is what could not be had.
CREATE TABLE resource_sample (
  run_id INTEGER NOT NULL REFERENCES run,
  at_ms INTEGER NOT NULL,        -- since the start of its program
  over_ms INTEGER NOT NULL,      -- that means are over
  cpu_cores REAL,                -- in use, a mean
  memory_bytes INTEGER,          -- resident, the sum over its processes
  read_bytes_per_s REAL,         -- from disks, a mean
  written_bytes_per_s REAL,
  gpu REAL,                      -- share of the time in which its GPUs computed, a mean
  gpu_memory_bytes INTEGER,
  free_bytes INTEGER,            -- on the disk of its folder
  data_wait_ms INTEGER,          -- for which its trainer waited for data, of so much
  data_of_ms INTEGER,
  PRIMARY KEY (run_id, at_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE resource_use (      -- of all samples of a run, so that lists never read them
  run_id INTEGER PRIMARY KEY REFERENCES run,
  samples INTEGER NOT NULL,
  left_out INTEGER NOT NULL,     -- beyond those that are kept
  last_ms INTEGER NOT NULL,      -- at_ms of the newest
  over_ms INTEGER NOT NULL,      -- that they are of; beside each sum below the time that it is over
  cpu_ms REAL NOT NULL,
  cpu_over_ms INTEGER NOT NULL,
  peak_memory_bytes INTEGER,
  read_bytes REAL NOT NULL,
  written_bytes REAL NOT NULL,
  disk_over_ms INTEGER NOT NULL,
  gpu_ms REAL NOT NULL,
  gpu_over_ms INTEGER NOT NULL,
  peak_gpu_memory_bytes INTEGER,
  least_free_bytes INTEGER,
  data_wait_ms INTEGER NOT NULL,
  data_of_ms INTEGER NOT NULL
) STRICT;

CREATE VIEW run_resources AS
SELECT s.name AS sweep, r.id AS row, st.seed AS seed, run.id AS run, run.attempt AS attempt, run.id = t.run_id AS newest,
       u.samples AS samples, u.over_ms / 1000.0 AS seconds,
       CASE WHEN u.cpu_over_ms > 0 THEN u.cpu_ms / u.cpu_over_ms END AS cpu_cores,
       u.peak_memory_bytes AS peak_memory_bytes,
       CASE WHEN u.gpu_over_ms > 0 THEN u.gpu_ms / u.gpu_over_ms END AS gpu,
       u.peak_gpu_memory_bytes AS peak_gpu_memory_bytes,
       CASE WHEN u.disk_over_ms > 0 THEN u.read_bytes END AS read_bytes,
       CASE WHEN u.disk_over_ms > 0 THEN u.written_bytes END AS written_bytes,
       CASE WHEN u.data_of_ms > 0 THEN 1.0 * u.data_wait_ms / u.data_of_ms END AS data_wait,
       u.least_free_bytes AS least_free_bytes
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_trial st ON st.sweep_id = s.id AND st.row = r.position
JOIN trial t ON t.id = st.trial_id
JOIN run ON run.trial_id = t.id
JOIN resource_use u ON u.run_id = run.id;
)sql";

}  // namespace abl::storage
