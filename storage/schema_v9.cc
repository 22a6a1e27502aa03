// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV9 = R"sql(
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

-- Columns may be expressions of others, or the paper's alone: the views that read the table are made again.
DROP VIEW table_cell;
CREATE TABLE sweep_column_9 (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  heading TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('metric', 'count', 'setting', 'expression', 'printed')),
  source TEXT NOT NULL,          -- metric, count mode, dotted setting, or the expression as written; 'true' of one that is printed alone
  take TEXT NOT NULL,
  unit TEXT NOT NULL,
  better TEXT NOT NULL,
  digits INTEGER NOT NULL,       -- -1: as many as the values need
  unit_fits INTEGER NOT NULL DEFAULT 0,  -- 1: `unit`, or a smaller one where all values are small
  PRIMARY KEY (sweep_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO sweep_column_9 SELECT sweep_id, position, name, heading, kind, source, take, unit, better, digits, unit_fits FROM sweep_column;
DROP TABLE sweep_column;
ALTER TABLE sweep_column_9 RENAME TO sweep_column;
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

-- Chains: trials that take the weights of others. A trial waits until its sources are completed, and is held where one of them
-- cannot be; whatever changes a trial's state keeps that right.
ALTER TABLE trial ADD COLUMN awaits INTEGER NOT NULL DEFAULT 0;  -- so many of its sources are not completed
ALTER TABLE trial ADD COLUMN held_for_source INTEGER NOT NULL DEFAULT 0 CHECK (held_for_source IN (0, 1));  -- held, until a source is queued again
ALTER TABLE checkpoint ADD COLUMN best TEXT NOT NULL DEFAULT '';  -- of the best evaluation so far: the path at which the same file stays; or ''
CREATE TABLE trial_source (      -- whose weights a trial takes, and whose those take in turn
  trial_id INTEGER NOT NULL REFERENCES trial,
  source_id INTEGER NOT NULL REFERENCES trial,
  name TEXT NOT NULL,            -- of the weights in its recipe; '': it is a source of one of its sources
  take TEXT NOT NULL CHECK (take IN ('best', 'last', '')),
  PRIMARY KEY (trial_id, source_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX trial_source_of ON trial_source (source_id);
CREATE TABLE run_source (        -- which weights a run was given
  run_id INTEGER NOT NULL REFERENCES run,
  name TEXT NOT NULL,
  source_run INTEGER NOT NULL,   -- that wrote them, and after which step; it may have been removed
  step INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

CREATE VIEW trial_awaits AS      -- what a trial waits for: '' || what || how
SELECT ts.trial_id AS trial, ts.source_id AS source, src.state AS state,
       COALESCE((SELECT 'row ' || r.id || ', seed ' || st.seed
                        || CASE WHEN EXISTS (SELECT 1 FROM sweep_trial o WHERE o.trial_id = ts.trial_id AND o.sweep_id <> st.sweep_id)
                                THEN ' of ' || s.name ELSE '' END
                 FROM sweep_trial mine
                 CROSS JOIN sweep_trial st ON st.trial_id = ts.source_id AND st.sweep_id = mine.sweep_id
                 CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
                 CROSS JOIN sweep s ON s.id = st.sweep_id
                 WHERE mine.trial_id = ts.trial_id ORDER BY mine.sweep_id, st.row, st.seed_index LIMIT 1),
                'trial ' || ts.source_id) AS what,
       ' (' || src.state || CASE WHEN src.state = 'running' AND run.total_steps > 0
                                 THEN ', ' || (100 * run.step / run.total_steps) || ' %' ELSE '' END || ')' AS how,
       CASE src.state WHEN 'failed' THEN 'failed: ' WHEN 'held' THEN 'is held: ' ELSE 'is ' || src.state END
       || CASE src.state WHEN 'failed' THEN src.reason WHEN 'held' THEN src.reason ELSE '' END AS fate
FROM trial_source ts JOIN trial src ON src.id = ts.source_id LEFT JOIN run ON run.id = src.run_id
WHERE src.state <> 'completed';

CREATE TRIGGER source_counted AFTER INSERT ON trial_source BEGIN
  UPDATE trial SET awaits = (SELECT COUNT(*) FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                             WHERE ts.trial_id = NEW.trial_id AND s.state <> 'completed') WHERE id = NEW.trial_id;
END;
CREATE TRIGGER source_uncounted AFTER DELETE ON trial_source BEGIN
  UPDATE trial SET awaits = (SELECT COUNT(*) FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                             WHERE ts.trial_id = OLD.trial_id AND s.state <> 'completed') WHERE id = OLD.trial_id;
END;
CREATE TRIGGER source_completed AFTER UPDATE OF state ON trial
WHEN (OLD.state = 'completed') <> (NEW.state = 'completed') AND EXISTS (SELECT 1 FROM trial_source WHERE source_id = NEW.id) BEGIN
  UPDATE trial SET awaits = (SELECT COUNT(*) FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                             WHERE ts.trial_id = trial.id AND s.state <> 'completed')
  WHERE id IN (SELECT trial_id FROM trial_source WHERE source_id = NEW.id);
END;
-- One that cannot be completed holds all that wait for it, however many lie in between.
CREATE TRIGGER source_gone AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state AND (NEW.state = 'failed' OR NEW.state = 'cancelled' OR NEW.state = 'held')
 AND EXISTS (SELECT 1 FROM trial_source WHERE source_id = NEW.id) BEGIN
  UPDATE trial SET state = 'held', held_for_source = 1, waiting = '', not_before_ms = 0,
         reason = (SELECT 'held: ' || what || ', whose weights it takes, ' || fate FROM trial_awaits WHERE trial = trial.id AND source = NEW.id)
  WHERE state = 'queued' AND id IN (SELECT trial_id FROM trial_source WHERE source_id = NEW.id);
END;
CREATE TRIGGER source_back AFTER UPDATE OF state ON trial
WHEN NEW.state IN ('queued', 'leased', 'running', 'completed') AND OLD.state IN ('failed', 'cancelled', 'held')
 AND EXISTS (SELECT 1 FROM trial_source WHERE source_id = NEW.id) BEGIN
  UPDATE trial SET state = 'queued', held_for_source = 0, reason = '', finished_ms = NULL
  WHERE state = 'held' AND held_for_source AND id IN (SELECT trial_id FROM trial_source WHERE source_id = NEW.id)
    AND NOT EXISTS (SELECT 1 FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                    WHERE ts.trial_id = trial.id AND s.id <> NEW.id
                      AND (s.state = 'failed' OR s.state = 'cancelled' OR (s.state = 'held' AND NOT s.held_for_source)));
END;
CREATE TRIGGER queued_without_source AFTER UPDATE OF state, awaits ON trial
WHEN NEW.state = 'queued' AND NEW.awaits > 0
 AND EXISTS (SELECT 1 FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
             WHERE ts.trial_id = NEW.id AND (s.state = 'failed' OR s.state = 'cancelled' OR (s.state = 'held' AND NOT s.held_for_source))) BEGIN
  UPDATE trial SET state = 'held', held_for_source = 1, waiting = '', not_before_ms = 0,
         reason = (SELECT 'held: ' || what || ', whose weights it takes, ' || fate FROM trial_awaits
                   WHERE trial = NEW.id AND (state = 'failed' OR state = 'cancelled' OR state = 'held') ORDER BY source LIMIT 1)
  WHERE id = NEW.id;
END;

-- Sweeps grow, run until enough is known, and stop at a budget.
ALTER TABLE sweep ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;  -- of its content: one more with each extension
ALTER TABLE sweep ADD COLUMN seeds_rule TEXT NOT NULL DEFAULT '' CHECK (seeds_rule = '' OR json_valid(seeds_rule));  -- {"min": 2, "max": 8, "until": "ci(acc) < 0.3"}: seeds are added to a row until then; '': each row has every seed
ALTER TABLE sweep ADD COLUMN gpu_ms_limit INTEGER;   -- its runs may take so much of GPUs, or of slots where there are none; NULL: no limit
ALTER TABLE sweep ADD COLUMN until_ms INTEGER;       -- nothing of it is leased from then on, by the wall clock; NULL: no limit
ALTER TABLE sweep ADD COLUMN spent TEXT NOT NULL DEFAULT '';  -- why nothing of it is leased any more though it is active, or ''
CREATE INDEX sweep_budget ON sweep (id) WHERE gpu_ms_limit IS NOT NULL OR until_ms IS NOT NULL;
ALTER TABLE sweep_count ADD COLUMN gpu_ms INTEGER NOT NULL DEFAULT 0;  -- what its trials' ended runs took since it claims them, as their workers say, otherwise from the lease to the end, times GPUs (a slot without one counts as one)
UPDATE sweep_count SET gpu_ms = COALESCE((
  SELECT SUM(COALESCE(run.took_ms, run.ended_ms - run.leased_ms) * MAX(1, t.gpus)) FROM (SELECT DISTINCT trial_id FROM sweep_trial WHERE sweep_id = sweep_count.sweep_id) st
  CROSS JOIN trial t ON t.id = st.trial_id CROSS JOIN run ON run.trial_id = t.id
  WHERE run.ended_ms > run.leased_ms AND run.leased_ms >= (SELECT created_ms FROM sweep WHERE id = sweep_count.sweep_id)), 0);
CREATE TABLE sweep_revision (    -- the contents that a sweep has had, once it was extended; the newest is `sweep`'s own
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  revision INTEGER NOT NULL,     -- 1: as it was submitted
  time_ms INTEGER NOT NULL,
  author TEXT NOT NULL,          -- who submitted or extended it, as they say
  file TEXT NOT NULL,            -- as of sweep
  text TEXT NOT NULL,
  canonical TEXT NOT NULL,
  changes TEXT NOT NULL CHECK (json_valid(changes)),  -- JSON list: against the revision before, a line each
  new_trials INTEGER NOT NULL,   -- trials that it queued
  former_trials INTEGER NOT NULL,  -- sweep_former that it made
  PRIMARY KEY (sweep_id, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE sweep_former (      -- trials that were a sweep's before it was extended: their results stay, its table shows others
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  revision INTEGER NOT NULL,     -- the one that has others in their place
  row TEXT NOT NULL,             -- sweep_row.id, as it was
  label TEXT NOT NULL,
  seed INTEGER NOT NULL,
  trial_id INTEGER NOT NULL REFERENCES trial,
  version TEXT,                  -- of the command, where that is all that changed: the table shows them, marked, until the new ones are there
  why TEXT NOT NULL,             -- what of its row changed
  PRIMARY KEY (sweep_id, row, seed, revision)
) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_former_trial ON sweep_former (trial_id);
CREATE TABLE sweep_growth (      -- of a sweep with a seeds_rule: why each row has the seeds that it has
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  row TEXT NOT NULL,             -- sweep_row.id
  seeds INTEGER NOT NULL,        -- that it has
  open INTEGER NOT NULL CHECK (open IN (0, 1)),  -- 0: it gets no more
  why TEXT NOT NULL,
  time_ms INTEGER NOT NULL,      -- when that was decided
  PRIMARY KEY (sweep_id, row)
) STRICT, WITHOUT ROWID;
ALTER TABLE trial ADD COLUMN continues INTEGER REFERENCES trial;  -- one of the same training for fewer epochs, whose checkpoints it may go on from
CREATE INDEX trial_continued ON trial (continues) WHERE continues IS NOT NULL;
DROP VIEW trial_waiting;
CREATE VIEW trial_waiting AS     -- why a queued trial waits: what is of it alone, or of all that need the same
SELECT t.id AS trial,
       CASE WHEN t.state <> 'queued' THEN ''
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active') THEN 'sweep is paused'
            WHEN NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                             WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active' AND s.spent = '')
            THEN (SELECT MIN(s.spent) FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                  WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active')
            WHEN t.awaits > 0 THEN COALESCE((SELECT 'waits for ' || a.what || a.how FROM trial_awaits a
                                             JOIN trial_source ts ON ts.trial_id = a.trial AND ts.source_id = a.source AND ts.name <> ''
                                             WHERE a.trial = t.id ORDER BY a.source LIMIT 1), 'waits for the weights of another trial')
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

-- Rows under headings, each with the row that it is compared with; rows of a paper that are not trained; how a paper prints a value.
ALTER TABLE sweep_row ADD COLUMN heading TEXT NOT NULL DEFAULT '';      -- of its group, or ''
ALTER TABLE sweep_row ADD COLUMN baseline TEXT NOT NULL DEFAULT '';     -- sweep_row.id, its own for a baseline; '': sweep.baseline
ALTER TABLE sweep_row ADD COLUMN not_trained TEXT NOT NULL DEFAULT ''   -- it has no trials: why
  CHECK (not_trained IN ('', 'cited', 'task', 'model', 'scale'));
ALTER TABLE sweep_row ADD COLUMN not_trained_why TEXT NOT NULL DEFAULT '';
ALTER TABLE sweep_paper ADD COLUMN mark TEXT NOT NULL DEFAULT '' CHECK (mark IN ('', 'bold', 'underline', 'doubtful'));
ALTER TABLE sweep_paper ADD COLUMN why TEXT NOT NULL DEFAULT '';        -- it is doubtful
ALTER TABLE sweep_column ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;     -- 1: digits are cut off in place of rounding

-- What `plan --measure` measured of trials on machines: times of later plans follow from it.
CREATE TABLE calibration (
  device TEXT NOT NULL,           -- "AMD EPYC 7B13", "NVIDIA H100 80GB HBM3"
  threads INTEGER NOT NULL,       -- of a CPU; 0: a GPU
  step_hash TEXT NOT NULL,        -- SHA-256 of what makes a step what it is: the configuration without its length and seed
  config TEXT NOT NULL,           -- canonical document of the trial that was measured, without the seed
  time_ms INTEGER NOT NULL,       -- when
  batch INTEGER NOT NULL,         -- images of the steps that were measured; 0: the recipe's, otherwise that follows from them
  step_ms REAL NOT NULL,          -- of the recipe's batch, at the mean
  step_spread REAL NOT NULL,      -- their standard deviation, as a share of that
  steps INTEGER NOT NULL,         -- how many
  image_ms REAL NOT NULL,         -- an image that is evaluated
  start_ms REAL NOT NULL,         -- from the start of the program to the first step
  checkpoint_ms REAL NOT NULL,    -- until its file is there
  base_bytes REAL NOT NULL,       -- of the process before it builds its model; 0: not measured
  train_images INTEGER NOT NULL,  -- of its data; 0: they were not there, images were drawn
  val_images INTEGER NOT NULL,
  PRIMARY KEY (device, threads, step_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE predicted (          -- what a plan predicted of submitted rows of which no run had completed, but what follows from a stated rate
  hash TEXT NOT NULL,             -- sweep_row.config_hash
  gpus INTEGER NOT NULL,
  seconds REAL NOT NULL,          -- of a whole trial, in a slot of its own
  PRIMARY KEY (hash, gpus)
) STRICT, WITHOUT ROWID;
ALTER TABLE measured ADD COLUMN variance_ms2 REAL;  -- of what its runs took, as mean_ms weighs them; NULL: of runs before there was this column
)sql";

}  // namespace abl::storage
