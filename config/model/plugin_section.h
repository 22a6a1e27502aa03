// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/json.h"
#include "config/trial_config.h"

/// `model.plugin`: {name: …, sha256: …, options: {key: value}}. Which keys a plugin has its file alone knows:
/// here they are names with simple values, and the trainer judges the rest.
namespace abl::config {

inline constexpr const char* kPluginSection = "plugin";

/// The families whose models take a plugin, or are one.
std::vector<std::string> families_with_plugins();

/// Appends all problems.
PluginConfig read_plugin(const Json& section, std::vector<Problem>& problems);

/// As `read_plugin` reads it, canonical; null without a plugin.
Json plugin_document(const PluginConfig& plugin);

Json plugin_schema();
/// Its part of the reference.
std::string plugin_text();

}  // namespace abl::config
