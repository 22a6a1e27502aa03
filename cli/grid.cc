// SPDX-License-Identifier: Apache-2.0
#include "cli/grid.h"

#include <algorithm>

#include "cli/terminal.h"

namespace abl::cli {
namespace {

constexpr int kGap = 2;

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Grid::add(std::vector<std::string> cells) {
  for (std::string& cell : cells)
    std::ranges::replace_if(
        cell, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  rows_.push_back(std::move(cells));
}

std::vector<int> Grid::widths() const {
  std::vector<int> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    int width = display_width(columns_[column].heading);
    for (const auto& row : rows_) width = std::max(width, display_width(row.at(column)));
    widths.push_back(width);
  }
  // a group's title needs room too: its last column makes it
  for (std::size_t first = 0, last = 0; first < columns_.size(); first = last) {
    int width = -kGap;
    for (last = first; last < columns_.size() && columns_[last].group == columns_[first].group; ++last)
      width += kGap + widths[last];
    widths[last - 1] += std::max(0, display_width(columns_[first].group) - width);
  }
  return widths;
}

std::vector<std::string> Grid::lines(const Terminal* terminal) const {
  const auto width = widths();
  const std::string gap(kGap, ' ');
  std::vector<std::string> lines;
  const auto bold = [&](const std::string& line) {
    return terminal ? terminal->paint(Style::kBold, line) : line;
  };
  std::string groups;
  for (std::size_t column = 0, start = 0; column < columns_.size();
       start += static_cast<std::size_t>(width[column] + kGap), ++column) {
    const bool opens = column == 0 || columns_[column].group != columns_[column - 1].group;
    if (opens && !columns_[column].group.empty())
      groups = pad(groups, static_cast<int>(start)) + columns_[column].group;
  }
  if (!groups.empty()) lines.push_back(bold(groups));

  const auto join = [&](const auto& cell) {
    std::string line;
    for (std::size_t column = 0; column < columns_.size(); ++column)
      line += (column ? gap : "") + pad(cell(column), width[column], columns_[column].right_aligned);
    return without_trailing_spaces(line);
  };
  lines.push_back(bold(join([&](std::size_t column) { return columns_[column].heading; })));
  for (const auto& row : rows_) lines.push_back(join([&](std::size_t column) { return row[column]; }));
  return lines;
}

std::string Grid::text(const Terminal* terminal) const {
  std::string text;
  for (const auto& line : lines(terminal)) text += line + "\n";
  return text;
}

}  // namespace abl::cli
