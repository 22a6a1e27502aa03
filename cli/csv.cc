// SPDX-License-Identifier: Apache-2.0
#include "cli/csv.h"

#include <fmt/format.h>

#include <cmath>

namespace abl::cli {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + "\"";
}

std::string csv_number(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

}  // namespace abl::cli
