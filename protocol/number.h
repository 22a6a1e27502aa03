// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string_view>

namespace abl::protocol {

/// JSON and SQL have no word for numbers that are not finite. Everywhere here they are the texts that
/// JavaScript and Python have: "NaN", "Infinity" and "-Infinity". Nothing of a finite one.
std::optional<std::string_view> non_finite_name(double value);
/// What such a text stands for; nothing of any other.
std::optional<double> non_finite_value(std::string_view name);

/// A number for a JSON document: itself, or its name.
nlohmann::json json_number(double value);
/// A number, or a text that is one as programs write it: "0.5", " +1e-3 ", "NaN", "-Infinity", "inf". Nothing
/// of anything else.
std::optional<double> number_of(const nlohmann::json& value);

/// A number as a paper prints it: "61.13", "−0.4", "1,281,167", "79.8%", the mean of "79.8 ± 0.2".
struct Printed {
  double value = 0;
  int digits = 0;  ///< after the point
};
/// Nothing of "–", of text, and of what has more behind the number.
std::optional<Printed> printed_number(std::string_view text);

}  // namespace abl::protocol
