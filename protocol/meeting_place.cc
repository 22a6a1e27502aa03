// SPDX-License-Identifier: Apache-2.0
#include "protocol/meeting_place.h"

#include <charconv>
#include <cstdint>

namespace abl::protocol {

bool is_meeting_place(std::string_view text) {
  constexpr std::size_t kLongest = 300;  // of a host's name 253
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%[]";
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text.size() > kLongest || text.front() == '-' ||
      text.substr(0, colon).find_first_not_of(kLetters) != std::string_view::npos)
    return false;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [last, wrong] = std::from_chars(text.data() + colon + 1, end, port);
  return wrong == std::errc{} && last == end && port != 0;
}

}  // namespace abl::protocol
