// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "views/views.h"

namespace abl::views {

/// What a read is asked with: whose it is, and the parameters behind the "?". Throws (all of it):
/// Error{kInvalidArgument} that says which parameter, what it is and what was expected.
struct Query {
  std::string name;                                             ///< what stands for the path's "*"
  std::vector<std::pair<std::string, std::string>> parameters;  ///< in the order sent

  /// Throws where a parameter is none of `names`: a misspelt one would silently do nothing.
  void allow_only(std::span<const std::string_view> names) const;
  /// The only value of a parameter, if there is one; given twice, it is an error.
  std::optional<std::string> value(std::string_view parameter) const;
  std::vector<std::string> values(std::string_view parameter) const;
  /// A whole number up to `highest`; `otherwise` where there is none.
  std::uint32_t number_or(std::string_view parameter, std::uint32_t otherwise, std::uint32_t highest) const;
  /// "?first=200&count=200": `otherwise` many where no count is said, and `most` at most.
  Page page(std::uint32_t otherwise, std::uint32_t most) const;
  /// Such a page of a sweep's rows, and the baseline's.
  Page page_of_rows() const;
};

inline constexpr std::uint32_t kHighestId = 0xffff'ffff;
/// The id of a run, say, as its text. Throws: Error{kInvalidArgument} naming `what`.
std::uint32_t parse_id(std::string_view what, std::string_view text);
/// A whole number from `lowest` up to `highest`. Throws: Error{kInvalidArgument} naming `what`.
std::uint64_t parse_number(std::string_view what, std::string_view text, std::uint64_t lowest,
                           std::uint64_t highest);

}  // namespace abl::views
