// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"
#include "config/layer_entries.h"
#include "config/layer_shape.h"
#include "config/trial_config.h"
#include "config/trial_document.h"

namespace abl::config {

/// A section of a model that may differ from layer to layer: all that reading, canonical form, schema and
/// reference know of it. Beside the keys of its table it has `layers` and `elsewhere`.
template <class Layer>
struct LayerSection {
  std::string_view name;
  std::string_view sentence;
  std::vector<std::string> families;
  std::vector<Layer> ModelConfig::*member;
  const std::vector<Field<Layer>>& (*fields)();
  void (*settle)(Layer& layer);  ///< brings texts that mean the same into one form
  void (*check)(const Layer& layer, const LayerShape& shape, const std::string& path,
                std::vector<Problem>& problems);
};

const LayerSection<AttentionConfig>& attention_section();
const LayerSection<KeyConfig>& key_section();
const LayerSection<EmbeddingConfig>& embedding_section();
const LayerSection<BlockConfig>& block_section();

template <class Visit>
void for_each_layer_section(Visit visit) {
  visit(attention_section());
  visit(key_section());
  visit(embedding_section());
  visit(block_section());
}

/// Layers that mean the same become equal.
template <class Layer>
void normalise(const LayerSection<Layer>& section, Layer& layer) {
  section.settle(layer);
  reset_inert(section.fields(), layer);
}

/// Adds problems, but none of a key that has one already.
void add_new(const std::vector<Problem>& found, std::vector<Problem>& problems);

template <class Layer>
Layer read_layer(const LayerSection<Layer>& section, const LayerEntry& entry,
                 const std::vector<LayerShape>& shapes, std::vector<Problem>& problems) {
  Layer layer;
  if (!expect_mapping(entry.mapping, entry.path, problems)) return layer;
  std::vector<std::string> known = names(section.fields());
  if (entry.may_be_placed) known.insert(known.end(), {"layers", "elsewhere"});
  expect_keys(entry.mapping, entry.path, known, problems);
  read_fields(entry.mapping, entry.path, section.fields(), layer, problems);
  normalise(section, layer);
  std::vector<Problem> found;
  for (const LayerShape& shape : shapes) {
    if (found.empty()) section.check(layer, shape, entry.path, found);
  }
  add_new(found, problems);
  return layer;
}

/// Reads a section into one value for each layer of `model`, whose sizes are known. Appends what is wrong
/// with it, the shapes included.
template <class Layer>
std::vector<Layer> read_layers(const LayerSection<Layer>& section, const Json& written,
                               const ModelConfig& model, std::vector<Problem>& problems) {
  std::vector<Layer> layers(static_cast<std::size_t>(model.layers()));
  const std::string path = fmt::format("model.{}", section.name);
  for (const LayerEntry& entry : layer_entries(written, path, model.layers(), problems)) {
    const Layer layer = read_layer(section, entry, shapes_of(model, entry.holds), problems);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (entry.holds[i]) layers[i] = layer;
    }
  }
  return layers;
}

/// One mapping where all layers are equal, otherwise a list with one for each layer. `write` is
/// canonical_section or full_section.
template <class Layer>
Json write_layers(const LayerSection<Layer>& section, std::vector<Layer> layers,
                  Json (*write)(const std::vector<Field<Layer>>&, const Layer&)) {
  if (layers.empty()) return Json::object();
  for (Layer& layer : layers) normalise(section, layer);
  const bool all_equal = std::ranges::adjacent_find(layers, std::ranges::not_equal_to{}) == layers.end();
  if (all_equal) return write(section.fields(), layers.front());
  Json list = Json::array();
  for (const Layer& layer : layers) list.push_back(write(section.fields(), layer));
  return list;
}

}  // namespace abl::config
