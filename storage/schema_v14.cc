// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV14 = R"sql(
-- What people say of sweeps, so that they find them again. Nothing that runs depends on it.
ALTER TABLE sweep ADD COLUMN tags TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags));  -- a list of words, in the order of their letters
ALTER TABLE sweep ADD COLUMN notes TEXT NOT NULL DEFAULT '';                            -- Markdown
ALTER TABLE sweep ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1));
ALTER TABLE sweep ADD COLUMN archived_ms INTEGER;                                       -- when it was put away: lists leave it out; NULL: it is not
CREATE INDEX sweep_pinned ON sweep (id) WHERE pinned = 1 AND archived_ms IS NULL;
CREATE INDEX sweep_archived ON sweep (id) WHERE archived_ms IS NOT NULL;

-- What trains again, for whatever reason, is not away.
CREATE TRIGGER sweep_count_open AFTER UPDATE OF queued ON sweep_count
  WHEN NEW.queued > 0 AND OLD.queued + OLD.leased + OLD.running = 0 BEGIN
  UPDATE sweep SET archived_ms = NULL WHERE archived_ms IS NOT NULL
    AND (id = NEW.sweep_id OR id = (SELECT sweep_id FROM sweep_tuning WHERE by_id = NEW.sweep_id));
END;
)sql";

}  // namespace abl::storage
