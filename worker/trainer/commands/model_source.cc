// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/model_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "config/json_file.h"
#include "config/presets.h"

namespace abl::trainer {
namespace {

/// Sets "model.depth=6" in a document; a value that is not JSON is taken as text.
void set_key(config::Json& document, const std::string& assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("--set {}: expected key=value, such as model.depth=6", assignment)};
  std::string pointer = "/" + assignment.substr(0, equals);
  std::ranges::replace(pointer, '.', '/');
  if (assignment.substr(0, equals) == "model.preset" &&
      document.contains(config::Json::json_pointer{"/model/preset"}))
    throw Error{Code::kInvalidArgument, fmt::format("--set {}: the preset is given already", assignment)};
  auto value = config::Json::parse(assignment.substr(equals + 1), nullptr, false);
  try {
    document[config::Json::json_pointer{pointer}] =
        value.is_discarded() ? config::Json(assignment.substr(equals + 1)) : value;
  } catch (const config::Json::exception&) {
    throw Error{Code::kInvalidArgument, fmt::format("--set {}: '{}' lies in something that has no keys",
                                                    assignment, assignment.substr(0, equals))};
  }
}

config::Json document_of(const std::string& preset) {
  config::Json document{{"model", {{"preset", preset}}},
                        {"data", {{"name", "imagenet-1k"}}},
                        {"recipe", {{"use", "msf-imagenet"}}},
                        {"seed", 0}};
  if (const auto* known = config::find_preset(preset)) document["data"]["image_size"] = known->image_size;
  return document;
}

}  // namespace

void complete_model(config::Json& document) {
  if (!document.is_object()) return;
  const config::Json::json_pointer preset{"/model/preset"};
  const bool has_preset = document.contains(preset) && document[preset].is_string();
  const auto defaults = document_of(has_preset ? document[preset].get<std::string>() : std::string{});
  for (const auto& [key, value] : defaults.items())
    if (key != "model" && !document.contains(key)) document[key] = value;
}

CLI::Option_group* ModelSource::declare(CLI::App& app) {
  auto* group = app.add_option_group("source", "Which model");
  group->add_option("--preset", preset, "A model by name, at its own image size and with ImageNet's classes");
  group->add_option("--config", config_file, "A trial's JSON document");
  group->require_option(1);
  app.add_option("--set", settings, "key=value, over the preset or config (repeatable)");
  return group;
}

config::TrialConfig ModelSource::trial() const {
  auto document = config_file.empty() ? document_of(preset) : config::read_json(config_file);
  complete_model(document);
  const bool names_data = std::ranges::any_of(
      settings, [](const std::string& setting) { return setting.starts_with("data.name="); });
  if (config_file.empty() && names_data) document["data"].erase("image_size");  // the data set's own holds
  change(document);
  return config::read_trial_or_throw(document);
}

void ModelSource::change(config::Json& document) const {
  for (const auto& setting : settings) set_key(document, setting);
}

}  // namespace abl::trainer
