// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/log_patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/utf8.h"
#include "protocol/number.h"
#include "worker/metrics/watched_files.h"

namespace abl::metrics {
namespace {

constexpr std::size_t kLongestLine = 64 << 10;
constexpr char kEscape = '\x1b', kBell = '\x07';

/// Length of the command to a terminal that the text begins with (ECMA-48), which an escape leads.
std::size_t command_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {  // parameters and intermediates, then one of these
    std::size_t at = 2;
    while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3f) ++at;
    return std::min(at + 1, text.size());
  }
  if (text[1] == ']') {  // a title or a link, up to a bell or an escape and a backslash
    const std::size_t end = text.find_first_of(std::string{kBell, kEscape}, 2);
    if (end == std::string_view::npos) return 2;
    return text[end] == kBell ? end + 1 : std::min(end + 2, text.size());
  }
  return 2;
}

std::string without_commands(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == kEscape)
      at += command_length(line.substr(at));
    else
      plain += line[at++];
  }
  return plain;
}

/// Texts of a regular expression that stand in it as they are, two characters or more: what a line has of
/// them tells how near it is.
std::vector<std::string> pieces_of(std::string_view pattern) {
  std::vector<std::string> pieces;
  std::string piece;
  const auto end = [&] {
    if (piece.size() >= 2) pieces.push_back(piece);
    piece.clear();
  };
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\' && at + 1 < pattern.size()) {
      if (std::isalnum(static_cast<unsigned char>(pattern[++at])))
        end();  // a class, such as \d
      else
        piece += pattern[at];
    } else if (c == '[') {
      end();
      const std::size_t close = pattern.find(']', at + 2);  // the first may be a bracket itself
      at = std::min(close, pattern.size());
    } else if (c == '(') {
      end();
      if (pattern.substr(at).starts_with("(?"))
        at = std::min(pattern.find_first_of(">:)", at), pattern.size());
    } else if (c == '{') {
      end();
      at = std::min(pattern.find('}', at), pattern.size());
    } else if (c == '?' || c == '*') {  // the character before may be absent
      if (!piece.empty()) piece.pop_back();
      end();
    } else if (std::string_view{").|^$+"}.find(c) != std::string_view::npos) {
      end();
    } else {
      piece += c;
    }
  }
  end();
  return pieces;
}

bool has_ignoring_case(std::string_view line, std::string_view piece) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(line.begin(), line.end(), piece.begin(), piece.end(), same) != line.end();
}

}  // namespace

std::vector<std::string> TerminalLines::read(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\n\r\b");
    rest_ += bytes.substr(0, std::min(end, kLongestLine - std::min(kLongestLine, rest_.size())));
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    for (std::string& line : close()) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> TerminalLines::close() {
  std::string line = without_commands(rest_);
  rest_.clear();
  if (line.find_first_not_of(" \t") == std::string::npos) return {};
  return {std::move(line)};
}

std::string step_name(const protocol::MetricSource& source, const std::vector<std::string>& names) {
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  if (!source.step.empty()) return has(source.step) ? source.step : "";
  for (const std::string_view usual : protocol::kStepNames)
    if (has(usual)) return std::string{usual};
  return {};
}

LogPatterns::LogPatterns(const protocol::MetricSource& source, std::uint32_t counted)
    : source_{source}, counted_{counted} {
  for (const std::string& text : source.patterns) {
    Wanted wanted{.pattern = GroupPattern{text}, .places = {}, .pieces = pieces_of(text)};
    const std::string step = step_name(source, wanted.pattern.groups());
    wanted.has_step = !step.empty();
    for (const std::string& group : wanted.pattern.groups())
      wanted.places.push_back({group, group == step ? "" : protocol::metric_name(source, group)});
    wanted_.push_back(std::move(wanted));
  }
}

void LogPatterns::read(std::string_view line, LastStep& last, Found& found) {
  bool matched = false;
  for (const Wanted& wanted : wanted_) {
    if (!wanted.pattern.find(line, parts_)) continue;
    matched = true;
    take(wanted, line, last, found);
  }
  if (!matched && !found_any_) compare(line);
}

void LogPatterns::take(const Wanted& wanted, std::string_view line, LastStep& last, Found& found) {
  LastStep step;
  bool any = false;
  for (std::size_t i = 0; i < wanted.places.size(); ++i) {
    const Place& place = wanted.places[i];
    if (!place.metric.empty()) any = any || parts_[i].has_value();
    if (!place.metric.empty() || !parts_[i]) continue;
    step = protocol::logged_step(*parts_[i]);
    if (step) continue;
    const std::string problem = fmt::format("{}: '{}' is not a whole number", place.group,
                                            valid_utf8(parts_[i]->substr(0, kLongestShown)));
    if (missed_.empty()) missed_ = problem;
    return found.refuse(line, problem);
  }
  if (step) {
    step_ = last = step;
  } else if (any && source_.step == protocol::kCountedStep) {
    step = ++counted_;
  } else {
    step = source_.step == protocol::kLastStep ? last : step_;
  }
  if (!step) {  // what came before the first step has none
    if (any && missed_.empty()) missed_ = "no step was found before it";
    return;
  }
  say_before(*step, found);
  for (std::size_t i = 0; i < wanted.places.size(); ++i) {
    const Place& place = wanted.places[i];
    if (place.metric.empty() || !parts_[i]) continue;
    const auto value = protocol::logged_number(*parts_[i]);
    if (!value) {
      const std::string problem = fmt::format("{}: '{}' is not a number", place.group,
                                              valid_utf8(parts_[i]->substr(0, kLongestShown)));
      if (missed_.empty()) missed_ = problem;
      found.refuse(line, problem);
      continue;
    }
    found_any_ = true;
    found.seen(*step);
    if (source_.take == protocol::MetricSource::Take::kFirst) {
      found.point(place.metric, *step, *value);
      continue;
    }
    const auto [waits, is_new] = waiting_.try_emplace(place.metric, *step, *value);
    if (is_new) continue;
    // one of a later step waits where steps go back, as of a program that begins again
    if (waits->second.first != *step) found.point(place.metric, waits->second.first, waits->second.second);
    waits->second = {*step, *value};
  }
}

void LogPatterns::say_before(std::uint32_t step, Found& found) {
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const auto& [name, point] = *each;
    if (point.first >= step) {
      ++each;
      continue;
    }
    found.point(name, point.first, point.second);
    each = waiting_.erase(each);
  }
}

void LogPatterns::goes_on(const LastStep& last, Found& found) {
  if (last && source_.step == protocol::kLastStep) say_before(*last, found);
}

void LogPatterns::close(Found& found) {
  for (const auto& [name, point] : waiting_) found.point(name, point.first, point.second);
  waiting_.clear();
}

/// By how many of the pattern's own texts a line has, the longer the better, and that it has a digit at all.
void LogPatterns::compare(std::string_view line) {
  std::size_t nearness = std::ranges::any_of(line, [](unsigned char c) { return std::isdigit(c); }) ? 1 : 0;
  for (const Wanted& wanted : wanted_) {
    std::size_t sum = 0;
    for (const std::string& piece : wanted.pieces)
      if (has_ignoring_case(line, piece)) sum += 2 * piece.size();
    nearness = std::max(nearness, sum + nearness % 2);
  }
  if (nearness <= nearness_) return;
  nearness_ = nearness;
  nearest_ = valid_utf8(line.substr(0, kLongestShown));
}

std::string LogPatterns::lacking() const {
  const char* const where = source_.stream == protocol::MetricSource::Stream::kStdout   ? "its stdout"
                            : source_.stream == protocol::MetricSource::Stream::kStderr ? "its stderr"
                                                                                        : "its output";
  const bool one = source_.patterns.size() == 1;
  const std::string which = one ? fmt::format("the pattern '{}'", source_.patterns[0])
                                : fmt::format("each of the {} patterns", source_.patterns.size());
  if (!missed_.empty()) return fmt::format("{} found no number in {}: {}", which, where, missed_);
  const std::string why = fmt::format("{} matched no line of {}", which, where);
  if (nearest_.empty()) return why + ", which has no line that looks like it";
  return fmt::format("{}; the line that looks nearest: '{}'", why, nearest_);
}

}  // namespace abl::metrics
