// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV7 = R"sql(
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

}  // namespace abl::storage
