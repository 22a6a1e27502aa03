// SPDX-License-Identifier: Apache-2.0
#include "config/reference.h"

#include "config/data_sets.h"
#include "config/fields.h"
#include "config/presets.h"
#include "config/recipes.h"

namespace abl::config {
namespace {

template <class Section>
Json schema_of(const std::vector<Field<Section>>& fields) {
  Json properties = Json::object();
  for (const auto& field : fields) {
    Json property{{"description", field.sentence}};
    if (field.member.index() == 2) {
      property["type"] = "string";
      if (!field.choices.empty()) property["enum"] = field.choices;
    } else {
      property["type"] = field.member.index() == 0 ? "integer" : "number";
      property[field.range.without_low ? "exclusiveMinimum" : "minimum"] = field.range.low;
      if (std::isfinite(field.range.high)) property["maximum"] = field.range.high;
    }
    if (!field.required && field.identity && !field.derived) property["default"] = field.get(Section{});
    properties[field.name] = property;
  }
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

Json attention_schema() {
  const Json one = schema_of(attention_fields());
  Json placed = one;
  placed["properties"]["layers"] = {
      {"type", Json::array({"string", "integer"})},
      {"description", "Layers, from 1, in which the keys beside it hold: 1-4,9, or none."}};
  placed["properties"]["elsewhere"] = one;
  placed["dependentRequired"] = {{"elsewhere", Json::array({"layers"})}};
  return {{"oneOf", Json::array({placed, {{"type", "array"}, {"items", one}}})}};
}

template <class Section>
std::string type_text(const Field<Section>& field) {
  if (field.member.index() != 2) return fmt::format("{}, {}", field.type(), field.range.text());
  std::string text;
  for (const std::string& choice : field.choices)
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", choice);
  return text.empty() ? "text" : text;
}

template <class Section>
std::string default_text(const Field<Section>& field) {
  if (field.required) return field.derived_text.empty() ? "required" : std::string{field.derived_text};
  if (!field.identity) return "";
  return field.derived ? std::string{field.derived_text}
                       : fmt::format("`{}`", plain_text(field.get(Section{})));
}

template <class Section>
std::string key_table(const std::vector<Field<Section>>& fields) {
  std::string text = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const auto& field : fields) {
    const std::string inert = field.inert ? fmt::format(" Without effect where {}.", field.inert_when) : "";
    text += fmt::format("| `{}` | {} | {} | {}{} |\n", field.name, type_text(field), default_text(field),
                        field.sentence, inert);
  }
  return text;
}

std::string preset_table() {
  std::string text =
      "| preset | dim | depth | heads | dim_head | mlp_dim | patch | |\n|---|---|---|---|---|---|---|---|\n";
  for (const Preset& p : presets()) {
    const int mlp_dim = p.mlp_dim > 0 ? p.mlp_dim : 4 * p.dim;
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", p.name, p.dim, p.depth, p.heads,
                        p.dim_head, mlp_dim, p.patch, p.sentence);
  }
  return text;
}

std::string data_table() {
  std::string text = "| name | classes | image_size | |\n|---|---|---|---|\n";
  for (const DataSet& set : data_sets()) {
    text += fmt::format("| `{}` | {} | {} | {}", set.name, set.classes, set.image_size, set.sentence);
    if (set.embedded)
      text += fmt::format("; {} images to train and {} to evaluate", set.train_images, set.val_images);
    text += " |\n";
  }
  return text;
}

std::string recipe_list() {
  std::string text;
  for (const Recipe& recipe : recipes()) {
    const Json settings = canonical_section(recipe_fields(), recipe.recipe);
    std::string keys;
    for (const auto& [key, value] : settings.items()) {
      keys += fmt::format("{}`{}: {}`", keys.empty() ? "" : ", ", key, plain_text(value));
    }
    text += fmt::format("- `{}`: {}. {}\n", recipe.recipe.use, recipe.sentence, keys);
  }
  return text;
}

}  // namespace

Json json_schema() {
  Json model = schema_of(model_fields());
  model["properties"]["attention"] = attention_schema();
  Json seed{{"type", "integer"}, {"minimum", kSeedRange.low}, {"maximum", kSeedRange.high}, {"default", 0}};
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "ablate trial"},
          {"type", "object"},
          {"additionalProperties", false},
          {"required", Json::array({"model", "data", "recipe"})},
          {"properties",
           {{"model", model},
            {"data", schema_of(data_fields())},
            {"recipe", schema_of(recipe_fields())},
            {"seed", seed}}}};
}

std::string reference_markdown() {
  return fmt::format(
      R"(# What a trial says

Written by `ablate`'s own field tables (`config/fields.cc`); a test keeps this page equal to them. These are the keys under `base:` of a
[sweep file](sweep-file.md) and, dotted, of its rows and factors. Keys that are equal to their default or without effect are no part of a
trial's identity; a preset or a recipe is the same as its settings written out.

## model

{}
### Presets

{}
## model.attention

{}| `layers` | text | all | Layers, from 1, in which the keys beside it hold: `1-4,9`, or `none`. |
| `elsewhere` | mapping | the original attention | The attention of the other layers, with the keys above; needs `layers`. |

Instead of one mapping `attention` may be a list with one for each layer. The papers' points: original = `dot` + `none`, MSF = `gaussian` +
`inside`, residual (eq. 14) = `gaussian` + `outside`, Gauss-Orig = `gaussian` + `none`. Refused: `outside` with a shared PROBE, and a shared
WEIGHT with more than one group.

## data

{}
### Known data sets

{}
## recipe

{}
### Recipes

{}
`msf-imagenet` takes `mixing_alpha: 0.1` for the sizes of ViT-Ti and ViT-SS, and `batch: 768`, `mixing_alpha: 0.5` for that of ViT-B.
)",
      key_table(model_fields()), preset_table(), key_table(attention_fields()), key_table(data_fields()),
      data_table(), key_table(recipe_fields()), recipe_list());
}

}  // namespace abl::config
