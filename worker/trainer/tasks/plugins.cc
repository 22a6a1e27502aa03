// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "config/json.h"
#include "config/model/family.h"

namespace abl::tasks {
namespace {

using models::PluginKey;
using models::PluginValue;

struct Known {
  std::mutex mutex;
  NamedPaths files;
};
Known& known() {
  static Known all;
  return all;
}

std::filesystem::path file_of(const std::string& name) {
  const std::lock_guard lock{known().mutex};
  const auto& files = known().files;
  if (const auto found = files.find(name); found != files.end()) return found->second;
  throw Error{Code::kNotFound, fmt::format("no file for the plugin {}: start the worker or trainer with {}",
                                           name, flag_of_file(plugin_key(name)))};
}

std::string range_of(const PluginKey& key) {
  std::string text;
  if (std::isfinite(key.low)) text += fmt::format(", at least {}", config::canonical_number(key.low));
  if (std::isfinite(key.high)) text += fmt::format(", at most {}", config::canonical_number(key.high));
  return text;
}

bool in_range(const PluginKey& key, double number) { return number >= key.low && number <= key.high; }

/// A value as the key's type. Returns: what was expected, where it is not; else empty.
struct Take {
  const PluginKey& key;
  const config::Json& value;
  PluginValue& taken;

  std::string operator()(bool) const {
    if (!value.is_boolean()) return "true or false";
    taken = value.get<bool>();
    return {};
  }
  std::string operator()(std::int64_t) const {
    const bool whole = value.is_number() && std::abs(value.get<double>()) <= 9007199254740992.0 &&
                       value.get<double>() == std::floor(value.get<double>());
    if (!whole || !in_range(key, value.get<double>())) return "a whole number" + range_of(key);
    taken = static_cast<std::int64_t>(value.get<double>());
    return {};
  }
  std::string operator()(double) const {
    if (!value.is_number() || !in_range(key, value.get<double>())) return "a number" + range_of(key);
    taken = value.get<double>();
    return {};
  }
  std::string operator()(const std::string&) const {
    const bool chosen =
        value.is_string() && (key.choices.empty() ||
                              std::ranges::find(key.choices, value.get<std::string>()) != key.choices.end());
    if (!chosen) return key.choices.empty() ? "a text" : any_of(key.choices);
    taken = value.get<std::string>();
    return {};
  }
};

models::PluginSettings settings_of(const models::PluginFile& file, const std::string& options) {
  std::map<std::string, PluginValue> values;
  std::vector<std::string> names;
  for (const PluginKey& key : file.plugin->keys) {
    values[key.name] = key.value;
    names.push_back(key.name);
  }
  std::string problems;
  const auto complain = [&](const std::string& key, const std::string& message) {
    problems += (problems.empty() ? "" : "\n") +
                printable_line(fmt::format("model.plugin.options.{}: {}", key, message));
  };
  const auto written = config::Json::parse(options);
  for (const auto& [name, value] : written.items()) {
    const auto& keys = file.plugin->keys;
    const auto key = std::ranges::find(keys, name, &PluginKey::name);
    if (key == keys.end()) {
      complain(name, fmt::format("the plugin {} has no such key; expected {}{}", file.name,
                                 names.empty() ? "none at all" : any_of(names), did_you_mean(name, names)));
      continue;
    }
    const std::string expected = std::visit(Take{*key, value, values[name]}, PluginValue{key->value});
    if (expected.empty()) continue;
    const std::string given = config::plain_text(value);
    complain(name, fmt::format("{}; expected {}{}", given, expected, did_you_mean(given, key->choices)));
  }
  if (!problems.empty()) throw Error{Code::kInvalidArgument, problems};
  return models::PluginSettings{std::move(values)};
}

std::shared_ptr<const models::PluginFile> loaded(const config::PluginConfig& plugin) {
  return models::load_plugin(plugin.name, file_of(plugin.name), plugin.sha256);
}

}  // namespace

void know_plugins(const NamedPaths& files) {
  const std::lock_guard lock{known().mutex};
  for (const auto& [name, file] : files) known().files.insert_or_assign(name, file);
}

models::PluginUse plugin_of(const config::ModelConfig& model) {
  if (model.plugin.name.empty()) return {};
  const auto file = loaded(model.plugin);
  const bool wants_model = config::family_of(model).plugin == config::PluginPart::kModel;
  if (wants_model != static_cast<bool>(file->plugin->model))
    throw Error{Code::kInvalidArgument,
                fmt::format("model.plugin: the plugin {} is {}, and model.family {} takes {}", file->name,
                            wants_model ? "an attention" : "a whole model", model.family,
                            wants_model ? "a whole model" : "an attention")};
  return {.file = file, .settings = settings_of(*file, model.plugin.options)};
}

std::map<std::string, std::string> plugin_digests(const config::ModelConfig& model) {
  if (model.plugin.name.empty()) return {};
  return {{plugin_key(model.plugin.name), loaded(model.plugin)->sha256}};
}

}  // namespace abl::tasks
