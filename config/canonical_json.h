// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace abl::config {

/// JSON as in RFC 8785: sorted keys, no blanks, numbers in their shortest form (100.0 is 100). Keys must be
/// ASCII, where the order of bytes is the order that the RFC asks for. Throws: Error{kInvalidArgument} at a
/// number that is not finite or text that is not UTF-8.
std::string canonical_json(const nlohmann::json& value);

/// A number as RFC 8785 (ECMAScript) writes it: "100", "0.001", "1e-7".
std::string canonical_number(double value);

/// A value as people read it in a message or a table: texts without quotes, the rest canonical.
std::string plain_text(const nlohmann::json& value);

}  // namespace abl::config
