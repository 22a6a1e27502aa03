// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "worker/trainer/augmentation/rand_augment.h"

namespace abl::trainer {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_{text} {}

  RandAugment read() {
    const auto parts = split();
    if (parts.front() != "rand") refuse("it does not begin with rand");
    for (std::size_t i = 1; i < parts.size(); ++i) read_part(parts[i]);
    return options_;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Error{
        Code::kInvalidArgument,
        fmt::format(
            "RandAugment \"{}\": {}; expected rand and any of m, mstd, mmax, n, p, inc with a number, "
            "as in rand-m9-mstd0.5-inc1",
            text_, reason)};
  }

  std::vector<std::string_view> split() const {
    std::vector<std::string_view> parts;
    for (std::size_t from = 0; from <= text_.size();) {
      const auto to = std::min(text_.find('-', from), text_.size());
      parts.push_back(text_.substr(from, to - from));
      from = to + 1;
    }
    return parts;
  }

  void read_part(std::string_view part) {
    if (part.starts_with('t'))
      throw Error{
          Code::kUnimplemented,
          fmt::format("RandAugment \"{}\": sets of operations ({}) are not implemented; leave it out, and "
                      "choose by inc0 or inc1",
                      text_, part)};
    const auto digits = std::min(part.find_first_of("0123456789"), part.size());
    const auto name = part.substr(0, digits), number = part.substr(digits);
    if (!seen_.emplace(name).second) refuse(fmt::format("{} is there twice", name));
    if (name == "m")
      options_.magnitude = whole(part, number, 0, 1000);
    else if (name == "mmax")
      options_.magnitude_max = whole(part, number, 1, 1000);
    else if (name == "n")
      options_.operations = whole(part, number, 1, 100);
    else if (name == "inc")
      options_.increasing = whole(part, number, 0, 1) == 1;
    else if (name == "p")
      options_.probability = real(part, number, 0, 1);
    else if (name == "mstd")
      options_.magnitude_std = deviation(real(part, number, 0, 1e9));
    else
      refuse(fmt::format("\"{}\" is not known", part));
  }

  static double deviation(double value) {
    return value > 100 ? std::numeric_limits<double>::infinity() : value;
  }

  template <class Number>
  Number number_of(std::string_view part, std::string_view digits, Number low, Number high,
                   const char* kind) const {
    Number value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < low || value > high)
      refuse(fmt::format("\"{}\" wants a {} from {} to {}", part, kind, low, high));
    return value;
  }
  int whole(std::string_view part, std::string_view digits, int low, int high) const {
    return number_of(part, digits, low, high, "whole number");
  }
  double real(std::string_view part, std::string_view digits, double low, double high) const {
    return number_of(part, digits, low, high, "number");
  }

  std::string_view text_;
  RandAugment options_;
  std::set<std::string_view> seen_;
};

}  // namespace

RandAugment parse_rand_augment(std::string_view text) { return Reader{text}.read(); }

}  // namespace abl::trainer
