// SPDX-License-Identifier: Apache-2.0
#include "base/last_lines.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace abl {
namespace {

constexpr std::size_t kKeptBytes = 1000;
constexpr int kLines = 3;

}  // namespace

void LastLines::add(std::string_view bytes) {
  tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kKeptBytes)));
  if (tail_.size() > kKeptBytes) tail_.erase(0, tail_.size() - kKeptBytes);
}

std::string LastLines::text() const {
  std::string rest = valid_utf8(tail_), joined;
  for (int lines = 0; lines < kLines && !rest.empty();) {
    const auto before = rest.find_last_of("\n\r");
    const std::string last = before == std::string::npos ? rest : rest.substr(before + 1);
    rest.resize(before == std::string::npos ? 0 : before);
    if (last.find_first_not_of(" \t") == std::string::npos) continue;
    joined = joined.empty() ? last : last + " | " + joined;
    ++lines;
  }
  return joined;
}

}  // namespace abl
