// SPDX-License-Identifier: Apache-2.0
#include "config/layer_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace abl::config {
namespace {

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

struct Run {
  int first = 0, last = 0;
};

/// "4" or "1-4".
std::optional<Run> parse_run(const std::string& part) {
  const std::size_t dash = part.find('-');
  const auto first = whole_number(part.substr(0, dash));
  const auto last = dash == std::string::npos ? first : whole_number(part.substr(dash + 1));
  if (!first || !last || *first > *last) return {};
  return Run{*first, *last};
}

}  // namespace

std::optional<std::vector<bool>> parse_layers(const std::string& text, int count, std::string& message,
                                              std::string_view owner) {
  std::vector<bool> chosen(static_cast<std::size_t>(count), false);
  if (text == "none") return chosen;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    std::string part = text.substr(start, comma - start);
    std::erase(part, ' ');
    const auto run = parse_run(part);
    if (!run) {
      message = fmt::format(
          "'{}' names no layers; expected numbers and ranges from 1, such as 1-4,9, or none", text);
      return {};
    }
    if (run->first < 1 || (count > 0 && run->last > count)) {
      message = fmt::format("layers {} do not exist; {} has layers 1 to {}", part, owner, count);
      return {};
    }
    for (std::int64_t layer = run->first; layer <= run->last && layer <= count; ++layer)
      chosen[static_cast<std::size_t>(layer - 1)] = true;
    start = comma + 1;
  }
  return chosen;
}

std::string layers_text(const std::vector<bool>& chosen) {
  std::string text;
  for (std::size_t first = 0; first < chosen.size(); ++first) {
    if (!chosen[first]) continue;
    std::size_t last = first;
    while (last + 1 < chosen.size() && chosen[last + 1]) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first + 1);
    if (last > first) text += fmt::format("-{}", last + 1);
    first = last;
  }
  return text.empty() ? "none" : text;
}

std::vector<bool> shared_layers(const EmbeddingConfig& embedding) {
  std::string message;
  const auto shared = parse_layers(embedding.shared, embedding.layers, message);
  return shared.value_or(std::vector<bool>(static_cast<std::size_t>(embedding.layers), false));
}

}  // namespace abl::config
