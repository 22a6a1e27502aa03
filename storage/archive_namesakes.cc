// SPDX-License-Identifier: Apache-2.0
#include "storage/archive_namesakes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace abl::storage {

std::vector<Namesake> namesakes(Database& db) {
  return db
      .prepared(R"sql(
      SELECT a.name, a.revision, s.revision,
             EXISTS (SELECT 1 FROM arc.sweep_revision r WHERE r.sweep_id = a.id AND r.canonical = s.canonical),
             EXISTS (SELECT 1 FROM main.sweep_revision r WHERE r.sweep_id = s.id AND r.canonical = a.canonical),
             COALESCE((SELECT MAX(r.revision) FROM arc.sweep_revision r JOIN main.sweep_revision h
                       ON h.sweep_id = s.id AND h.revision = r.revision AND h.canonical = r.canonical
                       WHERE r.sweep_id = a.id), 0)
      FROM arc.sweep a JOIN main.sweep s ON s.name = a.name WHERE s.canonical_hash <> a.canonical_hash ORDER BY a.id)sql")
      .all([](const Statement& row) {
        Namesake same{.name = row.text(0),
                      .there = static_cast<int>(row.integer(1)),
                      .here = static_cast<int>(row.integer(2)),
                      .grown = row.integer(3) != 0,
                      .older = row.integer(4) != 0,
                      .common = static_cast<int>(row.integer(5))};
        if (same.grown && same.older) (same.there > same.here ? same.older : same.grown) = false;
        return same;
      });
}

void refuse_conflicts(Database& db) {
  std::vector<std::string> conflicts;
  for (const Namesake& each : namesakes(db))
    if (!each.grown && !each.older)
      conflicts.push_back(
          each.common > 0
              ? fmt::format("sweep {}: was extended in two ways since revision {}, to revision {} in the "
                            "archive and {} here; rename one of them (ablate rename)",
                            each.name, each.common, each.there, each.here)
              : fmt::format(
                    "sweep {}: another content has this name here; rename one of them (ablate rename)",
                    each.name));
  for (auto& conflict : db.prepared(R"sql(
           SELECT 'data ' || a.data || ': the archive''s results are of another content (fingerprint ' || a.fingerprint || ', here ' || p.fingerprint || ')'
           FROM arc.data_pin a JOIN main.data_pin p ON p.data = a.data WHERE p.fingerprint <> a.fingerprint
           UNION ALL
           SELECT 'weights ' || a.name || ': the archive''s results are of another file (SHA-256 ' || a.sha256 || ', here ' || p.sha256 || ')'
           FROM arc.weights_pin a JOIN main.weights_pin p ON p.name = a.name WHERE p.sha256 <> a.sha256
           UNION ALL
           SELECT 'sweep ' || s.name || ': is being removed here' FROM arc.sweep a JOIN main.sweep s ON s.name = a.name WHERE s.removing IS NOT NULL)sql")
                            .all([](const Statement& row) { return row.text(0); }))
    conflicts.push_back(std::move(conflict));
  if (!conflicts.empty())
    throw Error{Code::kAlreadyExists, fmt::format("nothing was imported:\n{}", fmt::join(conflicts, "\n"))};
}

}  // namespace abl::storage
