// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace abl::protocol {

/// What is wrong with an expression, and where in its text.
class ExpressionError : public Error {
 public:
  ExpressionError(std::size_t place, const std::string& message, std::string nearest = {})
      : Error{Code::kInvalidArgument, message}, place{place}, nearest{std::move(nearest)} {}
  std::size_t place;    ///< bytes before it
  std::string nearest;  ///< the word that was probably meant, or empty
};

/// A number made of the columns of a table: "(acc - baseline.acc) / 2", "log10(params)", "acc - paper.acc".
///   + - * / and parentheses, numbers, min, max, abs, sqrt, log10; a name is a column of the same row, after
///   "baseline." of the row that it is compared with, after "paper." the value that the paper prints. What is
///   not made of letters, digits and '_' stands in single quotes: 'top-1', baseline.'top-1'.
class Expression {
 public:
  /// Throws: ExpressionError.
  explicit Expression(std::string_view text);

  enum class Of { kRow, kBaseline, kPaper };
  struct Name {
    Of of = Of::kRow;
    std::string column;
    std::size_t place = 0;  ///< in the text
    std::string text() const;
    bool operator==(const Name& other) const { return of == other.of && column == other.column; }
  };
  /// Each once, as they come.
  const std::vector<Name>& names() const { return names_; }

  /// Its value, of a value for each name; or why there is none: "division by zero".
  struct Result {
    double value = 0;
    std::string why;
  };
  Result value(std::span<const double> names) const;

 private:
  enum class Step {
    kNumber,
    kName,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kNegate,
    kMin,
    kMax,
    kAbs,
    kSqrt,
    kLog10
  };
  struct Instruction {
    Step step = Step::kNumber;
    double number = 0;
    std::size_t name = 0;  // or how many arguments
  };
  class Parser;

  std::vector<Name> names_;
  std::vector<Instruction> program_;  // of a stack
};

}  // namespace abl::protocol
