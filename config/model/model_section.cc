// SPDX-License-Identifier: Apache-2.0
#include "config/model/model_section.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "config/model/family.h"
#include "config/model/layer_sections.h"
#include "config/model/plugin_section.h"

namespace abl::config {
namespace {

std::vector<Field<ModelConfig>> select(const std::string& family) {
  std::vector<Field<ModelConfig>> fields = model_fields();
  std::erase_if(fields, [&](const auto& field) { return !is_for(field.families, family); });
  return fields;
}

/// The keys that several families have.
const std::vector<Field<ModelConfig>>& shared_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "preset",
       .member = &M::preset,
       .sentence = "A model by name; the other keys change it.",
       .choices = preset_names(),
       .identity = false},
      {.name = "family", .member = &M::family, .sentence = "The backbone.", .choices = family_names()},
      {.name = "dim",
       .member = &M::dim,
       .sentence = "Width of the tokens, in Swin of the first stage's; of simple-vit a multiple of 4.",
       .range = {8, 65536},
       .required = true,
       .derived_text = "the preset's"},
      {.name = "depth",
       .member = &M::depth,
       .sentence = "Number of layers.",
       .range = {1, 1000},
       .required = true,
       .derived_text = "the preset's"},
      {.name = "heads",
       .member = &M::heads,
       .sentence = "Number of attention heads; divides `dim`, except where there is `dim_head`.",
       .range = {1, 1024},
       .required = true,
       .derived_text = "the preset's"},
      {.name = "mlp_dim",
       .member = &M::mlp_dim,
       .sentence = "Hidden width of the MLP.",
       .range = {1, 1e6},
       .derived = [](const M& m) { return Json(4 * m.dim); },
       .derived_text = "4 · dim"},
      {.name = "mlp_ratio",
       .member = &M::mlp_ratio,
       .sentence = "Hidden width of the MLP as a multiple of the layer's width.",
       .range = {1, 64}},
      {.name = "patch",
       .member = &M::patch,
       .sentence = "Side of a square patch, pixels; divides the image size.",
       .range = {1, 65536}},
      {.name = "stage_depths",
       .member = &M::stage_depths,
       .sentence = "Number of blocks in each stage.",
       .range = {1, 1000},
       .required = true,
       .derived_text = "the preset's"},
      {.name = "stage_heads",
       .member = &M::stage_heads,
       .sentence = "Number of attention heads in each stage; divides its width, which doubles from stage to "
                   "stage.",
       .range = {1, 1024},
       .required = true,
       .derived_text = "the preset's"},
      {.name = "stage_widths",
       .member = &M::stage_widths,
       .sentence = "Width of each stage; of a resnet that of its blocks before the fourfold output.",
       .range = {1, 65536},
       .derived =
           [](const M& m) {
             const auto usual = family_of(m).usual_widths;
             return Json(usual ? usual(m) : std::vector<int>{});
           },
       .derived_text = "of a resnet 64, doubling from stage to stage; of a regnet the preset's"},
      {.name = "window", .member = &M::window, .sentence = "Side of a window, tokens.", .range = {1, 1024}},
  };
  return kFields;
}

/// The shared keys and those of one family alone, in the order of the reference.
std::vector<Field<ModelConfig>> all_fields() {
  auto fields = shared_fields();
  const auto place_of = [&](std::string_view key) {
    const auto found = std::ranges::find(fields, key, &Field<ModelConfig>::name);
    if (found == fields.end()) throw Error{Code::kInternal, fmt::format("a family has no key '{}'", key)};
    return found;
  };
  for (const Family* family : families())
    for (const std::string_view key : family->keys) place_of(key)->families.emplace_back(family->name);
  for (const Family* family : families()) {
    if (!family->own_fields) continue;
    for (auto field : family->own_fields()) {
      field.families = {std::string{family->name}};
      fields.insert(field.after.empty() ? fields.end() : place_of(field.after) + 1, field);
    }
  }
  return fields;
}

}  // namespace

const std::vector<Field<ModelConfig>>& model_fields() {
  static const auto kFields = all_fields();
  return kFields;
}

const std::vector<Field<ModelConfig>>& model_fields_of(const std::string& family) {
  static const auto kByFamily = [] {
    std::map<std::string, std::vector<Field<ModelConfig>>> fields;
    for (const std::string& name : family_names()) fields[name] = select(name);
    return fields;
  }();
  const auto found = kByFamily.find(family);
  return found == kByFamily.end() ? model_fields() : found->second;
}

namespace {

/// Keys and layer sections, with the families that have them.
using KeyFamilies = std::vector<std::pair<std::string, std::vector<std::string>>>;

const KeyFamilies& all_keys() {
  static const KeyFamilies kKeys = [] {
    KeyFamilies keys;
    for (const auto& field : model_fields()) keys.emplace_back(field.name, field.families);
    for_each_layer_section([&](const auto& section) { keys.emplace_back(section.name, section.families()); });
    keys.emplace_back(kPluginSection, families_with_plugins());
    return keys;
  }();
  return kKeys;
}

std::vector<std::string> keys_of_family(const std::string& family) {
  std::vector<std::string> keys;
  for (const auto& [key, families] : all_keys()) {
    if (is_for(families, family)) keys.push_back(key);
  }
  return keys;
}

/// Whether `section` has `key`, or a misspelling of it.
bool is_meant(const Json& section, const std::string& key) {
  if (section.contains(key)) return true;
  const std::vector<std::string> known = keys_of_family("");
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
  expect_keys(unknown, "model", keys_of_family(family), problems);
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
    if (!is_for(layers.families(), family)) return;
    const Json written = section.value(layers.name, Json::object());
    model.*layers.member = read_layers(layers, written, model, problems);
  });
}

void read_plugin_of(const Family& family, const Json& section, ModelConfig& model,
                    std::vector<Problem>& problems) {
  const std::string path = fmt::format("model.{}", kPluginSection);
  if (const auto written = section.find(kPluginSection); written != section.end())
    model.plugin = read_plugin(*written, problems);
  else if (family.plugin == PluginPart::kModel && !is_misspelt(path, problems))
    problems.push_back(
        {path, "missing; expected {name: …, sha256: …}, as 'ablate plugin FILE' prints it", {}});
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
  const Family& built = family_of(model);
  if (built.plugin != PluginPart::kNone) read_plugin_of(built, section, model, problems);
  if (built.settle) built.settle(model);
  if (problems.size() == before && built.check_layers) built.check_layers(model, problems);
  return model;
}

namespace {

void add_plugin(const ModelConfig& model, Json& document) {
  if (Json plugin = plugin_document(model.plugin); !plugin.is_null())
    document[kPluginSection] = std::move(plugin);
}

}  // namespace

Json canonical_model(const ModelConfig& model) {
  Json document = canonical_section(model_fields_of(model.family), model);
  for_each_layer_section([&](const auto& section) {
    const Json layers = write_layers(section, model.*section.member, canonical_section);
    if (!layers.empty()) document[section.name] = layers;
  });
  add_plugin(model, document);
  return document;
}

Json full_model(const ModelConfig& model) {
  Json document = full_section(model_fields_of(model.family), model);
  for_each_layer_section([&](const auto& section) {
    if (is_for(section.families(), model.family))
      document[section.name] = write_layers(section, model.*section.member, full_section);
  });
  add_plugin(model, document);
  return document;
}

Json effective_model(const ModelConfig& model) {
  Json document = effective_section(model_fields_of(model.family), model);
  for_each_layer_section([&](const auto& section) {
    if (is_for(section.families(), model.family))
      document[section.name] = write_layers(section, model.*section.member, effective_section);
  });
  add_plugin(model, document);
  return document;
}

}  // namespace abl::config
