// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV14 = R"sql(
-- Nothing yet.
)sql";

}  // namespace abl::storage
