// SPDX-License-Identifier: Apache-2.0
#include "protocol/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/nearest_name.h"
#include "base/printable.h"

namespace abl::protocol {
namespace {

constexpr std::size_t kLongest = 1000;  // bytes of a text
constexpr int kDeepest = 50;            // parentheses in each other, and signs before a value
const std::vector<std::string> kFunctions{"min", "max", "abs", "sqrt", "log10"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// Of a name that needs no quotes.
bool is_plain(std::string_view name) {
  return !name.empty() && is_letter(name[0]) &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c); });
}

}  // namespace

std::string Expression::Name::text() const {
  const std::string name = is_plain(column) ? column : "'" + column + "'";
  switch (of) {
    case Of::kRow:
      return name;
    case Of::kBaseline:
      return "baseline." + name;
    case Of::kPaper:
      return "paper." + name;
  }
  return name;
}

class Expression::Parser {
 public:
  Parser(std::string_view text, Expression& into) : text_{text}, into_{into} {}

  void parse() {
    if (text_.size() > kLongest)
      fail(0, fmt::format("an expression of {} characters; expected at most {}", text_.size(), kLongest));
    sum(0);
    skip();
    if (at_ < text_.size())
      fail(at_, fmt::format("'{}' cannot stand here; expected + - * / or the end", character()));
  }

 private:
  [[noreturn]] static void fail(std::size_t place, const std::string& message,
                                const std::string& nearest = {}) {
    throw ExpressionError{place, printable_line(message), nearest};  // it has parts of the text
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  /// What stands here, the whole character of UTF-8.
  std::string character() const {
    std::size_t end = at_ + 1;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    return std::string{text_.substr(at_, end - at_)};
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void add(Step step, std::size_t arguments = 0) {
    into_.program_.push_back({.step = step, .name = arguments});
  }

  void sum(int depth) {
    product(depth);
    for (;;) {
      if (take('+'))
        product(depth), add(Step::kAdd);
      else if (take('-'))
        product(depth), add(Step::kSubtract);
      else
        return;
    }
  }
  void product(int depth) {
    factor(depth);
    for (;;) {
      if (take('*'))
        factor(depth), add(Step::kMultiply);
      else if (take('/'))
        factor(depth), add(Step::kDivide);
      else
        return;
    }
  }
  void factor(int depth) {
    if (depth > kDeepest) fail(at_, fmt::format("more than {} parentheses or signs in each other", kDeepest));
    if (take('-')) return factor(depth + 1), add(Step::kNegate);
    if (take('+')) return factor(depth + 1);
    if (const std::size_t open = (skip(), at_); take('(')) {
      sum(depth + 1);
      if (!take(')')) fail(open, "this parenthesis is never closed; expected ')'");
      return;
    }
    if (at_ >= text_.size())
      fail(at_, "the expression ends where a number, a column or a parenthesis was expected");
    const char c = text_[at_];
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c) || c == '\'') return name(depth);
    fail(at_,
         fmt::format("'{}' cannot stand here; expected a number, a column or a parenthesis", character()));
  }
  void number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail(at_, "invalid number");
    at_ += static_cast<std::size_t>(end - begin);
    into_.program_.push_back({.step = Step::kNumber, .number = value});
  }
  /// A plain word, or one in quotes.
  std::string word() {
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '\'') {
      const std::size_t end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) fail(begin, "this quote is never closed");
      at_ = end + 1;
      return std::string{text_.substr(begin + 1, end - begin - 1)};
    }
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > begin && is_digit(text_[at_])))) ++at_;
    if (at_ == begin) fail(begin, "a column's name was expected here");
    return std::string{text_.substr(begin, at_ - begin)};
  }
  void name(int depth) {
    const std::size_t place = at_;
    const bool quoted = text_[at_] == '\'';
    Name name{.column = word(), .place = place};
    if (!quoted && at_ < text_.size() && text_[at_] == '.') {
      if (name.column == "baseline")
        name.of = Of::kBaseline;
      else if (name.column == "paper")
        name.of = Of::kPaper;
      else
        fail(place, fmt::format("unknown '{}.'; expected baseline. or paper.", name.column),
             nearest_name(name.column, {"baseline", "paper"}));
      ++at_;
      name.column = word();
    } else if (!quoted && take('(')) {
      return call(name.column, place, depth);
    }
    auto known = std::ranges::find(into_.names_, name);
    const auto index = static_cast<std::size_t>(known - into_.names_.begin());
    if (known == into_.names_.end()) into_.names_.push_back(std::move(name));
    add(Step::kName, index);
  }
  void call(const std::string& function, std::size_t place, int depth) {
    std::size_t arguments = 0;
    if (std::ranges::find(kFunctions, function) == kFunctions.end())
      fail(place, fmt::format("unknown function '{}'; expected {}", function, any_of(kFunctions)),
           nearest_name(function, kFunctions));
    do {
      sum(depth + 1);
      ++arguments;
    } while (take(','));
    if (!take(')'))
      fail(place, fmt::format("the parenthesis of '{}' is never closed; expected ')'", function));
    const bool of_several = function == "min" || function == "max";
    if (of_several ? arguments < 2 : arguments != 1)
      fail(place, fmt::format("'{}' of {} value{}; expected {}", function, arguments,
                              arguments == 1 ? "" : "s", of_several ? "two or more" : "one"));
    add(function == "min"    ? Step::kMin
        : function == "max"  ? Step::kMax
        : function == "abs"  ? Step::kAbs
        : function == "sqrt" ? Step::kSqrt
                             : Step::kLog10,
        arguments);
  }

  std::string_view text_;
  Expression& into_;
  std::size_t at_ = 0;
};

Expression::Expression(std::string_view text) { Parser{text, *this}.parse(); }

Expression::Result Expression::value(std::span<const double> names) const {
  std::vector<double> stack;
  const auto pop = [&] {
    const double value = stack.back();
    stack.pop_back();
    return value;
  };
  for (const Instruction& instruction : program_) {
    switch (instruction.step) {
      case Step::kNumber:
        stack.push_back(instruction.number);
        continue;
      case Step::kName:
        stack.push_back(names[instruction.name]);
        continue;
      case Step::kNegate:
        stack.back() = -stack.back();
        continue;
      case Step::kAbs:
        stack.back() = std::abs(stack.back());
        continue;
      case Step::kSqrt:
        if (stack.back() < 0) return {.why = fmt::format("sqrt of {}", stack.back())};
        stack.back() = std::sqrt(stack.back());
        continue;
      case Step::kLog10:
        if (!(stack.back() > 0)) return {.why = fmt::format("log10 of {}", stack.back())};
        stack.back() = std::log10(stack.back());
        continue;
      case Step::kMin:
      case Step::kMax:
        for (std::size_t i = 1; i < instruction.name; ++i) {
          const double last = pop();
          stack.back() =
              instruction.step == Step::kMin ? std::min(stack.back(), last) : std::max(stack.back(), last);
        }
        continue;
      case Step::kAdd:
      case Step::kSubtract:
      case Step::kMultiply:
      case Step::kDivide:
        break;
    }
    const double right = pop();
    double& left = stack.back();
    if (instruction.step == Step::kAdd) left += right;
    if (instruction.step == Step::kSubtract) left -= right;
    if (instruction.step == Step::kMultiply) left *= right;
    if (instruction.step == Step::kDivide) {
      if (right == 0) return {.why = "division by zero"};
      left /= right;
    }
  }
  if (!std::isfinite(stack.back())) return {.why = "the result is not finite"};
  return {.value = stack.back()};
}

}  // namespace abl::protocol
