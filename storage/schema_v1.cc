// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV1 = R"sql(
CREATE TABLE sweep (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  file TEXT NOT NULL,            -- path of the sweep file as submitted, and its text
  text TEXT NOT NULL,
  canonical TEXT NOT NULL,
  canonical_hash TEXT NOT NULL,
  baseline TEXT NOT NULL,
  paper_heading TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'cancelled')),
  state_ms INTEGER NOT NULL,     -- when the state was set
  priority INTEGER NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE sweep_row (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,
  id TEXT NOT NULL,
  label TEXT NOT NULL,
  set_json TEXT NOT NULL CHECK (json_valid(set_json)),
  config_hash TEXT NOT NULL,
  model_hash TEXT NOT NULL,      -- SHA-256 of the canonical model document: model_count.model_hash; '' for a command
  PRIMARY KEY (sweep_id, position),
  UNIQUE (sweep_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sweep_column (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  heading TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('metric', 'count', 'setting')),
  source TEXT NOT NULL,
  take TEXT NOT NULL,
  unit TEXT NOT NULL,
  better TEXT NOT NULL,
  digits INTEGER NOT NULL,
  PRIMARY KEY (sweep_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE sweep_paper (       -- the papers' values, as printed
  sweep_id INTEGER NOT NULL,
  row INTEGER NOT NULL,
  name TEXT NOT NULL,            -- sweep_column.name
  printed TEXT NOT NULL,
  PRIMARY KEY (sweep_id, row, name),
  FOREIGN KEY (sweep_id, row) REFERENCES sweep_row (sweep_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE sweep_seed (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  PRIMARY KEY (sweep_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE trial (
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
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'running', 'completed', 'failed', 'cancelled')),
  failures INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',     -- of the last failure
  waiting TEXT NOT NULL DEFAULT '',    -- why it is still queued
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  finished_ms INTEGER,
  attempt INTEGER NOT NULL DEFAULT 0,  -- of the newest run
  run_id INTEGER REFERENCES run        -- the newest run
) STRICT;
CREATE UNIQUE INDEX trial_identity ON trial (config_hash, result_version, data_fingerprint) WHERE reusable = 1;
CREATE INDEX trial_queued ON trial (id) WHERE state = 'queued';

CREATE TABLE sweep_trial (       -- the claims of sweeps on trials
  sweep_id INTEGER NOT NULL,
  row INTEGER NOT NULL,
  seed_index INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  trial_id INTEGER NOT NULL REFERENCES trial,
  withdrawn INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1)),
  PRIMARY KEY (sweep_id, row, seed_index),
  FOREIGN KEY (sweep_id, row) REFERENCES sweep_row (sweep_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_trial_trial ON sweep_trial (trial_id);

CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  trial_id INTEGER NOT NULL REFERENCES trial,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('leased', 'running', 'completed', 'failed', 'stopped', 'lost')),
  worker TEXT NOT NULL,
  host TEXT NOT NULL,
  directory TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  environment_json TEXT NOT NULL DEFAULT '',
  leased_ms INTEGER NOT NULL,
  started_ms INTEGER,
  ended_ms INTEGER,
  lease_expires_ms INTEGER NOT NULL,
  step INTEGER NOT NULL DEFAULT 0,
  total_steps INTEGER NOT NULL DEFAULT 0,
  rate_step INTEGER,             -- first step reported by this run itself and its time: the rate is measured from there
  rate_ms INTEGER,
  steps_per_second REAL NOT NULL DEFAULT 0,
  resumed_from_step INTEGER,
  resumed_from_run INTEGER REFERENCES run,
  bit_exact INTEGER NOT NULL DEFAULT 1,
  exit_code INTEGER,
  signal INTEGER,
  last_seq INTEGER NOT NULL DEFAULT 0,   -- newest batch stored
  log_bytes INTEGER NOT NULL DEFAULT 0,
  UNIQUE (trial_id, attempt)
) STRICT;
CREATE INDEX run_under_way ON run (worker, lease_expires_ms) WHERE state IN ('leased', 'running');

CREATE TABLE metric (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE point (
  run_id INTEGER NOT NULL REFERENCES run,
  metric_id INTEGER NOT NULL REFERENCES metric,
  step INTEGER NOT NULL,
  value REAL,                    -- NULL where it is not finite: then `kind` says 'NaN', 'Infinity' or '-Infinity'
  kind TEXT,
  time_ms INTEGER NOT NULL,
  PRIMARY KEY (run_id, metric_id, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE metric_summary (    -- kept up to date with each batch, so that lists never read the points
  run_id INTEGER NOT NULL REFERENCES run,
  metric_id INTEGER NOT NULL REFERENCES metric,
  count INTEGER NOT NULL,        -- of all points; `finite` of those that min, max, sum and best speak of
  finite INTEGER NOT NULL,
  sum REAL NOT NULL,
  min REAL,
  max REAL,
  last REAL,
  last_kind TEXT,
  last_step INTEGER NOT NULL,
  best REAL,
  best_step INTEGER NOT NULL,
  PRIMARY KEY (run_id, metric_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE log_chunk (
  run_id INTEGER NOT NULL REFERENCES run,
  offset INTEGER NOT NULL,       -- in bytes, of the chunk's first
  bytes BLOB NOT NULL,
  UNIQUE (run_id, offset)
) STRICT;

CREATE TABLE checkpoint (
  run_id INTEGER NOT NULL REFERENCES run,
  step INTEGER NOT NULL,
  host TEXT NOT NULL,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (run_id, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE data_pin (          -- the first fingerprint reported for a data name; another is refused
  data TEXT PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  run_id INTEGER NOT NULL REFERENCES run
) STRICT, WITHOUT ROWID;

CREATE TABLE model_count (
  model_hash TEXT NOT NULL,
  version INTEGER NOT NULL,      -- of the counter
  mode TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (model_hash, version, mode)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
  name TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  instance TEXT NOT NULL,
  version TEXT NOT NULL,
  slots_json TEXT NOT NULL,
  data_json TEXT NOT NULL,
  result_version INTEGER NOT NULL,
  allows_commands INTEGER NOT NULL,
  connected INTEGER NOT NULL,
  last_heartbeat_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW trial_summary AS
SELECT s.name AS sweep, r.id AS row, r.label AS label, st.seed AS seed, t.state AS state,
       CASE t.state WHEN 'queued' THEN t.waiting ELSE t.reason END AS reason,
       t.attempt AS attempt, run.worker AS worker, run.step AS step, run.total_steps AS total_steps,
       (SELECT json_group_object(m.name, COALESCE(ms.last, ms.last_kind))
        FROM metric_summary ms JOIN metric m ON m.id = ms.metric_id WHERE ms.run_id = t.run_id) AS last,
       t.id AS trial, t.run_id AS run, t.config_hash AS config_hash, st.withdrawn AS withdrawn
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_trial st ON st.sweep_id = s.id AND st.row = r.position
JOIN trial t ON t.id = st.trial_id
LEFT JOIN run ON run.id = t.run_id;

CREATE VIEW metric_point AS
SELECT s.name AS sweep, r.id AS row, st.seed AS seed, run.id AS run, run.attempt AS attempt, run.id = t.run_id AS newest,
       m.name AS metric, p.step AS step, p.value AS value, p.kind AS kind, p.time_ms AS time_ms
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_trial st ON st.sweep_id = s.id AND st.row = r.position
JOIN trial t ON t.id = st.trial_id
JOIN run ON run.trial_id = t.id
JOIN point p ON p.run_id = run.id
JOIN metric m ON m.id = p.metric_id;

CREATE VIEW table_cell AS
WITH sample AS (                 -- one line for each value that a cell is made of
  SELECT st.sweep_id, st.row, c.position,
         CASE c.take WHEN 'best' THEN ms.best WHEN 'min' THEN ms.min WHEN 'max' THEN ms.max
                     WHEN 'mean' THEN ms.sum / ms.finite ELSE ms.last END AS value
  FROM sweep_column c
  JOIN sweep_trial st ON st.sweep_id = c.sweep_id
  JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
  JOIN metric m ON m.name = c.source
  JOIN metric_summary ms ON ms.run_id = t.run_id AND ms.metric_id = m.id
  WHERE c.kind = 'metric'
  UNION ALL
  SELECT r.sweep_id, r.position, c.position, mc.value
  FROM sweep_column c
  JOIN sweep_row r ON r.sweep_id = c.sweep_id
  JOIN model_count mc ON mc.model_hash = r.model_hash AND mc.mode = c.source
                     AND mc.version = (SELECT MAX(version) FROM model_count)
  WHERE c.kind = 'count'
), centred AS (
  SELECT *, AVG(value) OVER (PARTITION BY sweep_id, row, position) AS mean FROM sample
), cell AS (                     -- a value that is not finite leaves no mean
  SELECT sweep_id, row, position, COUNT(*) AS n,
         CASE WHEN COUNT(*) = COUNT(value) THEN MAX(mean) END AS mean,
         CASE WHEN COUNT(*) = COUNT(value) AND COUNT(*) > 1
              THEN SQRT(SUM((value - mean) * (value - mean)) / (COUNT(*) - 1)) END AS sd
  FROM centred GROUP BY sweep_id, row, position
)
SELECT s.name AS sweep, r.id AS row, r.label AS label, c.name AS "column", COALESCE(cell.n, 0) AS n,
       cell.mean AS mean, cell.sd AS sd, p.printed AS paper,
       CASE c.kind WHEN 'setting' THEN r.set_json ->> ('$."' || c.source || '"') END AS setting
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_column c ON c.sweep_id = s.id
LEFT JOIN cell ON cell.sweep_id = s.id AND cell.row = r.position AND cell.position = c.position
LEFT JOIN sweep_paper p ON p.sweep_id = s.id AND p.row = r.position AND p.name = c.name;
)sql";

const char* const kSchemaV2 = R"sql(
ALTER TABLE run ADD COLUMN stop_reason TEXT NOT NULL DEFAULT '';  -- why it was asked to stop, or ''
)sql";

const char* const kSchemaV3 = R"sql(
ALTER TABLE worker ADD COLUMN weights_json TEXT NOT NULL DEFAULT '[]';  -- list of logical names

CREATE TABLE trial_weights (     -- the weights that a trial's recipe names
  trial_id INTEGER NOT NULL REFERENCES trial,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,          -- of the file that the recipe wants; '' where the name alone stands for it
  PRIMARY KEY (trial_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE weights_pin (       -- the first digest reported for a name that stands alone; another is refused
  name TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL,
  run_id INTEGER NOT NULL REFERENCES run
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO trial_weights (trial_id, name, sha256)
SELECT id, name, sha256 FROM (
  SELECT id, config ->> '$.recipe.start_weights' AS name, COALESCE(config ->> '$.recipe.start_sha256', '') AS sha256
  FROM trial WHERE command_json = ''
  UNION ALL
  SELECT id, config ->> '$.recipe.teacher_weights', COALESCE(config ->> '$.recipe.teacher_sha256', '')
  FROM trial WHERE command_json = ''
) WHERE name IS NOT NULL;

-- the files that the results which are there were made with
INSERT OR IGNORE INTO weights_pin (name, sha256, run_id)
SELECT wanted.name, used.value, run.id
FROM run JOIN trial_weights wanted ON wanted.trial_id = run.trial_id AND wanted.sha256 = ''
  JOIN json_each(CASE WHEN json_valid(run.environment_json) THEN run.environment_json ELSE '{}' END, '$.weights') used
    ON used.key = wanted.name
ORDER BY run.id;
)sql";

}  // namespace abl::storage
