// SPDX-License-Identifier: Apache-2.0
#include "cli/line_difference.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace abl::cli {
namespace {

using ablate::v1::LineHunk;
using ablate::v1::SweepDifference;

constexpr std::size_t kAround = 3;  // unchanged lines around what differs
constexpr std::size_t kMostCompared =
    1'000'000;                // pairs of lines of a stretch without lines that are there once
constexpr int kDeepest = 64;  // stretches within stretches

/// With their line feed, which the last may lack.
std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

/// Lines of both texts, equal ones as the same number.
using Numbers = std::vector<std::uint32_t>;
struct Match {
  std::size_t before = 0, after = 0;
};
struct Stretch {
  std::size_t before = 0, before_end = 0, after = 0, after_end = 0;
  int depth = 0;
};

class Matcher {
 public:
  Matcher(const Numbers& before, const Numbers& after) : before_{before}, after_{after} {}

  /// Which lines are the same, ascending.
  std::vector<Match> take() {
    std::vector<Stretch> open{{.before_end = before_.size(), .after_end = after_.size()}};
    while (!open.empty()) {
      Stretch at = open.back();
      open.pop_back();
      while (at.before < at.before_end && at.after < at.after_end && before_[at.before] == after_[at.after])
        matches_.push_back({at.before++, at.after++});
      while (at.before < at.before_end && at.after < at.after_end &&
             before_[at.before_end - 1] == after_[at.after_end - 1])
        matches_.push_back({--at.before_end, --at.after_end});
      if (at.before == at.before_end || at.after == at.after_end) continue;
      const auto anchors = at.depth < kDeepest ? anchors_of(at) : std::vector<Match>{};
      if (anchors.empty()) {
        compare_all(at);
        continue;
      }
      Stretch between{.before = at.before, .after = at.after, .depth = at.depth + 1};
      for (const Match& anchor : anchors) {
        between.before_end = anchor.before;
        between.after_end = anchor.after;
        open.push_back(between);
        matches_.push_back(anchor);
        between.before = anchor.before + 1;
        between.after = anchor.after + 1;
      }
      between.before_end = at.before_end;
      between.after_end = at.after_end;
      open.push_back(between);
    }
    std::ranges::sort(matches_, {}, &Match::before);
    return std::move(matches_);
  }

 private:
  /// Lines that both stretches have once, as many as stand in the same order.
  std::vector<Match> anchors_of(const Stretch& at) const {
    struct Seen {
      std::size_t before = 0, after = 0;
      int times_before = 0, times_after = 0;
    };
    std::unordered_map<std::uint32_t, Seen> seen;
    for (std::size_t i = at.before; i < at.before_end; ++i) {
      Seen& line = seen[before_[i]];
      line.before = i;
      ++line.times_before;
    }
    for (std::size_t i = at.after; i < at.after_end; ++i)
      if (const auto line = seen.find(after_[i]); line != seen.end()) {
        line->second.after = i;
        ++line->second.times_after;
      }
    std::vector<Match> once;
    for (const auto& [line, where] : seen)
      if (where.times_before == 1 && where.times_after == 1) once.push_back({where.before, where.after});
    std::ranges::sort(once, {}, &Match::before);
    return longest_ascending(once);
  }

  static std::vector<Match> longest_ascending(const std::vector<Match>& once) {
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> ends,
        previous(once.size(), kNone);  // ends: of sequences of each length, the lowest
    for (std::size_t i = 0; i < once.size(); ++i) {
      const auto place =
          std::ranges::lower_bound(ends, once[i].after, {}, [&](std::size_t end) { return once[end].after; });
      if (place != ends.begin()) previous[i] = *std::prev(place);
      if (place == ends.end())
        ends.push_back(i);
      else
        *place = i;
    }
    std::vector<Match> longest;
    for (std::size_t i = ends.empty() ? kNone : ends.back(); i != kNone; i = previous[i])
      longest.push_back(once[i]);
    std::ranges::reverse(longest);
    return longest;
  }

  /// The longest common subsequence, where that is cheap.
  void compare_all(const Stretch& at) {
    const std::size_t rows = at.before_end - at.before, columns = at.after_end - at.after;
    if (rows > kMostCompared / columns) return;
    const std::size_t width = columns + 1;
    std::vector<std::uint32_t> longest((rows + 1) * width);  // of what follows
    for (std::size_t i = rows; i-- > 0;)
      for (std::size_t j = columns; j-- > 0;)
        longest[i * width + j] = before_[at.before + i] == after_[at.after + j]
                                     ? longest[(i + 1) * width + j + 1] + 1
                                     : std::max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    for (std::size_t i = 0, j = 0; i < rows && j < columns;)
      if (before_[at.before + i] == after_[at.after + j])
        matches_.push_back({at.before + i++, at.after + j++});
      else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        ++i;
      else
        ++j;
  }

  const Numbers& before_;
  const Numbers& after_;
  std::vector<Match> matches_;
};

/// A line of the difference, and how many lines of both texts are before it.
struct Line {
  char sign = ' ';
  std::string_view text;
  std::size_t before = 0, after = 0;
};

std::vector<Line> merged(const std::vector<std::string_view>& before,
                         const std::vector<std::string_view>& after, std::vector<Match> matches) {
  std::vector<Line> lines;
  matches.push_back({before.size(), after.size()});
  std::size_t i = 0, j = 0;
  for (const Match& match : matches) {
    for (; i < match.before; ++i) lines.push_back({'-', before[i], i, j});
    for (; j < match.after; ++j) lines.push_back({'+', after[j], i, j});
    if (i < before.size()) lines.push_back({' ', before[i], i, j});
    ++i, ++j;
  }
  return lines;
}

void add_line(LineHunk& hunk, const Line& line) {
  if (hunk.lines().empty()) {
    hunk.set_before_line(static_cast<std::uint32_t>(line.before));
    hunk.set_after_line(static_cast<std::uint32_t>(line.after));
  }
  if (line.sign != '+') hunk.set_before_lines(hunk.before_lines() + 1);
  if (line.sign != '-') hunk.set_after_lines(hunk.after_lines() + 1);
  const bool ended = line.text.ends_with('\n');
  hunk.add_lines(line.sign + std::string{line.text.substr(0, line.text.size() - (ended ? 1 : 0))});
  if (!ended) hunk.add_lines("\\ No newline at end of file");
}

}  // namespace

SweepDifference line_difference(std::string_view before, std::string_view after) {
  const auto old_lines = split_lines(before), new_lines = split_lines(after);
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  const auto numbered = [&](const std::vector<std::string_view>& lines) {
    Numbers all;
    for (const std::string_view line : lines)
      all.push_back(numbers.try_emplace(line, static_cast<std::uint32_t>(numbers.size())).first->second);
    return all;
  };
  const Numbers old_numbers = numbered(old_lines), new_numbers = numbered(new_lines);
  const auto lines = merged(old_lines, new_lines, Matcher{old_numbers, new_numbers}.take());

  SweepDifference message;
  LineHunk* hunk = nullptr;
  std::size_t shown = 0;  // the first line that is in no hunk yet
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].sign == ' ') continue;
    if (lines[at].sign == '-')
      message.set_removed(message.removed() + 1);
    else
      message.set_added(message.added() + 1);
    const std::size_t begin = at - std::min(at, kAround);
    if (!hunk || begin > shown) {
      hunk = message.add_hunks();
      shown = std::max(shown, begin);
    }
    std::size_t end = at + 1;  // with what follows, up to the next change: that one looks further
    while (end < lines.size() && end <= at + kAround && lines[end].sign == ' ') ++end;
    for (; shown < end; ++shown) add_line(*hunk, lines[shown]);
  }
  for (LineHunk& each : *message.mutable_hunks()) {  // from 1, where there are lines
    if (each.before_lines() > 0) each.set_before_line(each.before_line() + 1);
    if (each.after_lines() > 0) each.set_after_line(each.after_line() + 1);
  }
  return message;
}

}  // namespace abl::cli
