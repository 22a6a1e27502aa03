// SPDX-License-Identifier: Apache-2.0
#include "base/pattern.h"

#include <re2/re2.h>

namespace abl {
namespace {

constexpr std::int64_t kMostMemory = 2 << 20;  // of the compiled expression and its cache
constexpr std::size_t kLongest = 1000;

re2::RE2::Options options() {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // logs may hold any bytes
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  return options;
}

std::string problem_of(const std::string& text) {
  if (text.size() > kLongest) return "longer than 1,000 bytes";
  const re2::RE2 alone{text, options()};
  return alone.ok() ? "" : alone.error();
}

}  // namespace

Pattern::Pattern(const std::string& text)
    : problem_{problem_of(text)},
      expression_{std::make_unique<re2::RE2>("(?m)" + (problem_.empty() ? text : ""), options())} {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

bool Pattern::is_in(std::string_view text) const {
  return problem_.empty() && re2::RE2::PartialMatch({text.data(), text.size()}, *expression_);
}

}  // namespace abl
