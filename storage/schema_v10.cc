// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV10 = R"sql(
-- Seeds by rule: what is known of each row, and which rows are to be looked at, so that an end costs one row.
ALTER TABLE sweep_trial ADD COLUMN turn REAL NOT NULL DEFAULT 0;  -- of a seed that a rule added: above 0, the less the sooner it is trained; 0: in the order of seeds, before those
ALTER TABLE sweep_growth ADD COLUMN position INTEGER NOT NULL DEFAULT -1;   -- of the row; -1: written by an older version
ALTER TABLE sweep_growth ADD COLUMN baseline TEXT NOT NULL DEFAULT '';      -- row that a rule on comparisons compares it with, or ''
ALTER TABLE sweep_growth ADD COLUMN twin TEXT NOT NULL DEFAULT '';          -- an earlier row of the same trials, whose comparison is its own, or ''
ALTER TABLE sweep_growth ADD COLUMN planned INTEGER NOT NULL DEFAULT 0 CHECK (planned IN (0, 1));  -- its comparison is one of those that are corrected for
ALTER TABLE sweep_growth ADD COLUMN p REAL;                                 -- of its comparison, of all looks until now, by itself; NULL: none yet
ALTER TABLE sweep_growth ADD COLUMN looked INTEGER NOT NULL DEFAULT 0;      -- seeds that the last look was of
ALTER TABLE sweep_growth ADD COLUMN decided INTEGER NOT NULL DEFAULT 0 CHECK (decided IN (0, 1));  -- its comparison is: p is low enough for Holm's correction
CREATE INDEX sweep_growth_open ON sweep_growth (sweep_id, baseline, position) WHERE open = 1;
CREATE INDEX sweep_growth_undecided ON sweep_growth (sweep_id, baseline, position) WHERE decided = 0;
CREATE INDEX sweep_growth_compared ON sweep_growth (sweep_id, baseline) WHERE baseline <> '';
CREATE UNIQUE INDEX sweep_growth_position ON sweep_growth (sweep_id, position) WHERE position >= 0;
CREATE INDEX sweep_growth_p ON sweep_growth (sweep_id, p) WHERE planned = 1 AND decided = 0 AND p IS NOT NULL;
CREATE INDEX sweep_growth_twin ON sweep_growth (sweep_id, twin) WHERE twin <> '';
CREATE TABLE growth_rule (       -- of a sweep with a seeds_rule: what its rows are judged by
  sweep_id INTEGER PRIMARY KEY REFERENCES sweep,
  revision INTEGER NOT NULL,     -- of the sweep that this is of
  source TEXT NOT NULL,          -- metric of the rule's column
  take TEXT NOT NULL,            -- as of sweep_column
  better TEXT NOT NULL,
  compare TEXT NOT NULL CHECK (json_valid(compare)),  -- table.compare as submitted
  tests INTEGER NOT NULL,        -- sweep_growth.planned
  decided INTEGER NOT NULL       -- of them
) STRICT;
CREATE TABLE growth_due (        -- rows that are to be looked at: a seed of theirs has ended, or was claimed
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  row INTEGER NOT NULL,          -- sweep_row.position
  pass INTEGER NOT NULL DEFAULT 0,   -- 0: the row itself; then the rows that are compared with it: 1: their p, 2: what becomes of them
  next INTEGER NOT NULL DEFAULT 0,   -- of these the ones from this position on
  PRIMARY KEY (sweep_id, row)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER growth_due_end AFTER UPDATE OF state ON trial
WHEN OLD.state <> NEW.state AND NOT (OLD.state IN ('queued', 'leased', 'running') AND NEW.state IN ('queued', 'leased', 'running')) BEGIN
  INSERT INTO growth_due (sweep_id, row) SELECT st.sweep_id, st.row FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
  WHERE st.trial_id = NEW.id AND s.seeds_rule <> '' AND s.state <> 'cancelled' ON CONFLICT DO UPDATE SET pass = 0, next = 0;
END;
CREATE TRIGGER growth_due_claim AFTER INSERT ON sweep_trial
WHEN (SELECT seeds_rule <> '' FROM sweep WHERE id = NEW.sweep_id) BEGIN
  INSERT INTO growth_due (sweep_id, row) VALUES (NEW.sweep_id, NEW.row) ON CONFLICT DO UPDATE SET pass = 0, next = 0;
END;
CREATE TRIGGER growth_due_other AFTER UPDATE OF trial_id, withdrawn ON sweep_trial
WHEN (SELECT seeds_rule <> '' AND state <> 'cancelled' FROM sweep WHERE id = NEW.sweep_id) BEGIN
  INSERT INTO growth_due (sweep_id, row) VALUES (NEW.sweep_id, NEW.row) ON CONFLICT DO UPDATE SET pass = 0, next = 0;
END;
INSERT INTO growth_due (sweep_id, row) SELECT r.sweep_id, r.position FROM sweep s CROSS JOIN sweep_row r ON r.sweep_id = s.id
WHERE s.seeds_rule <> '' AND s.state <> 'cancelled';

-- What plans predicted is kept for rows of which no run has completed, and goes with the last of them.
CREATE INDEX sweep_row_config ON sweep_row (config_hash) WHERE config_hash <> '';
CREATE TRIGGER predicted_for_rows AFTER DELETE ON sweep_row
WHEN OLD.config_hash <> '' AND NOT EXISTS (SELECT 1 FROM sweep_row WHERE config_hash = OLD.config_hash AND config_hash <> '') BEGIN
  DELETE FROM predicted WHERE hash = OLD.config_hash;
END;
CREATE TRIGGER predicted_until_measured AFTER INSERT ON measured WHEN NEW.runs > 0 BEGIN
  DELETE FROM predicted WHERE hash = NEW.hash AND gpus = NEW.gpus;
END;
CREATE TRIGGER predicted_until_measured_again AFTER UPDATE OF runs ON measured WHEN OLD.runs = 0 AND NEW.runs > 0 BEGIN
  DELETE FROM predicted WHERE hash = NEW.hash AND gpus = NEW.gpus;
END;
DELETE FROM predicted WHERE EXISTS (SELECT 1 FROM measured m WHERE m.hash = predicted.hash AND m.gpus = predicted.gpus AND m.runs > 0)
  OR NOT EXISTS (SELECT 1 FROM sweep_row r WHERE r.config_hash = predicted.hash AND r.config_hash <> '');
CREATE INDEX calibration_time ON calibration (time_ms);
ALTER TABLE archive ADD COLUMN digest TEXT NOT NULL DEFAULT '';  -- SHA-256 of all that it holds but for checkpoint_piece, which have their own; '': made by an older version

-- Chains over several files.
ALTER TABLE sweep_row ADD COLUMN other_sweep TEXT NOT NULL DEFAULT '';  -- the sweep whose row it is, by which 'from' names it: here for its weights alone, behind the sweep's own rows, in no table; '': this one

-- Tuning: before a row's seeds are trained, its best values of some keys are looked for. The trials by which they are
-- are those of a sweep of their own.
CREATE TABLE sweep_tuning (      -- of a sweep with `tune` or `search`
  sweep_id INTEGER PRIMARY KEY REFERENCES sweep,
  by_id INTEGER NOT NULL UNIQUE REFERENCES sweep,     -- the sweep of its tuning trials: a row for each point of a row, and rung
  tune TEXT NOT NULL CHECK (json_valid(tune)),        -- the section as it was read: ranges, method, budget, metric, better, seeds, held_out
  rows INTEGER NOT NULL,         -- that are tuned
  open INTEGER NOT NULL,         -- of them, those of which nothing was decided yet
  failed INTEGER NOT NULL        -- of them, those that cannot be tuned: none of their points has a value
) STRICT;
CREATE TABLE tuning_point (
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  row TEXT NOT NULL,             -- sweep_row.id
  point INTEGER NOT NULL,        -- the same values in every row
  rung INTEGER NOT NULL,         -- of successive halving; otherwise 0
  tuning_row TEXT NOT NULL,      -- sweep_row.id in the sweep of the tuning trials
  point_values TEXT NOT NULL CHECK (json_valid(point_values)),  -- {"recipe.lr": "0.001"}
  rung_value TEXT NOT NULL,      -- epochs of this rung, or ''
  tried TEXT NOT NULL CHECK (json_valid(tried)),      -- what its trials train: without a seed
  tried_version INTEGER NOT NULL,                     -- result version of that
  config TEXT NOT NULL CHECK (json_valid(config)),    -- what the row becomes where this is the best: without a seed
  config_hash TEXT NOT NULL,
  work_hash TEXT NOT NULL,
  result_version INTEGER NOT NULL,
  PRIMARY KEY (sweep_id, row, point, rung)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tuning_point_row ON tuning_point (sweep_id, tuning_row);
CREATE TABLE tuning_choice (     -- what a row is trained at: once it is made it stays, whatever becomes of the trials
  sweep_id INTEGER NOT NULL REFERENCES sweep,
  row TEXT NOT NULL,
  point INTEGER,                 -- NULL: none of its points has a value, so that it is not trained
  point_values TEXT NOT NULL CHECK (json_valid(point_values)),
  value REAL,                    -- mean over the tuning's seeds
  means TEXT NOT NULL CHECK (json_valid(means)),      -- of each point of the last rung by then: [[point, mean or null], …]
  completed INTEGER NOT NULL,    -- points with a value of every seed, of all rungs
  budget INTEGER NOT NULL,       -- points that there were
  why TEXT NOT NULL,             -- for people
  time_ms INTEGER NOT NULL,
  PRIMARY KEY (sweep_id, row)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace abl::storage
