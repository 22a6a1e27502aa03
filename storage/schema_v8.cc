// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV8 = R"sql(
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
