// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace abl {

/// How deep JSON from outside may be nested. What copies, compares and writes a document calls itself for
/// each level, and the stack has an end; a document of ours has ten.
inline constexpr int kDeepestJson = 100;

/// Whether a text of JSON opens more brackets within each other than that; for any text.
bool is_nested_too_deep(std::string_view json);

}  // namespace abl
