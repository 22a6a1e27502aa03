// SPDX-License-Identifier: Apache-2.0
#include "launchers/pilot_id.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

#include "base/error.h"

namespace abl::launchers {

std::string new_pilot_id() {
  std::array<unsigned char, 6> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error{Code::kUnavailable, "no random numbers"};
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool is_pilot_id(std::string_view text) {
  return text.size() == 12 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace abl::launchers
