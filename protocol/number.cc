// SPDX-License-Identifier: Apache-2.0
#include "protocol/number.h"

#include <fmt/format.h>

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

std::optional<double> plain_number(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional{number} : std::nullopt;
}

std::optional<double> number_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? plain_number(value.get_ref<const std::string&>()) : std::nullopt;
}

namespace {

/// "1,234,567.5" without its commas; nothing where they do not stand between thousands.
std::optional<std::string> without_commas(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of(".eE"), text.size());
  const std::size_t begin = text.starts_with('-') ? 1 : 0;
  std::string plain{text.substr(0, begin)};
  for (std::size_t i = begin; i < end; ++i) {
    if (text[i] != ',') {
      plain += text[i];
      continue;
    }
    const bool leads = i > begin && i <= begin + 3 && text[begin] != '0';
    const bool before = i >= begin + 4 && text[i - 4] == ',';
    const bool three = i + 4 <= end && (i + 4 == end || text[i + 4] == ',');
    if (!(leads || before) || !three) return std::nullopt;
  }
  return plain.append(text.substr(end));
}

}  // namespace

std::optional<double> logged_number(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto trim = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  };
  trim();
  if (text.ends_with('%')) text.remove_suffix(1), trim();
  std::string signed_text;
  if (constexpr std::string_view kMinus = "−"; text.starts_with(kMinus))
    signed_text.append("-").append(text.substr(kMinus.size()));
  else
    signed_text = text.starts_with('+') ? text.substr(1) : text;
  const auto plain = without_commas(signed_text);
  if (!plain) return std::nullopt;
  long double number = 0;  // what is too small for a double is 0, and what is too large for it is none
  const auto [end, error] = std::from_chars(plain->data(), plain->data() + plain->size(), number);
  if (error != std::errc{} || end != plain->data() + plain->size()) return std::nullopt;
  const bool fits = !std::isfinite(number) || std::fabs(number) <= std::numeric_limits<double>::max();
  // as a double is read: a long double rounded once more may be its neighbour
  double value = 0;
  const auto read = std::from_chars(plain->data(), plain->data() + plain->size(), value);
  if (read.ec == std::errc{}) return value;
  return fits ? std::optional{static_cast<double>(number)} : std::nullopt;
}

std::optional<std::uint32_t> logged_step(std::string_view text) {
  const auto number = logged_number(text);
  const bool whole = number && *number >= 0 && *number <= std::numeric_limits<std::uint32_t>::max() &&
                     *number == std::floor(*number);
  return whole && text.find('%') == std::string_view::npos
             ? std::optional{static_cast<std::uint32_t>(*number)}
             : std::nullopt;
}

std::string with_quoted_non_finite(std::string_view text) {
  constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  if (text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos)
    return std::string{text};
  std::string quoted;
  bool in_text = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (in_text && text[at] == '\\') {
      quoted += text.substr(at++, 2);
      continue;
    }
    if (text[at] == '"') in_text = !in_text;
    const auto* word = in_text ? std::end(kWords) : std::ranges::find_if(kWords, [&](std::string_view each) {
      return text.substr(at).starts_with(each);
    });
    if (word == std::end(kWords)) {
      quoted += text[at];
    } else {
      quoted += fmt::format("\"{}\"", *word);
      at += word->size() - 1;
    }
  }
  return quoted;
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
