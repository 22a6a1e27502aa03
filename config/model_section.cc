// SPDX-License-Identifier: Apache-2.0
#include "config/model_section.h"

#include <algorithm>

#include "config/families.h"
#include "config/layer_rules.h"
#include "config/layer_sections.h"
#include "config/presets.h"

namespace abl::config {
namespace {

/// Keys and layer sections, with the families that have them.
using KeyFamilies = std::vector<std::pair<std::string, std::vector<std::string>>>;

const KeyFamilies& all_keys() {
  static const KeyFamilies kKeys = [] {
    KeyFamilies keys;
    for (const auto& field : model_fields()) keys.emplace_back(field.name, field.families);
    for_each_layer_section([&](const auto& section) { keys.emplace_back(section.name, section.families); });
    return keys;
  }();
  return kKeys;
}

std::vector<std::string> keys_of(const std::string& family) {
  std::vector<std::string> keys;
  for (const auto& [key, families] : all_keys()) {
    if (is_for(families, family)) keys.push_back(key);
  }
  return keys;
}

/// Whether `section` has `key`, or a misspelling of it.
bool is_meant(const Json& section, const std::string& key) {
  if (section.contains(key)) return true;
  const std::vector<std::string> known = keys_of("");
  for (const auto& [written, value] : section.items()) {
    if (std::ranges::find(known, written) == known.end() && nearest_name(written, known) == key) return true;
  }
  return false;
}

/// The family that is written, or else the preset's. Empty where one of them is meant but not known.
std::string family_of(const Json& section, const Preset* preset) {
  if (is_meant(section, "family")) {
    const std::string* written = text_at(section, "family");
    const std::vector<std::string> known = family_names();
    return written && std::ranges::find(known, *written) != known.end() ? *written : "";
  }
  if (preset) return std::string{preset->family};
  return is_meant(section, "preset") ? "" : ModelConfig{}.family;
}

/// A problem for each key that the family has not.
void expect_keys_of(const std::string& family, const Json& section, std::vector<Problem>& problems) {
  Json unknown = section;
  for (const auto& [key, families] : all_keys()) {
    if (!section.contains(key)) continue;
    unknown.erase(key);
    if (is_for(families, family)) continue;
    const std::string message = fmt::format("{} is a key of {}, not of {}", key, all_of(families), family);
    problems.push_back({"model." + key, message, {}});
  }
  expect_keys(unknown, "model", keys_of(family), problems);
}

/// Keys of other families keep their defaults, whatever a preset has set.
void reset_keys_of_others(ModelConfig& model) {
  for (const auto& field : model_fields()) {
    if (!is_for(field.families, model.family)) field.set(model, field.get(ModelConfig{}));
  }
}

void read_layer_sections(const Json& section, const std::string& family, ModelConfig& model,
                         std::vector<Problem>& problems) {
  for_each_layer_section([&](const auto& layers) {
    if (!is_for(layers.families, family)) return;
    const Json written = section.value(layers.name, Json::object());
    model.*layers.member = read_layers(layers, written, model, problems);
  });
}

/// Embeddings of attention that is not there have no effect.
void reset_unused_embeddings(ModelConfig& model) {
  for (std::size_t i = 0; i < std::min(model.block.size(), model.embedding.size()); ++i) {
    if (model.block[i].attention == "none") model.embedding[i] = EmbeddingConfig{};
  }
}

}  // namespace

ModelConfig read_model(const Json& section, std::vector<Problem>& problems) {
  if (section.is_null()) return {};
  const std::size_t before = problems.size();
  const std::string* name = text_at(section, "preset");
  const Preset* preset = name ? find_preset(*name) : nullptr;
  const std::string family = family_of(section, preset);
  ModelConfig model = preset ? model_of(*preset) : ModelConfig{};

  expect_keys_of(family, section, problems);
  read_fields(section, "model", model_fields_of(family), model, problems);
  reset_keys_of_others(model);
  if (!family.empty() && (preset || !is_meant(section, "preset"))) {
    expect_required(model_fields_of(family), model, "model", ", or a preset that sets it", section, problems);
  }
  read_layer_sections(section, family, model, problems);
  reset_unused_embeddings(model);
  if (problems.size() == before) check_layers(model, problems);
  return model;
}

Json canonical_model(const ModelConfig& model) {
  Json document = canonical_section(model_fields_of(model.family), model);
  for_each_layer_section([&](const auto& section) {
    const Json layers = write_layers(section, model.*section.member, canonical_section);
    if (!layers.empty()) document[section.name] = layers;
  });
  return document;
}

Json full_model(const ModelConfig& model) {
  Json document = full_section(model_fields_of(model.family), model);
  for_each_layer_section([&](const auto& section) {
    if (is_for(section.families, model.family))
      document[section.name] = write_layers(section, model.*section.member, full_section);
  });
  return document;
}

}  // namespace abl::config
