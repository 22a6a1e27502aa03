// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/named_path.h"
#include "config/trial_config.h"
#include "models/plugins/plugged.h"

namespace abl::tasks {

/// Where the plugins lie that trials name, for the whole program: what is loaded belongs to it, not to one
/// trial. Called before a model is made. Files of names that are known keep their place unless they are given
/// anew.
void know_plugins(const NamedPaths& files);

/// The plugin of a model, loaded, with the values of its keys. Without one it has no file.
/// Throws: Error{kNotFound} where nobody said where it lies; what models::load_plugin throws;
/// Error{kInvalidArgument}, a line for each key of `model.plugin.options` that the plugin does not take, and
/// where it is not what the family needs.
models::PluginUse plugin_of(const config::ModelConfig& model);

/// Name -> SHA-256 of the plugin that a model is made with, by `plugin_key`; empty without one.
std::map<std::string, std::string> plugin_digests(const config::ModelConfig& model);

}  // namespace abl::tasks
