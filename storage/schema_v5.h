// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::storage {

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

}  // namespace abl::storage
