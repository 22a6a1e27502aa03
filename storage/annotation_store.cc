// SPDX-License-Identifier: Apache-2.0
#include "storage/annotation_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace abl::storage {

void AnnotationStore::set_tags(SweepId sweep, std::vector<std::string> tags) {
  std::ranges::sort(tags);
  const auto again = std::ranges::unique(tags);
  tags.erase(again.begin(), again.end());
  db_.prepared("UPDATE sweep SET tags = :tags WHERE id = :sweep")
      .bind(":tags", nlohmann::json(tags).dump())
      .bind(":sweep", sweep)
      .run();
}

void AnnotationStore::set_pinned(SweepId sweep, bool pinned) {
  db_.prepared("UPDATE sweep SET pinned = :pinned WHERE id = :sweep")
      .bind(":pinned", pinned)
      .bind(":sweep", sweep)
      .run();
}

void AnnotationStore::set_archived(SweepId sweep, bool archived, Time now) {
  db_.prepared(
         "UPDATE sweep SET archived_ms = CASE WHEN :archived THEN COALESCE(archived_ms, :now) END WHERE id = "
         ":sweep")
      .bind(":archived", archived)
      .bind(":now", now)
      .bind(":sweep", sweep)
      .run();
}

std::string AnnotationStore::notes(SweepId sweep) const {
  return db_.prepared("SELECT notes FROM sweep WHERE id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.text(0); })
      .value_or("");
}

void AnnotationStore::set_notes(SweepId sweep, const std::string& notes) {
  db_.prepared("UPDATE sweep SET notes = :notes WHERE id = :sweep")
      .bind(":notes", notes)
      .bind(":sweep", sweep)
      .run();
}

}  // namespace abl::storage
