// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV4 = R"sql(
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

const char* const kSchemaV5 = R"sql(
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

const char* const kSchemaV6 = R"sql(
ALTER TABLE run ADD COLUMN slots TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(slots));  -- indices into its worker's
UPDATE run SET slots = (SELECT json_group_array(slot.value ->> '$.index')
                        FROM worker, json_each(worker.slots_json) slot
                        WHERE worker.name = run.worker AND slot.value ->> '$.run' = run.id)
WHERE state IN ('leased', 'running');
UPDATE worker SET slots_json = (SELECT json_group_array(json_remove(value, '$.run')) FROM json_each(slots_json));
)sql";

}  // namespace abl::storage
