// SPDX-License-Identifier: Apache-2.0
#include "printing/grid.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "printing/medium.h"

namespace abl::printing {
namespace {

constexpr int kGap = 2;

void make_one_line(std::string& text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

Grid::Grid(std::vector<Column> columns) : columns_{std::move(columns)} {
  for (Column& column : columns_) make_one_line(column.heading), make_one_line(column.group);
}

void Grid::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) make_one_line(cell);
  rows_.push_back(std::move(cells));
}

void Grid::add_heading(std::string heading) {
  make_one_line(heading);
  headings_[rows_.size()] = std::move(heading);
}

/// Of headings and cells, without what a group's title needs.
std::vector<int> Grid::natural_widths() const {
  std::vector<int> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    int width = std::max(columns_[column].width, display_width(columns_[column].heading));
    for (const auto& row : rows_) width = std::max(width, display_width(row.at(column)));
    widths.push_back(width);
  }
  return widths;
}

std::vector<int> Grid::widths() const {
  std::vector<int> widths = natural_widths();
  // a group's title needs room too: its last column makes it
  for (std::size_t first = 0, last = 0; first < columns_.size(); first = last) {
    int width = -kGap;
    for (last = first; last < columns_.size() && columns_[last].group == columns_[first].group; ++last)
      width += kGap + widths[last];
    widths[last - 1] += std::max(0, display_width(columns_[first].group) - width);
  }
  return widths;
}

int Grid::excess(const std::vector<int>& widths, int width) const {
  return std::accumulate(widths.begin(), widths.end(), kGap * (static_cast<int>(widths.size()) - 1)) - width;
}

void Grid::leave_out(std::size_t column) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  columns_.erase(columns_.begin() + at);
  for (auto& row : rows_) row.erase(row.begin() + at);
}

std::vector<Grid::Column> Grid::fit_to(int width) {
  std::vector<Column> left_out;
  if (width <= 0) return left_out;
  // a group's title is cut to its columns: it is no reason to leave one out
  for (;;) {
    auto least = natural_widths();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].least > 0)
        least[i] = std::min(least[i], std::max(columns_[i].least, display_width(columns_[i].heading)));
    if (excess(least, width) <= 0) break;
    std::size_t last = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].rank > 0 && (last == columns_.size() || columns_[i].rank >= columns_[last].rank))
        last = i;
    if (last == columns_.size()) break;  // what is left is cut at the edge
    left_out.insert(left_out.begin(), columns_[last]);
    leave_out(last);
  }
  auto now = natural_widths();
  while (excess(now, width) > 0) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const int least = std::max(columns_[i].least, display_width(columns_[i].heading));
      if (columns_[i].least > 0 && now[i] > least && (widest == columns_.size() || now[i] > now[widest]))
        widest = i;
    }
    if (widest == columns_.size()) break;
    --now[widest];
  }
  for (auto& row : rows_)
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].least > 0) row[i] = fit(row[i], now[i]);
  for (std::size_t first = 0, last = 0; first < columns_.size(); first = last) {
    int room = -kGap;
    for (last = first; last < columns_.size() && columns_[last].group == columns_[first].group; ++last)
      room += kGap + now[last];
    if (last == columns_.size()) room += std::max(0, -excess(now, width));
    const std::string group = columns_[first].group;
    for (std::size_t i = first; i < last; ++i) columns_[i].group = fit(group, std::max(1, room));
  }
  return left_out;
}

std::vector<std::string> Grid::lines(const Medium* medium) const {
  const auto width = widths();
  const std::string gap(kGap, ' ');
  std::vector<std::string> lines;
  const auto bold = [&](const std::string& line) {
    return medium ? medium->paint(Style::kBold, line) : line;
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
  int whole = -kGap;
  for (const int column : width) whole += kGap + column;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (const auto heading = headings_.find(i); heading != headings_.end()) {
      const std::string name =
          heading->second.empty() ? "" : " " + fit(heading->second, std::max(1, whole - 4)) + " ";
      std::string rule = "──" + name;
      for (int at = display_width(rule); at < whole; ++at) rule += "─";
      lines.push_back(rule);
    }
    lines.push_back(join([&](std::size_t column) { return rows_[i][column]; }));
  }
  return lines;
}

std::string Grid::take_text(const Medium* medium) {
  const auto width = widths();
  const auto all = lines(medium);
  std::string text;
  const std::size_t heads = std::exchange(headed_, true) ? all.size() - rows_.size() - headings_.size() : 0;
  for (std::size_t i = heads; i < all.size(); ++i) text += all[i] + "\n";
  for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].width = width[i];
  rows_.clear();
  headings_.clear();
  return text;
}

std::string Grid::text(const Medium* medium) const {
  std::string text;
  for (const auto& line : lines(medium)) text += line + "\n";
  return text;
}

}  // namespace abl::printing
