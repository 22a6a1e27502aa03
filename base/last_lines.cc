// SPDX-License-Identifier: Apache-2.0
#include "base/last_lines.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/utf8.h"

namespace abl {
namespace {

constexpr std::size_t kKeptBytes = 1000;
constexpr std::size_t kLines = 3;

}  // namespace

std::vector<std::string> last_lines(std::string_view text, std::size_t most) {
  std::vector<std::string> lines;
  while (lines.size() < most && !text.empty()) {
    const auto before = text.find_last_of("\n\r");
    const std::string_view last = before == std::string_view::npos ? text : text.substr(before + 1);
    text = text.substr(0, before == std::string_view::npos ? 0 : before);
    if (last.find_first_not_of(" \t") != std::string_view::npos) lines.push_back(valid_utf8(last));
  }
  std::ranges::reverse(lines);
  return lines;
}

void LastLines::add(std::string_view bytes) {
  tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kKeptBytes)));
  if (tail_.size() > kKeptBytes) tail_.erase(0, tail_.size() - kKeptBytes);
}

std::string LastLines::text() const { return fmt::format("{}", fmt::join(last_lines(tail_, kLines), " | ")); }

std::string first_line(std::string_view text, std::size_t longest) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  const std::string_view line = text.substr(begin, text.find_first_of("\r\n", begin) - begin);
  if (line.size() <= longest) return std::string{line};
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  return std::string{line.substr(0, end)} + "…";
}

}  // namespace abl
