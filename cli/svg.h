// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "printing/table.h"

/// What pictures of tables are drawn with.
namespace abl::cli::pictures {

// Okabe and Ito's colours, which people tell apart however they see them; without the yellow, which white
// hides.
inline constexpr std::array kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"};
inline constexpr std::array kDashes{"", "7 3", "2 3", "9 3 2 3"};
inline constexpr const char *kInk = "#1a1a1a", *kFaint = "#5c5c5c", *kRule = "#dedede",
                            *kBaseline = "#000000";
inline constexpr double kFont = 13, kSmall = 12, kLetter = 0.6;  // of a font's size, on the average
inline constexpr double kRowHeight = 24, kMargin = 18;
inline constexpr int kLongestName = 44;

inline double width_of(std::string_view text, double size = kSmall) {
  return display_width(std::string{text}) * size * kLetter;
}

/// "12.3": never "-0.0".
inline std::string at(double value) {
  std::string text = fmt::format("{:.1f}", value);
  return text == "-0.0" ? "0.0" : text;
}

inline std::string cut(const std::string& name) {
  if (display_width(name) <= kLongestName) return name;
  std::string kept;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i + 1;
    while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) ++end;
    if (display_width(kept) + 2 > kLongestName) break;
    kept += name.substr(i, end - i);
    i = end;
  }
  return kept + "…";
}

/// Numbers along an axis, at 1, 2 or 5 times a power of ten.
struct Axis {
  double low = 0, high = 1, step = 1, from = 0, to = 1;  // pixels

  static Axis around(double low, double high, int ticks) {
    if (!(high > low)) {
      const double around = low == 0 ? 1 : std::abs(low) * 0.05;
      low -= around, high += around;
    }
    const double rough = (high - low) / ticks, power = std::pow(10, std::floor(std::log10(rough)));
    const double part = rough / power;
    const double step = power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
    return {.low = std::floor(low / step + 1e-9) * step,
            .high = std::ceil(high / step - 1e-9) * step,
            .step = step};
  }
  double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    const auto count = static_cast<int>(std::lround((high - low) / step));
    for (int i = 0; i <= count; ++i) ticks.push_back(low + i * step);
    return ticks;
  }
  std::string text(double value) const {
    if (std::abs(value) < step * 1e-6) value = 0;
    const double largest = std::max(std::abs(low), std::abs(high));
    if (largest >= 1e6 || step < 1e-5) return fmt::format("{:.3g}", value);
    return fmt::format("{:.{}f}", value, std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9))));
  }
};

/// The picture while it is drawn.
class Svg {
 public:
  void line(double x1, double y1, double x2, double y2, std::string_view colour, double width = 1,
            std::string_view dash = "") {
    body_ +=
        fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                    at(x1), at(y1), at(x2), at(y2), colour, at(width), dashed(dash));
  }
  void text(double x, double y, std::string_view text, std::string_view anchor = "start",
            double size = kSmall, std::string_view colour = kInk, bool bold = false,
            std::string_view more = "") {
    body_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\"{}{}>{}</text>\n", at(x),
        at(y), anchor, size, colour, bold ? " font-weight=\"bold\"" : "", more, printing::html_text(text));
  }
  void rectangle(double x, double y, double width, double height, std::string_view colour,
                 std::string_view title) {
    body_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>\n", at(x),
        at(y), at(width), at(height), colour, printing::html_text(title));
  }
  void dot(double x, double y, double radius, std::string_view colour, std::string_view title) {
    body_ += fmt::format(
        "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"#fff\" "
        "stroke-width=\"1\"><title>{}</title></circle>\n",
        at(x), at(y), at(radius), colour, printing::html_text(title));
  }
  void area(const std::string& points, std::string_view colour) {
    body_ += fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.15\"/>\n", points, colour);
  }
  void path(const std::string& points, std::string_view colour, std::string_view dash,
            std::string_view title) {
    body_ += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" "
        "stroke-linejoin=\"round\"{}><title>{}</title></polyline>\n",
        points, colour, dashed(dash), printing::html_text(title));
  }
  std::string page(double width, double height, std::string_view title) const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "role=\"img\" "
        "font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', "
        "sans-serif\">\n<title>{2}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{3}</svg>\n",
        std::lround(width), std::lround(height), printing::html_text(title), body_);
  }

 private:
  static std::string dashed(std::string_view dash) {
    return dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash);
  }
  std::string body_;
};

}  // namespace abl::cli::pictures
