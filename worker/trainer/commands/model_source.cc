// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/model_source.h"

#include <algorithm>

#include "config/json.h"
#include "config/model/family.h"
#include "worker/trainer/commands/settings.h"

namespace abl::commands {
namespace {

config::Json document_of(const std::string& preset) {
  config::Json document{{"model", {{"preset", preset}}}, {"data", {{"name", "imagenet-1k"}}}, {"seed", 0}};
  if (const auto* known = config::find_preset(preset)) document["data"]["image_size"] = known->image_size;
  return document;
}

/// The recipe of a document that has none: one that fits any task, or the usual one of classifiers.
const char* usual_recipe(config::Json document, const std::vector<std::string>& settings) {
  document["recipe"] = {{"use", "demo"}};
  change_settings(document, settings);
  const config::Json::json_pointer kind{"/task/kind"};
  return document.contains(kind) && document[kind] != "classify" ? "demo" : "msf-imagenet";
}

}  // namespace

void complete_model(config::Json& document, const std::vector<std::string>& settings) {
  if (!document.is_object()) return;
  if (!document.contains("recipe")) document["recipe"] = {{"use", usual_recipe(document, settings)}};
  const config::Json::json_pointer preset{"/model/preset"};
  const bool has_preset = document.contains(preset) && document[preset].is_string();
  const auto defaults = document_of(has_preset ? document[preset].get<std::string>() : std::string{});
  for (const auto& [key, value] : defaults.items())
    if (key != "model" && !document.contains(key)) document[key] = value;
}

CLI::Option_group* ModelSource::declare(CLI::App& app) {
  auto* group = app.add_option_group("source", "Which model");
  group->option_defaults()->group("Which model, one of");
  group->add_option("--preset", preset, "Model preset, at its own image size and with ImageNet's classes")
      ->type_name("NAME");
  group->add_option("--config", config_file, "A trial's JSON document")->type_name("FILE");
  group->require_option(1);
  declare_settings(app, settings);
  plugins.declare(app);
  return group;
}

config::TrialConfig ModelSource::trial() const {
  plugins.know();
  auto document = config_file.empty() ? document_of(preset) : config::read_json(config_file);
  complete_model(document, settings);
  const bool names_data = std::ranges::any_of(
      settings, [](const std::string& setting) { return setting.starts_with("data.name="); });
  if (config_file.empty() && names_data) document["data"].erase("image_size");  // the data set's own holds
  change_settings(document, settings);
  return config::read_trial_or_throw(document);
}

}  // namespace abl::commands
