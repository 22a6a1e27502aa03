// SPDX-License-Identifier: Apache-2.0
#include "sweeps/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace abl::sweeps {
namespace {

/// A bracket or a quote that is open.
struct Open {
  char sign;
  Place place;
};

std::string_view line_of(std::string_view text, std::size_t at) {
  return text.substr(at, text.find('\n', at) - at);
}

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

/// What is open where a text breaks off. Follows it by its signs alone, as far as a message needs: comments,
/// quotes, and texts under `|` and `>` are passed over; in a block, a bracket or quote counts where a value
/// begins.
class OpenSigns {
 public:
  explicit OpenSigns(std::string_view text, Place end) {
    int number = 1;
    for (std::size_t at = 0; at < text.size() && number <= end.line; ++number) {
      const std::string_view line = line_of(text, at);
      at += line.size() + 1;
      if (block_text_ && (indent_of(line) > block_indent_ || line.find_first_not_of(" \r") == line.npos))
        continue;
      block_text_ = false;
      follow(
          number == end.line ? line.substr(0, static_cast<std::size_t>(std::max(0, end.column - 1))) : line,
          number);
    }
  }

  const std::vector<Open>& open() const { return open_; }
  /// Where the brackets were first nested too deeply, if they were.
  const std::optional<Place>& too_deep() const { return too_deep_; }

 private:
  void follow(std::string_view line, int number) {
    bool value_begins = true;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char sign = line[i];
      const Place place{number, static_cast<int>(i) + 1};
      const bool after_space = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
      if (const char quote = open_.empty() ? ' ' : open_.back().sign; quote == '"' || quote == '\'') {
        if (sign == '\\' && quote == '"') {
          ++i;
        } else if (sign == quote && quote == '\'' && i + 1 < line.size() && line[i + 1] == '\'') {
          ++i;
        } else if (sign == quote) {
          open_.pop_back();
        }
        continue;
      }
      if (sign == '#' && after_space) return;
      if (sign == ' ' || sign == '\t') continue;
      const bool in_flow = !open_.empty();
      const bool space_follows = i + 1 == line.size() || line[i + 1] == ' ';
      if ((sign == '|' || sign == '>') && value_begins && !in_flow) {
        block_text_ = true;
        block_indent_ = indent_of(line);
        return;
      }
      if ((sign == '[' || sign == '{') && (value_begins || in_flow)) {
        open_.push_back({sign, place});
        if (!too_deep_ && open_.size() > kDeepestYaml) too_deep_ = place;
      }
      if ((sign == '"' || sign == '\'') && value_begins) open_.push_back({sign, place});
      if ((sign == ']' || sign == '}') && in_flow) open_.pop_back();
      value_begins = sign == '[' || sign == '{' || (sign == ',' && in_flow) ||
                     ((sign == ':' || (sign == '-' && value_begins) || sign == '?') && space_follows) ||
                     ((sign == '&' || sign == '!' || sign == '*') && value_begins);
      if (sign == '&' || sign == '!')  // of a name that may stand before a value
        while (value_begins && i + 1 < line.size() && line[i + 1] != ' ') ++i;
    }
  }

  std::vector<Open> open_;
  std::optional<Place> too_deep_;
  bool block_text_ = false;
  std::size_t block_indent_ = 0;
};

}  // namespace

Problem syntax_problem(const std::string& file, std::string_view text, Place place,
                       const std::string& message) {
  const auto wrong = [&](Place at, const std::string& what) {
    return Problem{.file = file, .place = at, .field = {}, .message = "not YAML: " + what, .nearest = {}};
  };
  std::size_t at = 0;
  for (int line = 1; line < place.line && at < text.size(); ++line) at += line_of(text, at).size() + 1;
  const std::string_view line = at < text.size() ? line_of(text, at) : std::string_view{};
  const std::string_view indent = line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
  if (const auto tab = indent.find('\t'); tab != std::string_view::npos)
    return wrong({place.line, static_cast<int>(tab) + 1}, "a tab in the indentation; expected spaces");

  const OpenSigns signs{text, place};
  const auto& open = signs.open();
  if (message == "bad file")  // what the parser says of nesting beyond its own limit
    return wrong(signs.too_deep().value_or(place),
                 fmt::format("nested too deeply; expected at most {} levels", kDeepestYaml));
  if (open.empty()) return wrong(place, message);
  const auto [sign, opened] = open.back();
  const std::size_t column = static_cast<std::size_t>(std::max(1, place.column)) - 1;
  if (const char closing = column < line.size() ? line[column] : ' ';
      message == "illegal flow end" && (closing == ']' || closing == '}'))
    return wrong(place,
                 fmt::format("'{}' where the '{}' of line {} is to be closed", closing, sign, opened.line));
  return wrong(opened, fmt::format("'{}' is not closed", sign));
}

}  // namespace abl::sweeps
