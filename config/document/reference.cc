// SPDX-License-Identifier: Apache-2.0
#include "config/document/reference.h"

#include <algorithm>
#include <sstream>

#include "config/data/data_sets.h"
#include "config/model/family.h"
#include "config/model/layer_sections.h"
#include "config/model/model_section.h"
#include "config/model/plugin_section.h"
#include "config/recipe/recipes.h"
#include "config/task/task_section.h"
#include "config/tasks.h"

namespace abl::config {
namespace {

Json number_schema(Kind kind, const Range& range) {
  Json schema{{"type", kind == Kind::kNumber ? "number" : "integer"}};
  schema[range.without_low ? "exclusiveMinimum" : "minimum"] = range.low;
  if (std::isfinite(range.high)) schema["maximum"] = range.high;
  return schema;
}

Json value_schema(const Accepted& accepted) {
  switch (accepted.kind) {
    case Kind::kBool:
      return {{"type", "boolean"}};
    case Kind::kIntegerList:
    case Kind::kNumberList:
      return {{"type", "array"},
              {"items", number_schema(accepted.kind == Kind::kIntegerList ? Kind::kInteger : Kind::kNumber,
                                      accepted.range)},
              {"minItems", 1},
              {"maxItems", kMostEntries}};
    case Kind::kText:
    case Kind::kEnum:
      if (accepted.form) return {{"type", Json::array({"string", "integer"})}};
      return accepted.choices.empty() ? Json{{"type", "string"}}
                                      : Json{{"type", "string"}, {"enum", accepted.choices}};
    case Kind::kInteger:
    case Kind::kNumber:
      break;
  }
  return number_schema(accepted.kind, accepted.range);
}

template <class Section>
Json schema_of(const std::vector<Field<Section>>& fields) {
  Json properties = Json::object();
  for (const auto& field : fields) {
    Json property = value_schema(field.accepted());
    property["description"] = field.families.empty()
                                  ? field.sentence
                                  : fmt::format("{} ({})", field.sentence, all_of(field.families));
    if (!field.families.empty()) property["x-families"] = field.families;
    if (!field.required && field.identity && field.derived_text.empty())
      property["default"] = field.get(Section{});
    properties[field.name] = property;
  }
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

template <class Layer>
Json layers_schema(const LayerSection<Layer>& section) {
  const Json one = schema_of(section.fields());
  Json placed = one;
  placed["properties"]["layers"] = {
      {"type", Json::array({"string", "integer"})},
      {"description", "Layers, from 1, in which the keys beside it hold: 1-4,9, or none."}};
  placed["properties"]["elsewhere"] = one;
  placed["dependencies"] = {{"elsewhere", Json::array({"layers"})}};
  return {{"description", fmt::format("{} ({})", section.sentence, all_of(section.families()))},
          {"x-families", section.families()},
          {"oneOf", Json::array({placed, {{"type", "array"}, {"items", one}}})}};
}

}  // namespace

Json json_schema() {
  Json model = schema_of(model_fields());
  for_each_layer_section(
      [&](const auto& section) { model["properties"][section.name] = layers_schema(section); });
  model["properties"][kPluginSection] = plugin_schema();
  Json seed{{"type", "integer"}, {"minimum", kSeedRange.low}, {"maximum", kSeedRange.high}, {"default", 0}};
  return {{"$schema", "http://json-schema.org/draft-07/schema#"},
          {"title", "ablate trial"},
          {"type", "object"},
          {"additionalProperties", false},
          {"required", Json::array({"model", "data", "recipe"})},
          {"properties",
           {{"model", model},
            {"data", schema_of(data_fields())},
            {"task", schema_of(task_fields())},
            {"recipe", schema_of(recipe_fields())},
            {"seed", seed}}}};
}

namespace {

std::string code_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

template <class Section>
std::string type_text(const Field<Section>& field) {
  const auto& choices = field.accepted().choices;
  switch (field.kind()) {
    case Kind::kBool:
      return "`true`, `false`";
    case Kind::kIntegerList:
    case Kind::kNumberList:
      return fmt::format("{}, each {}", name_of(field.kind()), field.range.text());
    case Kind::kText:
    case Kind::kEnum:
      if (choices.size() > 20) return "a preset's name";
      return choices.empty() ? "text" : code_list(choices);
    case Kind::kInteger:
    case Kind::kNumber:
      break;
  }
  return fmt::format("{}, {}", name_of(field.kind()), field.range.text());
}

template <class Section>
std::string default_text(const Field<Section>& field) {
  if (!field.derived_text.empty()) return std::string{field.derived_text};
  if (field.required) return "required";
  return field.identity ? fmt::format("`{}`", plain_text(field.get(Section{}))) : "";
}

template <class Section>
std::string key_table(const std::vector<Field<Section>>& fields) {
  const bool by_family =
      std::ranges::any_of(fields, [](const auto& field) { return !field.families.empty(); });
  std::string text = fmt::format("| key | value | default | {}meaning |\n|---|---|---|{}---|\n",
                                 by_family ? "families | " : "", by_family ? "---|" : "");
  for (const auto& field : fields) {
    const std::string inert = field.inert ? fmt::format(" Without effect where {}.", field.inert_when) : "";
    const std::string families = field.families.empty() ? "all" : code_list(field.families);
    text += fmt::format("| `{}` | {} | {} | {}{}{} |\n", field.name,
                        field.name == "preset" ? "a name below" : type_text(field), default_text(field),
                        by_family ? families + " | " : "", field.sentence, inert);
  }
  return text;
}

/// What the tables do not say of a layer section.
constexpr std::string_view kAttentionNote =
    R"(The papers' points: original = `dot` + `none`, MSF = `gaussian` + `inside`, residual (eq. 14) = `gaussian` +
`outside`, Gauss-Orig = `gaussian` + `none`. Refused: `outside` with a shared PROBE, and a shared WEIGHT with
more than one group.

)";
constexpr std::string_view kKeyNote =
    R"(A layer of Swin has a key or an attention of its own, not both. Refused: broadcasting with simplek.

)";
constexpr std::string_view kEmbeddingNote =
    R"(Without effect in blocks whose attention is none. Blocks that use the codes of the model have one `code_size`
and `code_deviation`.

)";

template <class Layer>
std::string layer_section_text(const LayerSection<Layer>& section, std::string_view note) {
  return fmt::format(R"(## model.{}

{} For {}. Layers count from 1{}. Instead of one mapping there may be a list with one for each layer.

{}| `layers` | text | all | Layers, from 1, in which the keys beside it hold: `1-4,9`, or `none`. |
| `elsewhere` | mapping | all defaults | What holds in the other layers, with the keys above; needs `layers`. |

{})",
                     section.name, section.sentence, code_list(section.families()),
                     is_for(section.families(), "swin") ? ", through all stages" : "",
                     key_table(section.fields()), note);
}

std::string family_table() {
  std::string text = "| family | |\n|---|---|\n";
  for (const Family* family : families())
    text += fmt::format("| `{}` | {} |\n", family->name, family->sentence);
  return text;
}

/// A column for each key of the family.
std::string preset_table(std::string_view family) {
  std::vector<std::string> keys = names(model_fields_of(std::string{family}));
  std::erase_if(keys, [](const std::string& key) { return key == "preset" || key == "family"; });
  std::string head, rule, rows;
  for (const std::string& key : keys) {
    head += fmt::format(" {} |", key);
    rule += "---|";
  }
  for (const Preset& preset : presets()) {
    if (preset.family != family) continue;
    std::vector<Problem> none;
    const Json values = full_model(read_model({{"preset", preset.name}}, none));
    rows += fmt::format("| `{}` |", preset.name);
    for (const std::string& key : keys) rows += fmt::format(" {} |", plain_text(values[key]));
    rows += fmt::format(" {} |\n", preset.sentence);
  }
  return fmt::format("#### {}\n\n| preset |{} |\n|---|{}---|\n{}\n", family, head, rule, rows);
}

std::string preset_tables() {
  std::string text;
  for (const Family* family : families())
    if (family->plugin != PluginPart::kModel) text += preset_table(family->name);
  return text;
}

std::string data_table() {
  std::string text = "| name | classes | image_size | |\n|---|---|---|---|\n";
  const auto classes = [](const DataSet& set) {
    return set.classes > 0 ? std::to_string(set.classes) : fmt::format("{} of pixels", set.labels);
  };
  for (const DataSet& set : data_sets()) {
    text += fmt::format(
        "| `{}` | {} | {} | {}", set.name, classes(set),
        set.any_size ? fmt::format("the preset's, or {}", set.image_size) : std::to_string(set.image_size),
        set.sentence);
    if (set.embedded)
      text += fmt::format("; {} images to train and {} to evaluate", set.train_images, set.val_images);
    text += " |\n";
  }
  return text;
}

std::string task_table() {
  std::string text = "| kind | metrics of an evaluation | |\n|---|---|---|\n";
  for (const Task& task : tasks()) {
    std::vector<std::string> metrics;
    for (const std::string_view metric : task.metrics) metrics.push_back(fmt::format("val/{}", metric));
    text += fmt::format("| `{}` | {} | {} |\n", name_of(task.kind), code_list(metrics), task.sentence);
  }
  return text;
}

std::string keys_of(const Json& settings) {
  std::string keys;
  for (const auto& [key, value] : settings.items())
    keys += fmt::format("{}`{}: {}`", keys.empty() ? "" : ", ", key, plain_text(value));
  return keys;
}

std::string recipe_list() {
  std::string text;
  for (const Recipe& recipe : recipes()) {
    text += fmt::format("- `{}`: {}. {}\n", recipe.name, recipe.sentence, keys_of(recipe.settings));
    for (const auto& [preset, settings] : recipe.by_model)
      text += fmt::format("  - `{}`: {}\n", preset, keys_of(settings));
  }
  return text;
}

/// Characters of a UTF-8 text.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

/// Markdown with its paragraphs and list entries in lines of at most 120 characters; a line of a table stays
/// whole.
std::string wrapped(const std::string& markdown) {
  constexpr std::size_t kWidth = 120;
  std::istringstream lines{markdown};
  std::string text;
  for (std::string line; std::getline(lines, line); text += '\n') {
    if (line.starts_with('|') || length_of(line) <= kWidth) {
      text += line;
      continue;
    }
    const std::size_t indent = line.find_first_not_of(" -");
    std::size_t column = indent;
    text += line.substr(0, indent);
    std::istringstream words{line.substr(indent)};
    for (std::string word; words >> word; column += length_of(word)) {
      if (column > indent && column + 1 + length_of(word) > kWidth) {
        text += '\n' + std::string(indent, ' ');
        column = indent;
      } else if (column > indent) {
        text += ' ';
        ++column;
      }
      text += word;
    }
  }
  return text;
}

}  // namespace

std::string reference_markdown() {
  const std::string layer_sections = layer_section_text(attention_section(), kAttentionNote) +
                                     layer_section_text(key_section(), kKeyNote) +
                                     layer_section_text(embedding_section(), kEmbeddingNote) +
                                     layer_section_text(block_section(), "") + plugin_text();
  return wrapped(fmt::format(
      R"(# Trial configuration reference

Generated from `ablate`'s field tables (`config/*/`); a test keeps this page in sync. These are the keys under `base:`
of a [sweep file](sweep-file.md) and, dotted, of its rows and factors. Keys equal to their default or without effect are
not part of a trial's identity; a preset or a recipe is equivalent to its settings written out. Using a key of another
family is an error.

## model

{}
### Families

{}
### Presets

{}{}## data

{}
### Known data sets

{}
## task

Without this section a trial classifies images. Keys of `recipe` that say nothing of a task are refused there.

{}
### Kinds

{}
## recipe

{}
### Recipes

One file each in `config/recipes`, which says where every number comes from. What stands below a recipe holds for
models of that size, whether the preset or its settings name it.

{})",
      key_table(model_fields()), family_table(), preset_tables(), layer_sections, key_table(data_fields()),
      data_table(), key_table(task_fields()), task_table(), key_table(recipe_fields()), recipe_list()));
}

}  // namespace abl::config
