// SPDX-License-Identifier: Apache-2.0
#include "sweeps/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/printable.h"

namespace abl::sweeps {
namespace {

constexpr std::size_t kMostProblems = 200;  // shown: nobody reads more, and answers carry them all

std::string all_texts(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems)
    text += fmt::format("{}{}", text.empty() ? "" : "\n", problem.text());
  return text;
}

std::vector<Problem> in_order(std::vector<Problem> problems) {
  std::ranges::stable_sort(problems, {}, [](const Problem& problem) {
    return std::pair{problem.place.line, problem.place.column};
  });
  return problems;
}

/// Whether a key is missing because it stands in a section, or is the key, whose name is misspelt: that is
/// said already, and not once more for each row.
bool follows_from_another(const Problem& problem, const std::vector<Problem>& problems) {
  return problem.message.starts_with("missing;") && std::ranges::any_of(problems, [&](const Problem& other) {
           return !other.nearest.empty() && other.message.starts_with("unknown key;") &&
                  ("." + problem.field + ".").find("." + other.nearest + ".") != std::string::npos;
         });
}

}  // namespace

std::string Problem::text() const {
  std::string text = file;
  if (place.line > 0) text += fmt::format(":{}:{}", place.line, place.column);
  if (!text.empty()) text += ": ";
  if (!field.empty()) text += field + ": ";
  text += message;
  if (!nearest.empty()) text += fmt::format("; did you mean '{}'?", nearest);
  return printable_line(text);
}

SweepFileError::SweepFileError(std::vector<Problem> problems)
    : Error{Code::kInvalidArgument, all_texts(problems)}, problems_{std::move(problems)} {}

void Problems::add(Place place, const std::string& field, const std::string& message,
                   const std::string& nearest) {
  Problem problem{file_, place, field, message, nearest};
  if (seen_.insert(problem.text()).second) problems_.push_back(std::move(problem));
}

bool Problems::has(const std::string& field) const {
  return std::ranges::find(problems_, field, &Problem::field) != problems_.end();
}

void Problems::doubt(Place place, const std::string& field, const std::string& message) {
  Problem problem{file_, place, field, message, {}};
  if (seen_.insert(problem.text()).second) doubts_.push_back(std::move(problem));
}

std::vector<std::string> Problems::doubts() const {
  std::vector<std::string> texts;
  for (const Problem& problem : in_order(doubts_)) texts.push_back(problem.text());
  return texts;
}

void Problems::throw_if_any() const {
  if (problems_.empty()) return;
  std::vector<Problem> ordered = in_order(problems_);
  std::erase_if(ordered, [&](const Problem& problem) { return follows_from_another(problem, problems_); });
  if (ordered.size() > kMostProblems) {
    const std::size_t more = ordered.size() - kMostProblems;
    ordered.resize(kMostProblems);
    ordered.push_back(
        {.file = file_, .message = fmt::format("and {} more problem{}", more, more == 1 ? "" : "s")});
  }
  throw SweepFileError{std::move(ordered)};
}

std::string dotted(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string{key} : fmt::format("{}.{}", parent, key);
}

std::string with_thousands(std::int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace abl::sweeps
