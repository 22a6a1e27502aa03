// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace abl::cli {

class Terminal;

/// Lines of text in aligned columns, for terminals. Cells may carry colours.
class Grid {
 public:
  struct Column {
    std::string heading;
    bool right_aligned = false;
    std::string group = {};  ///< printed once above neighbouring columns that share it
  };
  explicit Grid(std::vector<Column> columns) : columns_{std::move(columns)} {}

  /// A cell for each column; line ends and tabs in it are spaces, for a cell is one line.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  /// Headings (bold, where a terminal is given) and rows, two spaces apart, without trailing spaces.
  std::vector<std::string> lines(const Terminal* terminal = nullptr) const;
  /// The same as one text, each line ended.
  std::string text(const Terminal* terminal = nullptr) const;

 private:
  std::vector<int> widths() const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace abl::cli
