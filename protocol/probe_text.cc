// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "protocol/probe_results.h"

namespace abl::protocol {
namespace {

std::string shown(double value) { return fmt::format("{:.5g}", value); }

/// An array of one dimension as a line, one of two as a line for each row; of more its size.
std::string to_text(const std::string& name, const ProbeArray& array) {
  constexpr std::size_t kWidest = 24;
  const auto& axes = array.axes;
  const auto columns = axes.back().places.size();
  if (axes.size() > 2 || columns > kWidest || array.values.size() > kWidest * kWidest) {
    std::vector<std::string> lengths;
    for (const auto& axis : axes) lengths.push_back(fmt::format("{} × {}", axis.places.size(), axis.name));
    return fmt::format("  {}: {} (--json or --out)\n", name, fmt::join(lengths, ", "));
  }
  std::string text = fmt::format("  {} by {}\n", name, axes.back().name);
  const auto add_line = [&](const std::string& head, const auto& cell) {
    text += fmt::format("    {:<12}", head);
    for (std::size_t i = 0; i < columns; ++i) text += fmt::format(" {:>9}", cell(i));
    text += '\n';
  };
  add_line("", [&](std::size_t i) { return axes.back().places[i]; });
  for (std::size_t row = 0; columns > 0 && row * columns < array.values.size(); ++row)
    add_line(axes.size() == 1 ? std::string{} : axes.front().places[row],
             [&](std::size_t i) { return shown(array.values[row * columns + i]); });
  return text;
}

}  // namespace

std::string to_text(const ProbeResult& result) {
  std::string text = result.request.name + "\n";
  if (!result.missing.empty()) text += fmt::format("  nothing to probe: {}\n", result.missing);
  for (const auto& [name, value] : result.values) text += fmt::format("  {} {}\n", name, shown(value));
  for (const auto& [name, array] : result.arrays) text += to_text(name, array);
  for (const auto& picture : result.pictures)
    text += picture.file.empty() ? fmt::format("  picture {}: {} × {} pixels (--out FOLDER)\n", picture.name,
                                               picture.width, picture.height)
                                 : fmt::format("  picture {}: {}\n", picture.name, picture.file);
  for (const auto& note : result.notes) text += fmt::format("  note: {}\n", note);
  return text;
}

}  // namespace abl::protocol
