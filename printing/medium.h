// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace abl::printing {

enum class Style { kBold, kDim, kUnderline, kRed, kGreen, kYellow, kCyan };

/// What text is printed on, where that is not a file: how wide it is, and whether it takes colours.
class Medium {
 public:
  virtual ~Medium() = default;
  virtual int width() const = 0;  ///< columns; 0: no limit
  virtual bool colour() const = 0;
  /// With the escape sequences of a style around it, where it takes colours.
  std::string paint(Style style, std::string_view text) const;
};

/// Columns that a text takes; escape sequences take none.
int display_width(std::string_view text);
/// Cut to `width` columns, the last one "…" when something was cut; escape sequences are kept.
std::string fit(std::string_view text, int width);
/// Padded with spaces to `width` columns, on the left when `right_aligned`.
std::string pad(std::string_view text, int width, bool right_aligned = false);

}  // namespace abl::printing
