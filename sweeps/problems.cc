// SPDX-License-Identifier: Apache-2.0
#include "sweeps/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace abl::sweeps {
namespace {

std::string all_texts(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems)
    text += fmt::format("{}{}", text.empty() ? "" : "\n", problem.text());
  return text;
}

}  // namespace

std::string Problem::text() const {
  std::string text = file;
  if (place.line > 0) text += fmt::format(":{}:{}", place.line, place.column);
  if (!text.empty()) text += ": ";
  if (!field.empty()) text += field + ": ";
  text += message;
  if (!nearest.empty()) text += fmt::format("; did you mean '{}'?", nearest);
  return text;
}

SweepFileError::SweepFileError(std::vector<Problem> problems)
    : Error{Code::kInvalidArgument, all_texts(problems)}, problems_{std::move(problems)} {}

void Problems::add(Place place, const std::string& field, const std::string& message,
                   const std::string& nearest) {
  Problem problem{file_, place, field, message, nearest};
  if (seen_.insert(problem.text()).second) problems_.push_back(std::move(problem));
}

void Problems::throw_if_any() const {
  if (problems_.empty()) return;
  std::vector<Problem> ordered = problems_;
  std::ranges::stable_sort(ordered, {}, [](const Problem& problem) {
    return std::pair{problem.place.line, problem.place.column};
  });
  throw SweepFileError{std::move(ordered)};
}

std::string dotted(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string{key} : fmt::format("{}.{}", parent, key);
}

}  // namespace abl::sweeps
