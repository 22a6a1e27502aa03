// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"

#include <algorithm>

#include "base/error.h"

namespace abl::config {

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> kFamilies = [] {
    std::vector<const Family*> all{family_files().begin(), family_files().end()};
    std::ranges::sort(all, {}, &Family::place);
    return all;
  }();
  return kFamilies;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family* family : families()) names.emplace_back(family->name);
  return names;
}

const Family& family_of(const ModelConfig& model) {
  const auto found = std::ranges::find(families(), model.family, &Family::name);
  if (found == families().end()) throw Error{Code::kInternal, "no family '" + model.family + "'"};
  return **found;
}

int layers_of(const ModelConfig& model) {
  const Family& family = family_of(model);
  return family.layers ? family.layers(model) : 0;
}

bool has_batch_norm(const ModelConfig& model) {
  const Family& family = family_of(model);
  return family.has_batch_norm && family.has_batch_norm(model);
}

bool is_for(const std::vector<std::string>& listed, const std::string& family) {
  return listed.empty() || family.empty() || std::ranges::find(listed, family) != listed.end();
}

std::vector<std::string> families_with_section(std::string_view section) {
  std::vector<std::string> names;
  for (const Family* family : families())
    if (std::ranges::find(family->sections, section) != family->sections.end())
      names.emplace_back(family->name);
  return names;
}

std::string all_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> kPresets = [] {
    std::vector<Preset> all;
    for (const Family* family : families())
      for (Preset& preset : family->presets()) {
        preset.family = family->name;
        all.push_back(std::move(preset));
      }
    return all;
  }();
  return kPresets;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  return names;
}

const Preset* find_preset(std::string_view name) {
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  return found == presets().end() ? nullptr : &*found;
}

ModelConfig model_of(const Preset& preset) {
  ModelConfig model = preset.sizes;
  model.preset = preset.name;
  model.family = preset.family;
  return model;
}

}  // namespace abl::config
