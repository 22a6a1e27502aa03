// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace abl::printing {

class Medium;

/// Lines of text in aligned columns, for terminals. Cells may carry colours.
class Grid {
 public:
  struct Column {
    std::string heading;
    bool right_aligned = false;
    std::string group = {};  ///< printed once above neighbouring columns that share it
    int least = 0;           ///< where there is no room it is cut down to so many columns; 0: never cut
    int rank = 0;            ///< where there is still none, the highest rank is left out first; 0: never
    int width = 0;           ///< at least, whatever its cells are
  };
  /// Line ends and tabs in a heading are spaces.
  explicit Grid(std::vector<Column> columns);

  /// A cell for each column; line ends and tabs in it are spaces, for a cell is one line.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// A rule in front of the row that is added next, with a heading in it, or without where it is empty.
  void add_heading(std::string heading);

  /// Makes it as wide as `width` at most (0: as wide as it is): cells are cut first, then columns left out,
  /// of one rank the last first. Returns: those that were left out.
  std::vector<Column> fit_to(int width);

  /// Headings (bold, where a terminal is given) and rows, two spaces apart, without trailing spaces.
  std::vector<std::string> lines(const Medium* medium = nullptr) const;
  /// The same as one text, each line ended.
  std::string text(const Medium* medium = nullptr) const;
  /// Takes the rows away and keeps the columns as wide as they are: other rows go on below. Returns: the text
  /// of the rows, with the headings where there were none yet.
  std::string take_text(const Medium* medium = nullptr);

 private:
  std::vector<int> natural_widths() const;
  std::vector<int> widths() const;
  int excess(const std::vector<int>& widths, int width) const;
  void leave_out(std::size_t column);

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::map<std::size_t, std::string> headings_;  // row -> what stands in front of it
  bool headed_ = false;                          // `take_text` has given the headings
};

}  // namespace abl::printing
