// SPDX-License-Identifier: Apache-2.0
#include "protocol/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace abl::protocol {

std::optional<std::string_view> non_finite_name(double value) {
  if (std::isfinite(value)) return std::nullopt;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

std::optional<double> non_finite_value(std::string_view name) {
  if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (name == "Infinity") return std::numeric_limits<double>::infinity();
  if (name == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

nlohmann::json json_number(double value) {
  if (const auto name = non_finite_name(value)) return *name;
  return value;
}

std::optional<double> number_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  std::string_view text = value.get_ref<const std::string&>();
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  text = text.substr(0, text.find_last_not_of(" \t") + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional{number} : std::nullopt;
}

std::optional<Printed> printed_number(std::string_view text) {
  if (const auto spread = std::min(text.find("±"), text.find("+-")); spread != std::string_view::npos)
    text = text.substr(0, spread);
  const auto trim = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    text = text.substr(0, text.find_last_not_of(" \t") + 1);
  };
  trim();
  if (text.ends_with('%')) text.remove_suffix(1), trim();
  std::string plain;
  if (constexpr std::string_view kMinus = "−"; text.starts_with(kMinus)) {
    plain = "-";
    text.remove_prefix(kMinus.size());
  } else if (text.starts_with('-') || text.starts_with('+')) {
    if (text[0] == '-') plain = "-";
    text.remove_prefix(1);
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  std::size_t since_comma = 0, commas = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',') {  // of thousands: three digits follow, and one to three lead
      const bool leads = commas == 0 && since_comma >= 1 && since_comma <= 3;
      if (i >= point || !(leads || (commas > 0 && since_comma == 3)) || i + 3 >= text.size())
        return std::nullopt;
      ++commas, since_comma = 0;
      continue;
    }
    if (i == point && commas > 0 && since_comma != 3) return std::nullopt;
    if (i != point && (c < '0' || c > '9')) return std::nullopt;
    if (i < point) ++since_comma;
    plain += c;
  }
  if (point == text.size() && commas > 0 && since_comma != 3) return std::nullopt;
  Printed printed{.digits = point == text.size() ? 0 : static_cast<int>(text.size() - point - 1)};
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), printed.value);
  const bool whole = error == std::errc{} && end == plain.data() + plain.size() && text != ".";
  return whole ? std::optional{printed} : std::nullopt;
}

}  // namespace abl::protocol
