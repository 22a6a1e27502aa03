// SPDX-License-Identifier: Apache-2.0
// The forms of a sweep file and the field tables of a trial as JSON Schema.
#include <algorithm>
#include <map>

#include "config/document/reference.h"
#include "protocol/metrics.h"
#include "sweeps/form.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

constexpr const char* kDraft = "http://json-schema.org/draft-07/schema#";
constexpr const char* kParam = "^params\\..+";
/// Keys that a command declares, or a plugin.
constexpr const char* kDeclared = "^(params|model\\.plugin\\.options)\\..+";

json reference(const std::string& name) { return {{"$ref", "#/definitions/" + name}}; }

/// Gives every section and key of a trial a definition of its own, by its dotted key. Returns: a reference to
/// that of `section`.
json define(json section, const std::string& path, std::map<std::string, json>& keys) {
  json& mapping = section.contains("oneOf") ? section["oneOf"][0] : section;
  if (mapping.contains("properties"))
    for (auto& [name, schema] : mapping["properties"].items())
      schema = define(schema, path + "." + name, keys);
  if (section.contains("oneOf"))  // a list has a mapping for each layer, such as that of the other layers
    section["oneOf"][1]["items"] = reference(path + ".elsewhere");
  keys.emplace(path, std::move(section));
  return reference(path);
}

json schema_of(const Form& form) {
  json properties = json::object(), needed = json::array();
  for (const Key& key : form.keys) {
    properties[std::string{key.name}] = key.schema;
    if (key.needed) needed.push_back(key.name);
  }
  json schema{{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
  if (!needed.empty()) schema["required"] = needed;
  schema.update(form.rules);
  return schema;
}

bool is_mapping(const json& schema) { return schema.contains("oneOf") || schema.contains("properties"); }

/// `set`, `factors` and the names of factors, of trials and of commands.
void define_settings(const std::map<std::string, json>& keys, json& definitions) {
  json set = json::object(), factors = json::object(), names = json::array();
  const json named{{"type", "object"},
                   {"description", "A level that is a mapping, or is to be called something else."},
                   {"additionalProperties", false},
                   {"required", {"label", "value"}}};
  for (const auto& [key, schema] : keys) {
    definitions[key] = schema;
    set[key] = reference(key);
    json level = named;
    level["properties"] = {{"label", {{"type", {"string", "number", "boolean"}}}}, {"value", reference(key)}};
    const json levels = is_mapping(schema) ? level : json{{"anyOf", {reference(key), level}}};
    factors[key] = {{"description", schema.value("description", "")},
                    {"type", "array"},
                    {"minItems", 1},
                    {"items", levels}};
    names.push_back(key);
  }
  definitions["settings"] = {{"type", "object"},
                             {"additionalProperties", false},
                             {"properties", set},
                             {"patternProperties", {{kDeclared, json::object()}}}};
  definitions["factors"] = {{"type", "object"},
                            {"additionalProperties", false},
                            {"minProperties", 1},
                            {"properties", factors},
                            {"patternProperties", {{kDeclared, {{"type", "array"}, {"minItems", 1}}}}}};
  definitions["key"] = {{"anyOf", {{{"enum", names}}, {{"type", "string"}, {"pattern", kDeclared}}}}};
  definitions["trial_key"] = {{"type", "string"}, {"pattern", "^(model|data|task|recipe)(\\.|$)"}};
  definitions["conditions"] = {{"type", "object"}, {"minProperties", 1}, {"propertyNames", reference("key")}};
}

/// Ranges of keys, for `tune` and `search`, beside those of a command's params.
void define_ranges(const std::map<std::string, json>& keys, json& definitions) {
  definitions["tuned"] = {
      {"description", "{min: 1e-4, max: 1e-2, log: true}, or a list of values."},
      {"anyOf", {reference("range"), {{"type", "array"}, {"minItems", 2}, {"uniqueItems", true}}}}};
  json& tune = definitions["tune"]["properties"];
  json& over = definitions["search"]["properties"]["over"]["properties"];
  for (const auto& [key, schema] : keys) {
    if (is_mapping(schema)) continue;
    json offered = reference("tuned");
    offered["description"] = schema.value("description", "");
    if (key.starts_with("recipe.")) tune[key] = offered;
    over[key] = std::move(offered);
  }
}

/// The schema with what it refers to, and what that is made of.
json definitions_of(json schema) {
  json trial = config::json_schema();
  trial.erase("$schema");
  trial.erase("title");
  trial.erase("required");
  trial["properties"].erase("seed");
  std::map<std::string, json> keys;
  for (auto& [name, section] : trial["properties"].items()) section = define(section, name, keys);
  json definitions = json::object();
  define_settings(keys, definitions);
  definitions["base"] = trial;
  for (const Part part : values_of<Part>())
    definitions[std::string{name_of(part)}] = schema_of(form_of(part));
  define_ranges(keys, definitions);
  json named = definitions[std::string{name_of(Part::kScale)}];  // its name stands before it
  for (const char* key : {"name", "from"}) named["properties"].erase(key);
  std::erase(named["required"].get_ref<json::array_t&>(), "name");
  definitions["named_scale"] = named;
  // those that are used
  json used = json::object();
  const auto visit = [&](const auto& self, const json& at) -> void {
    if (at.is_object() && at.contains("$ref") && at["$ref"].is_string()) {
      const std::string name = at["$ref"].get<std::string>().substr(sizeof("#/definitions/") - 1);
      if (!used.contains(name)) {
        used[name] = definitions.at(name);
        self(self, definitions.at(name));
      }
    }
    if (at.is_structured())
      for (const json& each : at) self(self, each);
  };
  visit(visit, schema);
  schema["definitions"] = used;
  schema["$schema"] = kDraft;
  return schema;
}

}  // namespace

json sweep_schema() {
  json schema = schema_of(form_of(Part::kSweep));
  schema["title"] = "ablate sweep";
  const auto names_of_keys = [](const json& rule) {
    return json{{"properties",
                 {{"rows", {{"items", {{"properties", {{"set", {{"propertyNames", rule}}}}}}}}},
                  {"factors", {{"propertyNames", rule}}}}}};
  };
  schema["if"] = {{"required", {"command"}}};
  schema["then"] = names_of_keys({{"pattern", kParam}});
  schema["then"]["properties"]["base"] = false;
  schema["then"]["properties"]["scale"] = false;
  schema["else"] = names_of_keys({{"not", {{"pattern", "^params"}}}});
  const auto of_columns = [](const char* key, const json& rule) {
    return json{{"properties", {{"columns", {{"items", {{"properties", {{key, rule}}}}}}}}}};
  };
  schema["then"]["properties"]["table"] = of_columns("count", false);
  schema["then"]["properties"]["table"]["required"] = {"columns"};
  schema["then"]["anyOf"] = {{{"required", {"table"}}}, {{"required", {"search"}}}};
  schema["else"]["properties"]["table"] =
      of_columns("metric", {{"enum", protocol::names(protocol::trainer_metrics())}});
  return definitions_of(std::move(schema));
}

json scales_schema() {
  json schema = schema_of(form_of(Part::kScales));
  schema["title"] = "ablate scales";
  return definitions_of(std::move(schema));
}

}  // namespace abl::sweeps
