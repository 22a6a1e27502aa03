// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
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

  /// Throws: Error{kInvalidArgument} when a parameter is not one of `names`: a misspelt one would silently do
  /// nothing.
  void allow_only(std::initializer_list<std::string_view> names) const;
  /// The only value of a parameter, if there is one. Throws: Error{kInvalidArgument} when it is given twice.
  std::optional<std::string> value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;
};

/// Throws: Error{kInvalidArgument}: not a path, a broken escape, a control character.
Target parse_target(std::string_view target);

/// A whole number from `lowest` up to `highest`. Throws: Error{kInvalidArgument} naming `what`.
std::uint64_t parse_number(std::string_view what, std::string_view text, std::uint64_t lowest,
                           std::uint64_t highest);

}  // namespace abl::web
