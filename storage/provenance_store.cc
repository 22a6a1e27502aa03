// SPDX-License-Identifier: Apache-2.0
#include "storage/provenance_store.h"

#include <algorithm>
#include <optional>

#include "base/sha256.h"

namespace abl::storage {

void ProvenanceStore::keep_text(const std::string& hash, const std::string& text) {
  db_.prepared("INSERT OR IGNORE INTO provenance_text (sha256, bytes) VALUES (:hash, :bytes)")
      .bind(":hash", hash)
      .bind_blob(":bytes", text)
      .run();
}

void ProvenanceStore::add(SweepId sweep, const ProvenanceRecord& record, Time now) {
  const auto hash_of = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional{sha256_hex(text)};
  };
  const auto stored = db_.prepared("SELECT COUNT(*) FROM sweep_provenance WHERE sweep_id = :sweep")
                          .bind(":sweep", sweep)
                          .one([](const Statement& row) { return static_cast<int>(row.integer(0)); });
  const int position = std::min(stored.value_or(0), kMost - 1);
  forget(sweep, position);
  const auto diff = hash_of(record.diff), packages = hash_of(record.packages);
  if (diff) keep_text(*diff, record.diff);
  if (packages) keep_text(*packages, record.packages);
  db_.prepared(R"sql(INSERT INTO sweep_provenance (sweep_id, position, time_ms, facts_json, diff, packages)
                     VALUES (:sweep, :position, :now, :facts, :diff, :packages))sql")
      .bind(":sweep", sweep)
      .bind(":position", position)
      .bind(":now", now)
      .bind(":facts", record.facts_json)
      .bind(":diff", diff)
      .bind(":packages", packages)
      .run();
}

std::vector<ProvenanceRecord> ProvenanceStore::of(SweepId sweep) const {
  return db_
      .prepared(
          R"sql(SELECT facts_json, COALESCE(d.bytes, ''), COALESCE(p.bytes, ''), time_ms FROM sweep_provenance
                            LEFT JOIN provenance_text d ON d.sha256 = diff LEFT JOIN provenance_text p ON p.sha256 = packages
                            WHERE sweep_id = :sweep ORDER BY position)sql")
      .bind(":sweep", sweep)
      .all([](const Statement& row) {
        return ProvenanceRecord{
            .facts_json = row.text(0), .diff = row.text(1), .packages = row.text(2), .time = row.time(3)};
      });
}

void ProvenanceStore::forget(SweepId sweep) { forget(sweep, 0); }

void ProvenanceStore::forget(SweepId sweep, int from) {
  const auto texts =
      db_.prepared(
             R"sql(SELECT diff FROM sweep_provenance WHERE sweep_id = :sweep AND position >= :from AND diff IS NOT NULL
                         UNION SELECT packages FROM sweep_provenance WHERE sweep_id = :sweep AND position >= :from AND packages IS NOT NULL)sql")
          .bind(":sweep", sweep)
          .bind(":from", from)
          .all([](const Statement& row) { return row.text(0); });
  db_.prepared("DELETE FROM sweep_provenance WHERE sweep_id = :sweep AND position >= :from")
      .bind(":sweep", sweep)
      .bind(":from", from)
      .run();
  for (const std::string& text : texts)
    db_.prepared(R"sql(DELETE FROM provenance_text WHERE sha256 = :text
                         AND NOT EXISTS (SELECT 1 FROM sweep_provenance WHERE diff = :text)
                         AND NOT EXISTS (SELECT 1 FROM sweep_provenance WHERE packages = :text))sql")
        .bind(":text", text)
        .run();
}

}  // namespace abl::storage
