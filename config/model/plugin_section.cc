// SPDX-License-Identifier: Apache-2.0
#include "config/model/plugin_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/field_table.h"
#include "config/model/family.h"

namespace abl::config {
namespace {

constexpr std::size_t kMostOptions = 64, kLongestText = 256;
constexpr std::string_view kOptionLetters = "abcdefghijklmnopqrstuvwxyz0123456789_-";

const std::vector<Field<PluginConfig>>& plugin_fields() {
  using P = PluginConfig;
  static const std::vector<Field<P>> kFields{
      {.name = "name",
       .member = &P::name,
       .sentence = "Name of the plugin's file; each worker says where it lies (--plugin NAME=FILE).",
       .required = true},
      {.name = "sha256",
       .member = &P::sha256,
       .sentence = "SHA-256 of that file, as `ablate plugin FILE` prints it: a plugin that was changed makes "
                   "other trials.",
       .form = wrong_sha256,
       .required = true},
  };
  return kFields;
}

bool is_simple(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().size() <= kLongestText;
  return value.is_boolean() || (value.is_number() && std::isfinite(value.get<double>()));
}

std::string read_options(const Json& options, std::vector<Problem>& problems) {
  const std::string path = "model.plugin.options";
  const std::size_t before = problems.size();
  if (!expect_mapping(options, path, problems)) return PluginConfig{}.options;
  if (options.size() > kMostOptions)
    problems.push_back({path, fmt::format("{} keys; expected at most {}", options.size(), kMostOptions), {}});
  for (const auto& [key, value] : options.items()) {
    if (key.empty() || key.find_first_not_of(kOptionLetters) != std::string::npos)
      problems.push_back(
          {fmt::format("{}.{}", path, key), "expected a key of small letters, digits, '_' and '-'", {}});
    else if (!is_simple(value))
      problems.push_back(
          {fmt::format("{}.{}", path, key),
           fmt::format("expected a text of at most {} bytes, a number, true or false; got {}", kLongestText,
                       value.dump(-1, ' ', false, Json::error_handler_t::replace)),
           {}});
  }
  return problems.size() == before ? canonical_json(options) : PluginConfig{}.options;
}

}  // namespace

std::vector<std::string> families_with_plugins() {
  std::vector<std::string> names;
  for (const Family* family : families())
    if (family->plugin != PluginPart::kNone) names.emplace_back(family->name);
  return names;
}

PluginConfig read_plugin(const Json& section, std::vector<Problem>& problems) {
  PluginConfig plugin;
  const std::string path = "model.plugin";
  if (!expect_mapping(section, path, problems)) return plugin;
  auto known = names(plugin_fields());
  known.emplace_back("options");
  expect_keys(section, path, known, problems);
  read_fields(section, path, plugin_fields(), plugin, problems);
  expect_required(plugin_fields(), plugin, path, ", as 'ablate plugin FILE' prints it", section, problems);
  if (const std::string* digest = text_at(section, "sha256"); digest && digest->empty())
    problems.push_back({path + ".sha256", wrong_sha256("?"), {}});
  if (const auto options = section.find("options"); options != section.end())
    plugin.options = read_options(*options, problems);
  return plugin;
}

Json plugin_document(const PluginConfig& plugin) {
  if (plugin.name.empty()) return nullptr;
  Json document = canonical_section(plugin_fields(), plugin);
  if (Json options = Json::parse(plugin.options); !options.empty()) document["options"] = std::move(options);
  return document;
}

Json plugin_schema() {
  Json properties = Json::object();
  for (const auto& field : plugin_fields())
    properties[field.name] = {{"type", "string"}, {"description", field.sentence}};
  properties["options"] = {{"type", "object"},
                           {"description", "The plugin's own keys, and their values."},
                           {"additionalProperties", {{"type", Json::array({"string", "number", "boolean"})}}},
                           {"maxProperties", kMostOptions}};
  return {{"type", "object"},
          {"description",
           fmt::format("Code of yours in the model: docs/plugins.md. ({})", all_of(families_with_plugins()))},
          {"x-families", families_with_plugins()},
          {"additionalProperties", false},
          {"required", Json::array({"name", "sha256"})},
          {"properties", properties}};
}

std::string plugin_text() {
  std::string rows;
  for (const auto& field : plugin_fields())
    rows += fmt::format("| `{}` | text | required | {} |\n", field.name, field.sentence);
  return fmt::format(R"(## model.plugin

Code of your own, [built as a plugin](plugins.md): the attention of a `vit`, or a whole model of the family `plugin`.

| key | value | default | meaning |
|---|---|---|---|
{}| `options` | mapping | none | The plugin's own keys; the trainer judges them by what the plugin declares. |

)",
                     rows);
}

}  // namespace abl::config
