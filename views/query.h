// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "views/views.h"

namespace abl::views {

inline constexpr std::uint32_t kHighestId = 0xffff'ffff;

/// The whole numbers that are valid.
struct Range {
  std::uint64_t lowest = 0, highest = kHighestId;
  std::optional<std::uint64_t>
      otherwise;  ///< the value of a parameter that is not sent; none: there is no such value
};

/// A parameter of a request. Requests are checked against these before anything is read; docs/http-api.md and
/// the API's OpenAPI description list them.
struct Parameter {
  std::string_view name;
  std::string_view about;                     ///< what it asks for: a phrase
  std::optional<Range> number = {};           ///< none: any text
  std::span<const std::string> choices = {};  ///< the only texts that are valid; none: any
  bool needed = false;
  bool repeats = false;  ///< may be sent more than once
};

/// Shared by several reads: what stands for the "*" of a path, and the pages of a sweep's rows.
inline constexpr Parameter kSweepOfPath{.name = "sweep", .about = "The sweep's name", .needed = true};
inline constexpr Parameter kRunOfPath{
    .name = "run", .about = "The run's number", .number = Range{.lowest = 1}, .needed = true};
inline constexpr Parameter kFirstRow{
    .name = "first",
    .about = "First row to return, by position; to continue, `next` of the last answer",
    .number = Range{.otherwise = 0}};
inline constexpr Parameter kRunsAsked{.name = "run",
                                      .about = "Runs, 1000 at most",
                                      .number = Range{.lowest = 1},
                                      .needed = true,
                                      .repeats = true};
inline constexpr Parameter kMetricsAsked{
    .name = "name", .about = "Only these metrics; without it, all", .repeats = true};
inline constexpr Parameter kRowCount{.name = "count",
                                     .about = "Rows to return at most, with at most 5000 trials in total",
                                     .number = Range{.highest = 1000, .otherwise = 200}};

inline constexpr Parameter kPivotAsked{
    .name = "pivot",
    .about =
        "Factors to put along the columns instead of the file's, such as `groups,layout`; "
        "`factors` has them"};

/// What a read is asked with: whose it is, and the parameters behind the "?". Throws (all of it):
/// Error{kInvalidArgument} that says which parameter, what it is and what was expected.
struct Query {
  std::string name;                                             ///< what stands for the path's "*"
  std::vector<std::pair<std::string, std::string>> parameters;  ///< in the order sent
  std::span<const Parameter> declared;                          ///< what may be sent

  /// Throws where something is sent that is not declared so (a misspelt name would silently do nothing), or
  /// something that is needed is not.
  void check() const;
  /// A text: empty where there is none.
  std::string text(std::string_view parameter) const;
  std::vector<std::string> texts(std::string_view parameter) const;
  /// A whole number: where there is none, what is declared for that, or 0.
  std::uint32_t number(std::string_view parameter) const;
  std::uint64_t long_number(std::string_view parameter) const;
  std::vector<std::uint32_t> numbers(std::string_view parameter) const;
  bool has(std::string_view parameter) const;
  /// "?first=200&count=200".
  Page page() const;
  /// Such a page of a sweep's rows, and the baseline's.
  Page page_of_rows() const;
};

/// The id of a run, say, as its text. Throws: Error{kInvalidArgument} naming `what`.
std::uint32_t parse_id(std::string_view what, std::string_view text);
/// A whole number from `lowest` up to `highest`. Throws: Error{kInvalidArgument} naming `what`.
std::uint64_t parse_number(std::string_view what, std::string_view text, std::uint64_t lowest,
                           std::uint64_t highest);

}  // namespace abl::views
