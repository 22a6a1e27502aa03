// SPDX-License-Identifier: Apache-2.0
#include "config/json_schema.h"

#include "config/families.h"
#include "config/layer_sections.h"

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
    case Kind::kTruth:
      return {{"type", "boolean"}};
    case Kind::kWholeList:
      return {{"type", "array"},
              {"items", number_schema(Kind::kWhole, accepted.range)},
              {"minItems", 1},
              {"maxItems", kMostEntries}};
    case Kind::kText:
      if (accepted.form) return {{"type", Json::array({"string", "integer"})}};
      return accepted.choices.empty() ? Json{{"type", "string"}}
                                      : Json{{"type", "string"}, {"enum", accepted.choices}};
    default:
      return number_schema(accepted.kind, accepted.range);
  }
}

template <class Section>
Json schema_of(const std::vector<Field<Section>>& fields) {
  Json properties = Json::object();
  for (const auto& field : fields) {
    Json property = value_schema(field.accepted());
    property["description"] = field.families.empty()
                                  ? field.sentence
                                  : fmt::format("{} ({})", field.sentence, all_of(field.families));
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
  placed["dependentRequired"] = {{"elsewhere", Json::array({"layers"})}};
  return {{"description", fmt::format("{} ({})", section.sentence, all_of(section.families))},
          {"oneOf", Json::array({placed, {{"type", "array"}, {"items", one}}})}};
}

}  // namespace

Json json_schema() {
  Json model = schema_of(model_fields());
  for_each_layer_section(
      [&](const auto& section) { model["properties"][section.name] = layers_schema(section); });
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

}  // namespace abl::config
