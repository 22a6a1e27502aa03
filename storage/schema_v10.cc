// SPDX-License-Identifier: Apache-2.0
#include "storage/schema_versions.h"

namespace abl::storage {

const char* const kSchemaV10 = R"sql(
)sql";

}  // namespace abl::storage
