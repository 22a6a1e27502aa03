// SPDX-License-Identifier: Apache-2.0
#include "images/masks/coded.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"

namespace abl::images {
namespace {

constexpr char kFirst = '0';
constexpr unsigned kValue = 0x1f, kMore = 0x20, kSign = 0x10;
constexpr int kBits = 5, kMostGroups = 7;  // 35 bits hold any difference of two numbers of 32

/// Adds runs one by one, of which the sum must come out.
class Runs {
 public:
  Runs(int width, int height)
      : writer_{width, height},
        pixels_{std::uint64_t{1} * static_cast<unsigned>(width) * static_cast<unsigned>(height)} {}

  void add(std::uint64_t run) {
    if (run > pixels_ - sum_)
      throw Error{Code::kInvalidArgument,
                  fmt::format("run lengths exceed the {} pixels of the image", pixels_)};
    writer_.add(set_, run);
    sum_ += run, set_ = !set_;
  }
  Mask finish() && {
    if (sum_ != pixels_)
      throw Error{Code::kInvalidArgument,
                  fmt::format("run lengths cover {} pixels; the image has {}", sum_, pixels_)};
    return std::move(writer_).finish();
  }

 private:
  MaskWriter writer_;
  std::uint64_t pixels_, sum_ = 0;
  bool set_ = false;
};

}  // namespace

Mask mask_of_runs(std::span<const std::uint64_t> runs, int width, int height) {
  Runs all{width, height};
  for (const std::uint64_t run : runs) all.add(run);
  return std::move(all).finish();
}

std::string compressed(const Mask& mask) {
  std::string text;
  for (std::size_t i = 0; i < mask.runs.size(); ++i) {
    std::int64_t rest = mask.runs[i];
    if (i > 2) rest -= mask.runs[i - 2];
    for (bool more = true; more;) {
      unsigned group = static_cast<unsigned>(rest) & kValue;
      rest >>= kBits;
      more = rest != ((group & kSign) != 0 ? -1 : 0);  // until what is left is the sign alone
      if (more) group |= kMore;
      text.push_back(static_cast<char>(kFirst + static_cast<char>(group)));
    }
  }
  return text;
}

Mask mask_of_compressed(std::string_view text, int width, int height) {
  Runs all{width, height};
  std::int64_t last = 0, before_last = 0;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    std::uint64_t value = 0;
    unsigned group = kMore;
    int groups = 0;
    for (; (group & kMore) != 0; ++at, ++groups) {
      if (at == text.size())
        throw Error{Code::kInvalidArgument, fmt::format("run lengths are truncated after character {}", at)};
      if (groups == kMostGroups)
        throw Error{Code::kInvalidArgument,
                    fmt::format("run length at character {} exceeds 32 bits", at + 1)};
      group = static_cast<unsigned>(static_cast<unsigned char>(text[at])) - static_cast<unsigned>(kFirst);
      if (group > (kMore | kValue))
        throw Error{Code::kInvalidArgument,
                    fmt::format("invalid byte {} in run lengths at character {}; expected '0' to 'o'",
                                static_cast<int>(static_cast<unsigned char>(text[at])), at + 1)};
      value |= static_cast<std::uint64_t>(group & kValue) << (kBits * groups);
    }
    if ((group & kSign) != 0) value |= ~std::uint64_t{0} << (kBits * groups);
    const std::int64_t run = static_cast<std::int64_t>(value) + (number > 2 ? before_last : 0);
    if (run < 0 || run > std::numeric_limits<std::uint32_t>::max())
      throw Error{Code::kInvalidArgument,
                  fmt::format("run length of {} pixels at character {} is out of range", run, at)};
    all.add(static_cast<std::uint64_t>(run));
    before_last = last, last = run;
  }
  return std::move(all).finish();
}

}  // namespace abl::images
