// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/field_table.h"
#include "config/json.h"
#include "config/model/family.h"
#include "config/trial_config.h"

namespace abl::config {

/// One mapping of a section that may differ from layer to layer, and the layers in which it holds.
struct LayerEntry {
  std::string path;
  Json mapping;
  std::vector<bool> holds;
  bool may_be_placed = false;  ///< `layers` and `elsewhere` may stand in it
};

/// Takes a section apart: one mapping for all `layers` of them, a mapping with `layers` and `elsewhere`, or a
/// list with one mapping for each layer. 0 layers are a number that is not known.
std::vector<LayerEntry> layer_entries(const Json& section, const std::string& path, int layers,
                                      std::vector<Problem>& problems);

/// "1-4,9" of `count` layers -> a flag for each; "none" -> no layer. Nothing, with a message, where it is not
/// such a text; `owner` is what has the layers. A count of 0 is one that is not known.
std::optional<std::vector<bool>> parse_layers(const std::string& text, int count, std::string& message,
                                              std::string_view owner = "the model");

/// The shortest text that `parse_layers` reads as these flags.
std::string layers_text(const std::vector<bool>& chosen);

/// The sizes of one attention layer; 0 where they are not known.
struct LayerShape {
  int dim = 0, heads = 0, dim_head = 0;
  bool operator==(const LayerShape&) const = default;
};

/// The different shapes of the layers that are `chosen`. One of unknown sizes where there are no such layers.
std::vector<LayerShape> shapes_of(const ModelConfig& model, const std::vector<bool>& chosen);

/// A section of a model that may differ from layer to layer; as a Field for one key, this stands for all that
/// is known of it. Beside the keys of its table it has `layers` and `elsewhere`.
template <class Layer>
struct LayerSection {
  std::string_view name;
  std::string_view sentence;
  std::vector<Layer> ModelConfig::*member;
  const std::vector<Field<Layer>>& (*fields)();
  void (*settle)(
      Layer& layer);  ///< brings what means the same into one form, once what has no effect is reset
  /// What has no meaning in one layer: groups that do not divide, sharing that contradicts the PROBE, charts
  /// that are not there, hidden layers without width. `path` is where it was written. Sizes that are not
  /// known are not checked.
  void (*check)(const Layer& layer, const LayerShape& shape, const std::string& path,
                std::vector<Problem>& problems) = nullptr;

  std::vector<std::string> families() const { return families_with_section(name); }
};

const LayerSection<models::AttentionChoice>& attention_section();
const LayerSection<models::KeyChoice>& key_section();
const LayerSection<EmbeddingSpelling>& embedding_section();  // config/families/xcit.cc
const LayerSection<models::XcitChoice>& block_section();

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
  reset_inert(section.fields(), layer);
  if (section.settle) section.settle(layer);
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
    if (section.check && found.empty()) section.check(layer, shape, entry.path, found);
  }
  add_new(found, problems);
  return layer;
}

/// Reads a section into one value for each layer of `model`, whose sizes are known. Appends what is wrong
/// with it, the shapes included.
template <class Layer>
std::vector<Layer> read_layers(const LayerSection<Layer>& section, const Json& written,
                               const ModelConfig& model, std::vector<Problem>& problems) {
  const int count = layers_of(model);
  std::vector<Layer> layers(static_cast<std::size_t>(count));
  const std::string path = fmt::format("model.{}", section.name);
  for (const LayerEntry& entry : layer_entries(written, path, count, problems)) {
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
