// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::storage {

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

}  // namespace abl::storage
