// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::storage {

/// Version 4: the store has an identity of its own, so that a worker can tell that a results file was
/// restored or exchanged under its scheduler.
inline constexpr const char* kSchemaV4 = R"sql(
CREATE TABLE store (             -- one line
  id TEXT NOT NULL               -- 32 random hexadecimal digits; a copied file keeps it
) STRICT;
INSERT INTO store (id) VALUES (lower(hex(randomblob(16))));
)sql";

}  // namespace abl::storage
