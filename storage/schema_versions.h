// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::storage {

/// Version 1 of the results file. Tables and views are described for people in docs/results-file.md.
inline constexpr const char* kSchemaV1 = R"sql(
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

/// Version 2: that a run is to stop is stored, so that its worker hears of it although it was away and the
/// scheduler started anew in between.
inline constexpr const char* kSchemaV2 = R"sql(
ALTER TABLE run ADD COLUMN stop_reason TEXT NOT NULL DEFAULT '';  -- why it was asked to stop, or ''
)sql";

/// Version 3: which weights a trial's recipe names and which a worker has, so that a trial waits for a worker
/// that has them; and which file a name stands for. Trials that are there already say it in their documents.
inline constexpr const char* kSchemaV3 = R"sql(
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

/// Version 4: the store has an identity of its own, so that a worker can tell that a results file was
/// restored or exchanged under its scheduler; a trial can be held back from the queue; a table knows what is
/// wrong with its numbers: the best by the column's direction, what a completed run lacks, what was refused,
/// equal curves, results made before a correction.
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
  deaths INTEGER NOT NULL DEFAULT 0    -- of them, those that were all that their worker had when it died, or left it in trouble
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

-- Both extremes of a metric have their steps: which of them is the best is for a column to say.
DROP VIEW table_cell;
DROP VIEW trial_summary;
ALTER TABLE metric_summary DROP COLUMN best;
ALTER TABLE metric_summary DROP COLUMN best_step;
ALTER TABLE metric_summary ADD COLUMN min_step INTEGER NOT NULL DEFAULT 0;  -- the earliest of equals
ALTER TABLE metric_summary ADD COLUMN max_step INTEGER NOT NULL DEFAULT 0;
UPDATE metric_summary SET
  min_step = COALESCE((SELECT MIN(p.step) FROM point p
                       WHERE p.run_id = metric_summary.run_id AND p.metric_id = metric_summary.metric_id AND p.value = min), 0),
  max_step = COALESCE((SELECT MIN(p.step) FROM point p
                       WHERE p.run_id = metric_summary.run_id AND p.metric_id = metric_summary.metric_id AND p.value = max), 0);

-- Lines of metrics that could not be read, and all points as one number: runs with equal curves are told.
ALTER TABLE run ADD COLUMN refused_lines INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN refused_example TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN repeated_points INTEGER NOT NULL DEFAULT 0;  -- of a step that had another value: not kept
ALTER TABLE run ADD COLUMN curves INTEGER NOT NULL DEFAULT 0;
UPDATE run SET curves = COALESCE((SELECT curve_digest(m.name, p.step, p.value, p.kind)
                                  FROM point p JOIN metric m ON m.id = p.metric_id WHERE p.run_id = run.id), 0);

-- A correction of the trainer touches some trials: the version that a trial's results would have today. Where it is above
-- result_version they were made before it.
ALTER TABLE trial ADD COLUMN due_version INTEGER NOT NULL DEFAULT 0;
UPDATE trial SET due_version = result_version;
CREATE INDEX trial_to_renew ON trial (id) WHERE state = 'queued' AND result_version < due_version;
ALTER TABLE store ADD COLUMN due_as_of INTEGER NOT NULL DEFAULT 0;  -- the newest version that due_version knows of
ALTER TABLE trial ADD COLUMN replaced_by INTEGER REFERENCES trial;  -- runs it again, since its results lack something

-- Of a claim whose trial is completed: how many columns of the sweep take a metric that its run does not have.
ALTER TABLE sweep_trial ADD COLUMN unfilled INTEGER NOT NULL DEFAULT 0;
UPDATE sweep_trial SET unfilled = (
  SELECT COUNT(*) FROM sweep_column c
  WHERE c.sweep_id = sweep_trial.sweep_id AND c.kind = 'metric'
    AND NOT EXISTS (SELECT 1 FROM metric m JOIN metric_summary ms ON ms.metric_id = m.id
                    WHERE m.name = c.source AND ms.run_id = (SELECT run_id FROM trial WHERE id = sweep_trial.trial_id)))
WHERE trial_id IN (SELECT id FROM trial WHERE state = 'completed');

UPDATE sweep_column SET digits = -1 WHERE digits = 2;  -- the default: from now on as many as the values need, -1

CREATE VIEW trial_summary AS
SELECT s.name AS sweep, r.id AS row, r.label AS label, st.seed AS seed, t.state AS state,
       CASE t.state WHEN 'queued' THEN t.waiting ELSE t.reason END AS reason,
       t.attempt AS attempt, run.worker AS worker, run.step AS step, run.total_steps AS total_steps,
       (SELECT json_group_object(m.name, COALESCE(ms.last, ms.last_kind))
        FROM metric_summary ms JOIN metric m ON m.id = ms.metric_id WHERE ms.run_id = t.run_id) AS last,
       t.id AS trial, t.run_id AS run, t.config_hash AS config_hash, st.withdrawn AS withdrawn,
       t.state = 'completed' AND t.result_version < t.due_version AS before_mend
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_trial st ON st.sweep_id = s.id AND st.row = r.position
JOIN trial t ON t.id = st.trial_id
LEFT JOIN run ON run.id = t.run_id;

CREATE VIEW table_cell AS
WITH sample AS (                 -- one line for each value that a cell is made of
  SELECT st.sweep_id, st.row, c.position,
         CASE c.take WHEN 'best' THEN CASE c.better WHEN 'lower' THEN ms.min ELSE ms.max END
                     WHEN 'min' THEN ms.min WHEN 'max' THEN ms.max
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
), done AS (                     -- completed trials of a row, and how many of them were made before a correction
  SELECT st.sweep_id, st.row, COUNT(*) AS trials, SUM(t.result_version < t.due_version) AS before_mend
  FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
  GROUP BY st.sweep_id, st.row
)
SELECT s.name AS sweep, r.id AS row, r.label AS label, c.name AS "column", COALESCE(cell.n, 0) AS n,
       cell.mean AS mean, cell.sd AS sd, p.printed AS paper,
       CASE c.kind WHEN 'setting' THEN r.set_json ->> ('$."' || c.source || '"') END AS setting,
       CASE c.kind WHEN 'metric' THEN COALESCE(done.trials, 0) - COALESCE(cell.n, 0) ELSE 0 END AS missing,
       CASE c.kind WHEN 'metric' THEN COALESCE(done.before_mend, 0) ELSE 0 END AS before_mend
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_column c ON c.sweep_id = s.id
LEFT JOIN cell ON cell.sweep_id = s.id AND cell.row = r.position AND cell.position = c.position
LEFT JOIN done ON done.sweep_id = s.id AND done.row = r.position
LEFT JOIN sweep_paper p ON p.sweep_id = s.id AND p.row = r.position AND p.name = c.name;
)sql";

/// Version 5: whether a smaller unit may stand in for a column's, until now a '?' behind it; and cells say
/// how many of their runs diverged, and take the newest count of each architecture, as the table does.
inline constexpr const char* kSchemaV5 = R"sql(
ALTER TABLE sweep_column ADD COLUMN unit_fits INTEGER NOT NULL DEFAULT 0;  -- 1: `unit`, or a smaller one where all values are small
UPDATE sweep_column SET unit_fits = 1, unit = rtrim(unit, '?') WHERE unit LIKE '%?';

DROP VIEW table_cell;
CREATE VIEW table_cell AS
WITH sample AS (                 -- one line for each value that a cell is made of
  SELECT st.sweep_id, st.row, c.position,
         CASE c.take WHEN 'best' THEN CASE c.better WHEN 'lower' THEN ms.min ELSE ms.max END
                     WHEN 'min' THEN ms.min WHEN 'max' THEN ms.max
                     WHEN 'mean' THEN ms.sum / ms.finite ELSE ms.last END AS value,
         CASE c.take WHEN 'last' THEN ms.last IS NULL ELSE ms.finite < ms.count END AS diverged
  FROM sweep_column c
  JOIN sweep_trial st ON st.sweep_id = c.sweep_id
  JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
  JOIN metric m ON m.name = c.source
  JOIN metric_summary ms ON ms.run_id = t.run_id AND ms.metric_id = m.id
  WHERE c.kind = 'metric'
  UNION ALL
  SELECT r.sweep_id, r.position, c.position, mc.value, 0
  FROM sweep_column c
  JOIN sweep_row r ON r.sweep_id = c.sweep_id
  JOIN model_count mc ON mc.model_hash = r.model_hash AND mc.mode = c.source
                     AND mc.version = (SELECT MAX(version) FROM model_count WHERE model_hash = r.model_hash AND mode = c.source)
  WHERE c.kind = 'count'
), centred AS (
  SELECT *, AVG(value) OVER (PARTITION BY sweep_id, row, position) AS mean FROM sample
), cell AS (                     -- a value that is not finite leaves no mean
  SELECT sweep_id, row, position, COUNT(*) AS n, SUM(diverged) AS diverged,
         CASE WHEN COUNT(*) = COUNT(value) THEN MAX(mean) END AS mean,
         CASE WHEN COUNT(*) = COUNT(value) AND COUNT(*) > 1
              THEN SQRT(SUM((value - mean) * (value - mean)) / (COUNT(*) - 1)) END AS sd
  FROM centred GROUP BY sweep_id, row, position
), done AS (                     -- completed trials of a row, and how many of them were made before a correction
  SELECT st.sweep_id, st.row, COUNT(*) AS trials, SUM(t.result_version < t.due_version) AS before_mend
  FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
  GROUP BY st.sweep_id, st.row
)
SELECT s.name AS sweep, r.id AS row, r.label AS label, c.name AS "column", COALESCE(cell.n, 0) AS n,
       cell.mean AS mean, cell.sd AS sd, p.printed AS paper,
       CASE c.kind WHEN 'setting' THEN r.set_json ->> ('$."' || c.source || '"') END AS setting,
       CASE c.kind WHEN 'metric' THEN COALESCE(done.trials, 0) - COALESCE(cell.n, 0) ELSE 0 END AS missing,
       CASE c.kind WHEN 'metric' THEN COALESCE(done.before_mend, 0) ELSE 0 END AS before_mend,
       COALESCE(cell.diverged, 0) AS diverged
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_column c ON c.sweep_id = s.id
LEFT JOIN cell ON cell.sweep_id = s.id AND cell.row = r.position AND cell.position = c.position
LEFT JOIN done ON done.sweep_id = s.id AND done.row = r.position
LEFT JOIN sweep_paper p ON p.sweep_id = s.id AND p.row = r.position AND p.name = c.name;
)sql";

/// Version 6: which slots of its worker a run has, until now noted in the worker's list of slots.
inline constexpr const char* kSchemaV6 = R"sql(
ALTER TABLE run ADD COLUMN slots TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(slots));  -- indices into its worker's
UPDATE run SET slots = (SELECT json_group_array(slot.value ->> '$.index')
                        FROM worker, json_each(worker.slots_json) slot
                        WHERE worker.name = run.worker AND slot.value ->> '$.run' = run.id)
WHERE state IN ('leased', 'running');
UPDATE worker SET slots_json = (SELECT json_group_array(json_remove(value, '$.run')) FROM json_each(slots_json));
)sql";

/// Version 7: what a look at the queue or at a sweep needs is kept and not counted: trials that need the same
/// of a worker have one shape and wait for one reason; of each sweep the trials by state.
inline constexpr const char* kSchemaV7 = R"sql(
CREATE TABLE shape (             -- what trials need of a worker
  id INTEGER PRIMARY KEY,
  demand TEXT NOT NULL UNIQUE CHECK (json_valid(demand)),  -- command, data, gpus, result_version, weights: name -> SHA-256 or ''
  waiting TEXT NOT NULL DEFAULT ''                         -- why its queued trials wait, those that could be run now
) STRICT;
ALTER TABLE trial ADD COLUMN shape_id INTEGER REFERENCES shape;
ALTER TABLE trial ADD COLUMN time_limit_s INTEGER NOT NULL DEFAULT 0;   -- a run's; 0: none
ALTER TABLE trial ADD COLUMN stall_limit_s INTEGER NOT NULL DEFAULT 0;  -- how long it may print nothing
CREATE TEMP TABLE demand_of (id INTEGER PRIMARY KEY, demand TEXT NOT NULL);  -- looked up once for each trial
INSERT INTO demand_of
SELECT id, json_object('command', json(CASE WHEN command_json = '' THEN 'false' ELSE 'true' END), 'data', data, 'gpus', gpus,
                       'result_version', CASE WHEN command_json = '' THEN result_version ELSE 0 END,
                       'weights', json(COALESCE((SELECT json_group_object(name, sha256) FROM
                                         (SELECT name, sha256 FROM trial_weights WHERE trial_id = trial.id ORDER BY name)), '{}'))) AS demand
FROM trial;
INSERT OR IGNORE INTO shape (demand) SELECT demand FROM demand_of ORDER BY id;
UPDATE trial SET shape_id = (SELECT shape.id FROM demand_of JOIN shape USING (demand) WHERE demand_of.id = trial.id);
DROP TABLE demand_of;
UPDATE trial SET waiting = '';   -- from now on what is of this trial alone: a back-off, a refusal

DROP INDEX trial_queued;
CREATE INDEX trial_open ON trial (id) WHERE state IN ('queued', 'leased', 'running');

ALTER TABLE worker ADD COLUMN drained TEXT;  -- why it gets no trials, as somebody said ('': without a reason); NULL: it does

ALTER TABLE sweep ADD COLUMN owner TEXT NOT NULL DEFAULT '';                      -- who submitted it
ALTER TABLE sweep ADD COLUMN weight REAL NOT NULL DEFAULT 1 CHECK (weight > 0);   -- of its owner's slots, against his other sweeps
ALTER TABLE sweep ADD COLUMN max_running INTEGER CHECK (max_running > 0);         -- trials under way at once; NULL: as many as there is room for

ALTER TABLE sweep ADD COLUMN preempts INTEGER NOT NULL DEFAULT 0 CHECK (preempts IN (0, 1));  -- runs of lower priority give way

CREATE TABLE sweep_count (       -- claims of a sweep by the state of their trials; kept by the triggers below
  sweep_id INTEGER PRIMARY KEY REFERENCES sweep,
  queued INTEGER NOT NULL DEFAULT 0,
  leased INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  held INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,   -- and those whose claim was withdrawn before they ended
  unfilled INTEGER NOT NULL DEFAULT 0,    -- completed, without a metric that a column takes
  finished_ms INTEGER NOT NULL DEFAULT 0  -- when the last of them ended
) STRICT;
INSERT INTO sweep_count (sweep_id, queued, leased, running, completed, failed, held, cancelled, unfilled, finished_ms)
SELECT s.id, COUNT(*) FILTER (WHERE t.state = 'queued' AND NOT st.withdrawn), COUNT(*) FILTER (WHERE t.state = 'leased' AND NOT st.withdrawn),
       COUNT(*) FILTER (WHERE t.state = 'running' AND NOT st.withdrawn), COUNT(*) FILTER (WHERE t.state = 'completed'),
       COUNT(*) FILTER (WHERE t.state = 'failed'), COUNT(*) FILTER (WHERE t.state = 'held' AND NOT st.withdrawn),
       COUNT(*) FILTER (WHERE t.state = 'cancelled' OR (st.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
       COUNT(*) FILTER (WHERE t.state = 'completed' AND st.unfilled > 0),
       COALESCE(MAX(t.finished_ms) FILTER (WHERE NOT st.withdrawn), 0)
FROM sweep s LEFT JOIN sweep_trial st ON st.sweep_id = s.id LEFT JOIN trial t ON t.id = st.trial_id GROUP BY s.id;

CREATE TRIGGER sweep_counted AFTER INSERT ON sweep BEGIN
  INSERT INTO sweep_count (sweep_id) VALUES (NEW.id);
END;
-- Of a new trial, as nearly every claim is when it is made: a sweep of 100,000 is submitted in one transaction.
CREATE TRIGGER new_claim_counted AFTER INSERT ON sweep_trial
WHEN NOT NEW.withdrawn AND (SELECT state FROM trial WHERE id = NEW.trial_id) = 'queued' BEGIN
  UPDATE sweep_count SET queued = queued + 1 WHERE sweep_id = NEW.sweep_id;
END;
CREATE TRIGGER claim_counted AFTER INSERT ON sweep_trial
WHEN NEW.withdrawn OR (SELECT state FROM trial WHERE id = NEW.trial_id) <> 'queued' BEGIN
  UPDATE sweep_count SET
    queued = queued + (t.state = 'queued' AND NOT NEW.withdrawn), leased = leased + (t.state = 'leased' AND NOT NEW.withdrawn),
    running = running + (t.state = 'running' AND NOT NEW.withdrawn), completed = completed + (t.state = 'completed'),
    failed = failed + (t.state = 'failed'), held = held + (t.state = 'held' AND NOT NEW.withdrawn),
    cancelled = cancelled + (t.state = 'cancelled' OR (NEW.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled + (t.state = 'completed' AND NEW.unfilled > 0),
    finished_ms = MAX(sweep_count.finished_ms, CASE WHEN NEW.withdrawn THEN 0 ELSE COALESCE(t.finished_ms, 0) END)
  FROM trial t WHERE t.id = NEW.trial_id AND sweep_count.sweep_id = NEW.sweep_id;
END;
CREATE TRIGGER claim_recounted AFTER UPDATE OF trial_id, withdrawn, unfilled ON sweep_trial
WHEN OLD.trial_id <> NEW.trial_id OR OLD.withdrawn <> NEW.withdrawn OR (OLD.unfilled > 0) <> (NEW.unfilled > 0) BEGIN
  UPDATE sweep_count SET
    queued = queued - (t.state = 'queued' AND NOT OLD.withdrawn), leased = leased - (t.state = 'leased' AND NOT OLD.withdrawn),
    running = running - (t.state = 'running' AND NOT OLD.withdrawn), completed = completed - (t.state = 'completed'),
    failed = failed - (t.state = 'failed'), held = held - (t.state = 'held' AND NOT OLD.withdrawn),
    cancelled = cancelled - (t.state = 'cancelled' OR (OLD.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled - (t.state = 'completed' AND OLD.unfilled > 0)
  FROM trial t WHERE t.id = OLD.trial_id AND sweep_count.sweep_id = OLD.sweep_id;
  UPDATE sweep_count SET
    queued = queued + (t.state = 'queued' AND NOT NEW.withdrawn), leased = leased + (t.state = 'leased' AND NOT NEW.withdrawn),
    running = running + (t.state = 'running' AND NOT NEW.withdrawn), completed = completed + (t.state = 'completed'),
    failed = failed + (t.state = 'failed'), held = held + (t.state = 'held' AND NOT NEW.withdrawn),
    cancelled = cancelled + (t.state = 'cancelled' OR (NEW.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled + (t.state = 'completed' AND NEW.unfilled > 0),
    finished_ms = MAX(sweep_count.finished_ms, CASE WHEN NEW.withdrawn THEN 0 ELSE COALESCE(t.finished_ms, 0) END)
  FROM trial t WHERE t.id = NEW.trial_id AND sweep_count.sweep_id = NEW.sweep_id;
END;
-- Of one claim, as nearly every trial is: to group the claims takes SQLite ten times as long as all the rest.
CREATE TRIGGER trial_recounted AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state AND (SELECT COUNT(*) FROM sweep_trial WHERE trial_id = NEW.id) = 1 BEGIN
  UPDATE sweep_count SET
    queued = queued + (SELECT NOT withdrawn FROM sweep_trial WHERE trial_id = NEW.id) * ((NEW.state = 'queued') - (OLD.state = 'queued')),
    leased = leased + (SELECT NOT withdrawn FROM sweep_trial WHERE trial_id = NEW.id) * ((NEW.state = 'leased') - (OLD.state = 'leased')),
    running = running + (SELECT NOT withdrawn FROM sweep_trial WHERE trial_id = NEW.id) * ((NEW.state = 'running') - (OLD.state = 'running')),
    completed = completed + (NEW.state = 'completed') - (OLD.state = 'completed'),
    failed = failed + (NEW.state = 'failed') - (OLD.state = 'failed'),
    held = held + (SELECT NOT withdrawn FROM sweep_trial WHERE trial_id = NEW.id) * ((NEW.state = 'held') - (OLD.state = 'held')),
    cancelled = cancelled + (NEW.state = 'cancelled') - (OLD.state = 'cancelled')
              + (1 - (SELECT NOT withdrawn FROM sweep_trial WHERE trial_id = NEW.id))
              * ((NEW.state IN ('queued', 'leased', 'running', 'held')) - (OLD.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled + (SELECT unfilled > 0 FROM sweep_trial WHERE trial_id = NEW.id)
                        * ((NEW.state = 'completed') - (OLD.state = 'completed')),
    finished_ms = MAX(finished_ms, (SELECT NOT withdrawn FROM sweep_trial WHERE trial_id = NEW.id) * COALESCE(NEW.finished_ms, 0))
  WHERE sweep_id = (SELECT sweep_id FROM sweep_trial WHERE trial_id = NEW.id);
END;
CREATE TRIGGER shared_trial_recounted AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state AND (SELECT COUNT(*) FROM sweep_trial WHERE trial_id = NEW.id) <> 1 BEGIN
  UPDATE sweep_count SET
    queued = queued + wanted * ((NEW.state = 'queued') - (OLD.state = 'queued')),
    leased = leased + wanted * ((NEW.state = 'leased') - (OLD.state = 'leased')),
    running = running + wanted * ((NEW.state = 'running') - (OLD.state = 'running')),
    completed = completed + claims * ((NEW.state = 'completed') - (OLD.state = 'completed')),
    failed = failed + claims * ((NEW.state = 'failed') - (OLD.state = 'failed')),
    held = held + wanted * ((NEW.state = 'held') - (OLD.state = 'held')),
    cancelled = cancelled + claims * ((NEW.state = 'cancelled') - (OLD.state = 'cancelled'))
              + (claims - wanted) * ((NEW.state IN ('queued', 'leased', 'running', 'held')) - (OLD.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = sweep_count.unfilled + lacking * ((NEW.state = 'completed') - (OLD.state = 'completed')),
    finished_ms = CASE WHEN wanted > 0 THEN MAX(finished_ms, COALESCE(NEW.finished_ms, 0)) ELSE finished_ms END
  FROM (SELECT sweep_id AS sweep, COUNT(*) AS claims, COUNT(*) FILTER (WHERE NOT withdrawn) AS wanted,
               COUNT(*) FILTER (WHERE unfilled > 0) AS lacking
        FROM sweep_trial WHERE trial_id = NEW.id GROUP BY sweep_id) c
  WHERE sweep_count.sweep_id = c.sweep;
END;

-- What became of trials, step by step, for whoever wants to know how something came about: the newest of them
-- (TransitionLog), in the order of `id`; the clock may have been set meanwhile.
CREATE TABLE transition (
  id INTEGER PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  trial_id INTEGER NOT NULL,
  was TEXT NOT NULL,
  state TEXT NOT NULL,
  run_id INTEGER,                -- the trial's newest run then
  reason TEXT NOT NULL           -- of that run's end, or of the trial's
) STRICT;
CREATE TRIGGER trial_stepped AFTER UPDATE OF state ON trial WHEN OLD.state <> NEW.state BEGIN
  INSERT INTO transition (time_ms, trial_id, was, state, run_id, reason)
  VALUES (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), NEW.id, OLD.state, NEW.state, NEW.run_id,
          CASE WHEN NEW.reason <> '' THEN NEW.reason
               WHEN OLD.state IN ('leased', 'running') THEN COALESCE((SELECT reason FROM run WHERE id = NEW.run_id), '') ELSE '' END);
END;

-- Why a queued trial waits: what is of it alone, or of all that need the same.
CREATE VIEW trial_waiting AS
SELECT t.id AS trial,
       CASE WHEN t.state <> 'queued' THEN ''
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active') THEN 'sweep is paused'
            WHEN t.waiting <> '' THEN t.waiting
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id JOIN sweep_count n ON n.sweep_id = s.id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active'
                               AND (s.max_running IS NULL OR n.leased + n.running < s.max_running))
            THEN 'sweep runs as many trials at once as it may'
            ELSE COALESCE((SELECT waiting FROM shape WHERE id = t.shape_id), '') END AS reason
FROM trial t;
DROP VIEW trial_summary;
CREATE VIEW trial_summary AS
SELECT s.name AS sweep, r.id AS row, r.label AS label, st.seed AS seed, t.state AS state,
       CASE t.state WHEN 'queued' THEN (SELECT reason FROM trial_waiting WHERE trial = t.id) ELSE t.reason END AS reason,
       t.attempt AS attempt, run.worker AS worker, run.step AS step, run.total_steps AS total_steps,
       (SELECT json_group_object(m.name, COALESCE(ms.last, ms.last_kind))
        FROM metric_summary ms JOIN metric m ON m.id = ms.metric_id WHERE ms.run_id = t.run_id) AS last,
       t.id AS trial, t.run_id AS run, t.config_hash AS config_hash, st.withdrawn AS withdrawn,
       t.state = 'completed' AND t.result_version < t.due_version AS before_mend
FROM sweep s
JOIN sweep_row r ON r.sweep_id = s.id
JOIN sweep_trial st ON st.sweep_id = s.id AND st.row = r.position
JOIN trial t ON t.id = st.trial_id
LEFT JOIN run ON run.id = t.run_id;
)sql";

inline constexpr const char* kSchemaV8 = R"sql(
-- Which workers a trial may run on, and which get nothing for a while.
ALTER TABLE worker ADD COLUMN labels_json TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(labels_json));  -- what it says of itself: {"gpu": "h100"}
ALTER TABLE worker ADD COLUMN quarantine TEXT;  -- why it gets one trial at a time at most: trials failed on it one after the other; NULL: they did not
ALTER TABLE worker ADD COLUMN quarantine_until_ms INTEGER NOT NULL DEFAULT 0;     -- when it gets that one, by the wall clock
ALTER TABLE worker ADD COLUMN quarantine_back_off_ms INTEGER NOT NULL DEFAULT 0;  -- how long it waits for that; twice as long when it fails too
ALTER TABLE trial ADD COLUMN where_json TEXT NOT NULL DEFAULT '' CHECK (where_json = '' OR json_valid(where_json));  -- label -> values that its worker may have, "!x": that it may not; '': any worker

-- What of a sweep is held because it fails.
ALTER TABLE sweep ADD COLUMN breaker INTEGER NOT NULL DEFAULT 0 CHECK (breaker IN (0, 1));  -- trials are held that share what fails
ALTER TABLE sweep ADD COLUMN canary INTEGER NOT NULL DEFAULT 0 CHECK (canary IN (0, 1));    -- a few run first: none has got through yet
ALTER TABLE sweep ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;      -- trials that failed for good by themselves, since it was submitted or retried
ALTER TABLE sweep ADD COLUMN failed_on TEXT NOT NULL DEFAULT '';       -- the worker on which they did; '*': several
ALTER TABLE sweep ADD COLUMN open_levels INTEGER NOT NULL DEFAULT 0;   -- sweep_level of which no trial has completed
ALTER TABLE sweep ADD COLUMN held TEXT NOT NULL DEFAULT '';            -- why all that is left of it is held, or ''
CREATE TABLE sweep_level (       -- of a sweep with a breaker: what its factors' levels came to, those that three trials or more have
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  factor TEXT NOT NULL,          -- a key of sweep_row.set_json; '': the row itself
  level TEXT NOT NULL,           -- its value there; the row's id
  trials INTEGER NOT NULL,       -- that it had when the sweep was submitted
  completed INTEGER NOT NULL DEFAULT 0 CHECK (completed IN (0, 1)),  -- a trial of it has
  failures INTEGER NOT NULL DEFAULT 0,   -- as of the sweep
  failed_on TEXT NOT NULL DEFAULT '',
  held TEXT NOT NULL DEFAULT '',         -- why its trials are held, or ''
  PRIMARY KEY (sweep_id, factor, level)
) STRICT, WITHOUT ROWID;
ALTER TABLE sweep_row ADD COLUMN released INTEGER NOT NULL DEFAULT 0 CHECK (released IN (0, 1));  -- somebody retried it since: what holds its levels does not hold it
CREATE INDEX sweep_level_held ON sweep_level (sweep_id) WHERE held <> '';

DROP VIEW trial_waiting;
CREATE VIEW trial_waiting AS     -- why a queued trial waits: what is of it alone, or of all that need the same
SELECT t.id AS trial,
       CASE WHEN t.state <> 'queued' THEN ''
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active') THEN 'sweep is paused'
            WHEN t.waiting <> '' THEN t.waiting
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id JOIN sweep_count n ON n.sweep_id = s.id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active'
                               AND (s.max_running IS NULL OR n.leased + n.running < s.max_running))
            THEN 'sweep runs as many trials at once as it may'
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id JOIN sweep_count n ON n.sweep_id = s.id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active'
                               AND NOT (s.canary AND n.leased + n.running > 0))
            THEN 'a few trials of its sweep run first: none has got through yet'
            ELSE COALESCE((SELECT waiting FROM shape WHERE id = t.shape_id), '') END AS reason
FROM trial t;

ALTER TABLE run ADD COLUMN took_ms INTEGER;                       -- from the start of its program to its end, as its worker has measured; NULL: not told
ALTER TABLE run ADD COLUMN packed_with INTEGER NOT NULL DEFAULT 0;  -- other runs on its GPU, as many as there were at once
ALTER TABLE trial ADD COLUMN pack TEXT NOT NULL DEFAULT '';  -- its runs may share a GPU: its row's config_hash, under which `measured` has their memory
ALTER TABLE sweep_row ADD COLUMN work_hash TEXT NOT NULL DEFAULT '';  -- of what in its configuration takes time: all but real numbers of the recipe; '' for a command
CREATE TABLE measured (          -- what runs took that completed: what trials like theirs will take
  hash TEXT NOT NULL,            -- sweep_row.config_hash, or sweep_row.work_hash
  gpus INTEGER NOT NULL,
  runs INTEGER NOT NULL,         -- how many there were
  mean_ms REAL NOT NULL,         -- of a whole trial, in a slot of its own; each new run counts as a tenth at least
  memory_bytes REAL,             -- the most that one took of its GPU's memory; NULL: not reported
  steps_per_second REAL,         -- of the newest that had its GPU for itself; NULL: not reported
  packing TEXT NOT NULL DEFAULT '',  -- why its trials are not put beside others any more, or ''
  PRIMARY KEY (hash, gpus)
) STRICT, WITHOUT ROWID;
INSERT INTO measured (hash, gpus, runs, mean_ms)
SELECT hash, gpus, COUNT(*), AVG(took) FROM (
  SELECT DISTINCT r.config_hash AS hash, t.gpus AS gpus, run.id,
         (run.ended_ms - run.started_ms) * CASE WHEN COALESCE(run.resumed_from_step, 0) > 0 AND run.total_steps > run.resumed_from_step
           THEN CAST(run.total_steps AS REAL) / (run.total_steps - run.resumed_from_step) ELSE 1.0 END AS took
  FROM run JOIN trial t ON t.id = run.trial_id JOIN sweep_trial st ON st.trial_id = t.id
    JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
  WHERE run.state = 'completed' AND run.ended_ms >= run.started_ms AND r.config_hash <> ''
) GROUP BY hash, gpus;

-- Sweeps are removed piece by piece; no number of a sweep, a trial or a run is given twice.
ALTER TABLE sweep ADD COLUMN removing INTEGER;  -- it is being removed, and transitions up to this one have been looked at; NULL: it is not
CREATE INDEX sweep_removing ON sweep (id) WHERE removing IS NOT NULL;
ALTER TABLE store ADD COLUMN last_sweep INTEGER NOT NULL DEFAULT 0;  -- the highest number of those that were removed
ALTER TABLE store ADD COLUMN last_trial INTEGER NOT NULL DEFAULT 0;
ALTER TABLE store ADD COLUMN last_run INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER sweep_removed AFTER DELETE ON sweep BEGIN UPDATE store SET last_sweep = MAX(last_sweep, OLD.id); END;
CREATE TRIGGER trial_removed AFTER DELETE ON trial BEGIN UPDATE store SET last_trial = MAX(last_trial, OLD.id); END;
CREATE TRIGGER run_removed AFTER DELETE ON run BEGIN UPDATE store SET last_run = MAX(last_run, OLD.id); END;
CREATE TRIGGER claim_removed AFTER DELETE ON sweep_trial BEGIN
  UPDATE sweep_count SET
    queued = queued - (t.state = 'queued' AND NOT OLD.withdrawn), leased = leased - (t.state = 'leased' AND NOT OLD.withdrawn),
    running = running - (t.state = 'running' AND NOT OLD.withdrawn), completed = completed - (t.state = 'completed'),
    failed = failed - (t.state = 'failed'), held = held - (t.state = 'held' AND NOT OLD.withdrawn),
    cancelled = cancelled - (t.state = 'cancelled' OR (OLD.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = unfilled - (t.state = 'completed' AND OLD.unfilled > 0)
  FROM trial t WHERE t.id = OLD.trial_id AND sweep_count.sweep_id = OLD.sweep_id;
END;
CREATE INDEX trial_newest_run ON trial (run_id) WHERE run_id IS NOT NULL;  -- who refers to what is removed
CREATE INDEX trial_replaced ON trial (replaced_by) WHERE replaced_by IS NOT NULL;
CREATE INDEX run_resumed ON run (resumed_from_run) WHERE resumed_from_run IS NOT NULL;

-- Whose failure the end of a run is, and what a sweep wants to become of its trial then; further bounds of a run.
ALTER TABLE run ADD COLUMN failure TEXT NOT NULL DEFAULT ''  -- of a failed or lost one: as which it counts
  CHECK (failure IN ('', 'infrastructure', 'resources', 'trial', 'data'));
ALTER TABLE run ADD COLUMN failure_rule TEXT NOT NULL DEFAULT '';  -- what of retry_on decided that, or ''
UPDATE run SET failure = CASE WHEN state = 'lost' THEN 'infrastructure' WHEN signal = 9 THEN 'resources' ELSE 'trial' END
WHERE state IN ('failed', 'lost');
ALTER TABLE trial ADD COLUMN retry_on TEXT NOT NULL DEFAULT '';  -- JSON list of [kind of failure, attempts after it or class as which it counts]
ALTER TABLE trial ADD COLUMN retried TEXT NOT NULL DEFAULT '';   -- JSON: kind of failure -> failures that retry_on counts and max_retries does not
ALTER TABLE trial ADD COLUMN log_limit_bytes INTEGER NOT NULL DEFAULT 0;  -- of a run's log; 0: its worker's
ALTER TABLE trial ADD COLUMN nan_fails INTEGER NOT NULL DEFAULT 0;        -- 1: a metric value that is not finite ends the run
-- The same counts and the same index as before, at less cost: SQLite makes a table of its own for each list of three values or
-- more, each time that it looks into it. First the trials of one claim that nobody has withdrawn, which are nearly all.
DROP TRIGGER trial_recounted;
DROP TRIGGER shared_trial_recounted;
CREATE TRIGGER trial_recounted AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state
 AND (SELECT COUNT(*) = 1 AND MAX(withdrawn) = 0 AND MAX(unfilled) = 0 FROM sweep_trial WHERE trial_id = NEW.id) BEGIN
  UPDATE sweep_count SET
    queued = queued + (NEW.state = 'queued') - (OLD.state = 'queued'),
    leased = leased + (NEW.state = 'leased') - (OLD.state = 'leased'),
    running = running + (NEW.state = 'running') - (OLD.state = 'running'),
    completed = completed + (NEW.state = 'completed') - (OLD.state = 'completed'),
    failed = failed + (NEW.state = 'failed') - (OLD.state = 'failed'),
    held = held + (NEW.state = 'held') - (OLD.state = 'held'),
    cancelled = cancelled + (NEW.state = 'cancelled') - (OLD.state = 'cancelled'),
    finished_ms = MAX(finished_ms, COALESCE(NEW.finished_ms, 0))
  WHERE sweep_id = (SELECT sweep_id FROM sweep_trial WHERE trial_id = NEW.id);
END;
CREATE TRIGGER shared_trial_recounted AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state
 AND NOT (SELECT COUNT(*) = 1 AND MAX(withdrawn) = 0 AND MAX(unfilled) = 0 FROM sweep_trial WHERE trial_id = NEW.id) BEGIN
  UPDATE sweep_count SET
    queued = queued + wanted * ((NEW.state = 'queued') - (OLD.state = 'queued')),
    leased = leased + wanted * ((NEW.state = 'leased') - (OLD.state = 'leased')),
    running = running + wanted * ((NEW.state = 'running') - (OLD.state = 'running')),
    completed = completed + claims * ((NEW.state = 'completed') - (OLD.state = 'completed')),
    failed = failed + claims * ((NEW.state = 'failed') - (OLD.state = 'failed')),
    held = held + wanted * ((NEW.state = 'held') - (OLD.state = 'held')),
    cancelled = cancelled + claims * ((NEW.state = 'cancelled') - (OLD.state = 'cancelled'))
              + (claims - wanted) * ((NEW.state IN ('queued', 'leased', 'running', 'held')) - (OLD.state IN ('queued', 'leased', 'running', 'held'))),
    unfilled = sweep_count.unfilled + lacking * ((NEW.state = 'completed') - (OLD.state = 'completed')),
    finished_ms = CASE WHEN wanted > 0 THEN MAX(finished_ms, COALESCE(NEW.finished_ms, 0)) ELSE finished_ms END
  FROM (SELECT sweep_id AS sweep, COUNT(*) AS claims, COUNT(*) FILTER (WHERE NOT withdrawn) AS wanted,
               COUNT(*) FILTER (WHERE unfilled > 0) AS lacking
        FROM sweep_trial WHERE trial_id = NEW.id GROUP BY sweep_id) c
  WHERE sweep_count.sweep_id = c.sweep;
END;
DROP INDEX trial_open;
CREATE INDEX trial_open ON trial (id) WHERE state = 'queued' OR state = 'leased' OR state = 'running';
)sql";

}  // namespace abl::storage
