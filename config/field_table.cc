// SPDX-License-Identifier: Apache-2.0
#include "config/field_table.h"

namespace abl::config {

std::string Range::text() const {
  if (without_low) return fmt::format("above {}", canonical_number(low));
  if (std::isinf(high)) return fmt::format("at least {}", canonical_number(low));
  return fmt::format("{} to {}", canonical_number(low), canonical_number(high));
}

Mismatch check_number(Json& value, bool whole, const Range& range) {
  const std::string expected =
      fmt::format("expected a {}, {}", whole ? "whole number" : "number", range.text());
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    return {fmt::format("{}; got {}", expected, value.is_number() ? "an infinite one" : value.dump()), {}};
  }
  const double number = value.get<double>();
  if (whole && number != std::floor(number))
    return {fmt::format("{} is not whole; {}", canonical_number(number), expected), {}};
  if (!range.holds(number))
    return {fmt::format("{} is out of range; {}", canonical_number(number), expected), {}};
  if (whole) {
    value = static_cast<std::int64_t>(number);
  } else {
    value = number;
  }
  return {};
}

Mismatch check_text(const Json& value, const std::vector<std::string>& choices) {
  if (!value.is_string()) {
    const std::string expected = choices.empty() ? "expected a text" : "expected " + any_of(choices);
    return {fmt::format("{}; got {}", expected, value.dump()), {}};
  }
  const std::string& text = value.get_ref<const std::string&>();
  if (choices.empty()) {
    const bool name =
        !text.empty() && text.size() <= 200 && text.find_first_not_of(kNameLetters) == std::string::npos;
    return name ? Mismatch{}
                : Mismatch{fmt::format("'{}' is no name; expected letters, digits, '.', '_' and '-'", text),
                           {}};
  }
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
  return {fmt::format("'{}' is not known; expected {}", text, any_of(choices)), nearest_name(text, choices)};
}

bool expect_mapping(const Json& section, const std::string& path, std::vector<Problem>& problems) {
  if (section.is_object()) return true;
  problems.push_back(
      {path, fmt::format("expected a mapping; got {}", section.is_null() ? "nothing" : section.dump()), {}});
  return false;
}

void expect_keys(const Json& section, const std::string& path, const std::vector<std::string>& known,
                 std::vector<Problem>& problems) {
  for (const auto& [key, value] : section.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    problems.push_back({path.empty() ? key : path + "." + key,
                        fmt::format("unknown key; expected {}", any_of(known)), nearest_name(key, known)});
  }
}

}  // namespace abl::config
