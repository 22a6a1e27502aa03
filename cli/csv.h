// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace abl::cli {

/// A field of a CSV line, quoted where RFC 4180 wants it.
std::string csv_field(const std::string& text);
/// As many digits as give the same number again; "nan", "inf", "-inf".
std::string csv_number(double value);

}  // namespace abl::cli
