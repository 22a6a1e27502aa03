// SPDX-License-Identifier: Apache-2.0
#include "config/embedding_sharing.h"

#include <algorithm>

#include "config/layer_list.h"

namespace abl::config {

std::string shared_error(const std::string& shared) {
  std::string message;
  parse_layers(shared, kMostEmbeddingLayers, message, "an embedding");
  return message;
}

std::string shared_by_kind(const EmbeddingConfig& embedding) {
  std::vector<bool> shared(static_cast<std::size_t>(embedding.layers), embedding.kind == "f-sne");
  if (embedding.kind == "p-sne") shared.back() = true;
  return layers_text(shared);
}

bool shares_first_layer(const EmbeddingConfig& embedding) { return shared_layers(embedding).front(); }

void settle_sharing(EmbeddingConfig& embedding) {
  std::string message;
  const auto shared = parse_layers(embedding.shared, embedding.layers, message);
  if (embedding.kind == "linear" || !shared) return;
  embedding.shared = layers_text(*shared);
  const auto count = std::ranges::count(*shared, true);
  embedding.kind = count == 0 ? "sne" : count == embedding.layers ? "f-sne" : "p-sne";
}

}  // namespace abl::config
