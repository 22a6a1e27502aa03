// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::storage {

/// Version 2: that a run is to stop is stored, so that its worker hears of it although it was away and the
/// scheduler started anew in between.
inline constexpr const char* kSchemaV2 = R"sql(
ALTER TABLE run ADD COLUMN stop_reason TEXT NOT NULL DEFAULT '';  -- why it was asked to stop, or ''
)sql";

}  // namespace abl::storage
