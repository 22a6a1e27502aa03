// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace abl::web {

/// A request target, split at its slashes first and percent-decoded then: "/sweeps/a%2Fb?x=1" has the
/// segments "sweeps" and "a/b".
struct Target {
  std::vector<std::string> path;                           ///< without empty segments
  std::vector<std::pair<std::string, std::string>> query;  ///< in the order sent
};

/// Throws: Error{kInvalidArgument}: not a path, a broken escape, a control character.
Target parse_target(std::string_view target);

/// The same address is the same text, and another one another.
std::string address_of(const Target& target);

/// Whether a path is as a pattern says: "sweeps/*/table", where "*" is one segment. What that segment is
/// then, empty where there is none.
std::optional<std::string> match(std::string_view pattern, std::span<const std::string> path);

}  // namespace abl::web
