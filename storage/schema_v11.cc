// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV11 = R"sql(
-- Who may ask, and who did what. Neither goes into an archive.
CREATE TABLE access_token (
  id TEXT PRIMARY KEY,           -- the public part: for lists, logs and revocation
  role TEXT NOT NULL CHECK (role IN ('viewer', 'submitter', 'admin', 'worker', 'join')),  -- join: is exchanged once for a worker's
  name TEXT NOT NULL,            -- of its holder: a person, or a worker
  sha256 TEXT NOT NULL UNIQUE,   -- of the whole token, which is stored nowhere
  made_by TEXT NOT NULL,         -- name of who made it; of a worker's the id of the join token that it was exchanged for
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER,            -- NULL: never
  revoked_ms INTEGER,            -- NULL: it is not
  used_ms INTEGER,               -- of a join token: when it was exchanged
  seen_ms INTEGER                -- last use, to a minute
) STRICT, WITHOUT ROWID;
CREATE INDEX access_token_name ON access_token (role, name);
CREATE TABLE audit (             -- the newest 100000
  id INTEGER PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  token TEXT NOT NULL,           -- access_token.id, or '' of this machine's owner
  who TEXT NOT NULL,             -- name of its holder then, or 'local'
  what TEXT NOT NULL,            -- the request: Submit
  target TEXT NOT NULL,          -- sweep, worker or token that it was for, or ''
  outcome TEXT NOT NULL          -- ok, or why not
) STRICT;
)sql";

}  // namespace abl::storage
