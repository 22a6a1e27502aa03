// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace abl::data {

/// Appends a whole number, lowest byte first.
template <class Number>
void put(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i)));
}
inline void put(std::string& out, double number) { put(out, std::bit_cast<std::uint64_t>(number)); }

/// Its size in four bytes, then the text.
inline void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

/// Takes numbers and texts from the front, never more than there is.
class Taker {
 public:
  /// `what` names the bytes where they end too soon: "its index".
  Taker(std::string_view bytes, std::string_view what) : rest_{bytes}, what_{what} {}
  std::size_t left() const { return rest_.size(); }
  template <class Number>
  Number number() {
    std::uint64_t value = 0;
    const auto bytes = take(sizeof(Number));
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return static_cast<Number>(value);
  }
  double real() { return std::bit_cast<double>(number<std::uint64_t>()); }
  std::string text() { return std::string{take(number<std::uint32_t>())}; }
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) throw Error{Code::kDataLoss, fmt::format("{} is truncated", what_)};
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view rest_, what_;
};

}  // namespace abl::data
