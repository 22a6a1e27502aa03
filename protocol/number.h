// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace abl::protocol {

/// JSON and SQL have no word for numbers that are not finite. Everywhere here they are the texts that
/// JavaScript and Python have: "NaN", "Infinity" and "-Infinity". Nothing of a finite one.
std::optional<std::string_view> non_finite_name(double value);
/// What such a text stands for; nothing of any other.
std::optional<double> non_finite_value(std::string_view name);

/// A number for a JSON document: itself, or its name.
nlohmann::json json_number(double value);
/// A text that is a number as programs write it: "0.5", " +1e-3 ", "NaN", "-Infinity", "inf". Nothing of
/// anything else, and of one beyond what a double holds.
std::optional<double> plain_number(std::string_view text);
/// A number, or a text that is one.
std::optional<double> number_of(const nlohmann::json& value);

/// A number as a program prints it in a log or a table: as `number_of` takes them, and "97.3%" (97.3),
/// "1,234" and "1,234.5" (of thousands), "−0.4" with a minus sign of print. Nothing of anything else, such as
/// "0,97", and of what no double holds, such as "1e400".
std::optional<double> logged_number(std::string_view text);
/// The step that such a number is: a whole one, from 0 to 4,294,967,295. Nothing of any other.
std::optional<std::uint32_t> logged_step(std::string_view text);

/// JSON has no word for numbers that are not finite; Python's json.dumps writes them bare all the same. They
/// become texts here: `{"a": NaN}` is read as `{"a": "NaN"}`.
std::string with_quoted_non_finite(std::string_view text);

/// A number as a paper prints it: "61.13", "−0.4", "1,281,167", "79.8%", the mean of "79.8 ± 0.2".
struct Printed {
  double value = 0;
  int digits = 0;  ///< after the point
};
/// Nothing of "–", of text, and of what has more behind the number.
std::optional<Printed> printed_number(std::string_view text);

}  // namespace abl::protocol
