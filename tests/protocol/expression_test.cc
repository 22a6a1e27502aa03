// SPDX-License-Identifier: Apache-2.0
#include "protocol/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace abl::protocol {
namespace {

/// The value of an expression of these columns, or "why: …", or "3: …" where it cannot be read.
std::string said(const std::string& text, const std::map<std::string, double>& columns = {}) {
  try {
    const Expression expression{text};
    std::vector<double> values;
    for (const Expression::Name& name : expression.names()) values.push_back(columns.at(name.text()));
    const Expression::Result result = expression.value(values);
    return result.why.empty() ? std::to_string(result.value) : "why: " + result.why;
  } catch (const ExpressionError& error) {
    return std::to_string(error.place) + ": " + error.what() +
           (error.nearest.empty() ? "" : "? " + error.nearest);
  }
}

TEST(ExpressionTest, IsComputedAsWrittenOnPaper) {
  EXPECT_EQ(said("1 + 2 * 3 - 4 / 2 / 2"), "6.000000");
  EXPECT_EQ(said("-(1 - 3) * --2"), "4.000000");
  EXPECT_EQ(said("10 - 3 - 2"), "5.000000") << "from the left";
  EXPECT_EQ(said("min(3, 1, 2) + max(4, 5) + abs(-1) + sqrt(9) + log10(1e2)"), "12.000000");
  EXPECT_EQ(said("acc-baseline.acc + paper.acc", {{"acc", 3}, {"baseline.acc", 2}, {"paper.acc", 10}}),
            "11.000000");
  EXPECT_EQ(said("'top-1' / baseline.'top-1'", {{"'top-1'", 3}, {"baseline.'top-1'", 2}}), "1.500000");
}

TEST(ExpressionTest, ANameIsThereOnceHoweverOftenItComes) {
  const Expression expression{"acc * acc + baseline.acc"};
  ASSERT_EQ(expression.names().size(), 2u);
  EXPECT_EQ(expression.names()[1].of, Expression::Of::kBaseline);
}

TEST(ExpressionTest, WhatHasNoValueSaysWhy) {
  EXPECT_EQ(said("1 / (acc - 2)", {{"acc", 2}}), "why: division by zero");
  EXPECT_EQ(said("0 / 0"), "why: division by zero");
  EXPECT_EQ(said("sqrt(0 - 1)"), "why: sqrt of -1");
  EXPECT_EQ(said("log10(acc)", {{"acc", 0}}), "why: log10 of 0");
  EXPECT_EQ(said("1e300 * 1e300"), "why: the result is not finite");
}

TEST(ExpressionTest, WhatCannotBeReadIsNamedAtItsPlace) {
  EXPECT_EQ(said(""), "0: the expression ends where a number, a column or a parenthesis was expected");
  EXPECT_EQ(said("acc + * 2"), "6: '*' cannot stand here; expected a number, a column or a parenthesis");
  EXPECT_EQ(said("acc loss"), "4: 'l' cannot stand here; expected + - * / or the end");
  EXPECT_EQ(said("acc − 2"), "4: '−' cannot stand here; expected + - * / or the end") << "a whole character";
  EXPECT_EQ(said("2 * (acc"), "4: this parenthesis is never closed; expected ')'");
  EXPECT_EQ(said("maximum(1, 2)").substr(0, 28), "0: unknown function 'maximum");
  EXPECT_EQ(said("min(1)"), "0: 'min' of 1 value; expected two or more");
  EXPECT_EQ(said("sqrt(1, 2)"), "0: 'sqrt' of 2 values; expected one");
  EXPECT_EQ(said("basline.acc"), "0: unknown 'basline.'; expected baseline. or paper.? baseline");
  EXPECT_EQ(said("'acc"), "0: this quote is never closed");
  EXPECT_NE(said(std::string(5000, '(')).find("at most 1000"), std::string::npos);
  EXPECT_NE(said(std::string(900, '(')).find("in each other"), std::string::npos);
}

}  // namespace
}  // namespace abl::protocol
