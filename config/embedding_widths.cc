// SPDX-License-Identifier: Apache-2.0
#include "config/embedding_widths.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace abl::config {
namespace {

std::size_t hidden_layers(const EmbeddingConfig& embedding) {
  return static_cast<std::size_t>(embedding.layers - 1);
}

}  // namespace

std::vector<int> hidden_widths(const EmbeddingConfig& embedding) {
  if (!embedding.widths.empty()) return embedding.widths;
  return std::vector<int>(hidden_layers(embedding), embedding.width);
}

void check_widths(const EmbeddingConfig& embedding, const std::string& path, std::vector<Problem>& problems) {
  const auto expected = hidden_layers(embedding), given = embedding.widths.size();
  if (expected == 0) return;
  if (embedding.width == 0 && given == 0) {
    problems.push_back({path + ".width",
                        fmt::format("missing; expected the width of the hidden layers, at least 1, for an "
                                    "embedding of {} layers",
                                    embedding.layers),
                        {}});
  } else if (embedding.width != 0 && given != 0) {
    problems.push_back({path + ".widths",
                        fmt::format("given beside width {}; expected one of the two", embedding.width),
                        {}});
  } else if (given != 0 && given != expected) {
    problems.push_back(
        {path + ".widths",
         fmt::format("{} entries for an embedding of {} layers; expected one for each of its {} "
                     "hidden layers",
                     given, embedding.layers, expected),
         {}});
  }
}

void settle_widths(EmbeddingConfig& embedding) {
  auto& widths = embedding.widths;
  if (widths.empty() || embedding.width != 0 || widths.size() != hidden_layers(embedding)) return;
  if (std::ranges::adjacent_find(widths, std::not_equal_to{}) != widths.end()) return;
  embedding.width = widths.front();
  widths.clear();
}

}  // namespace abl::config
