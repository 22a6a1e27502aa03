// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "models/plugins/plugin.h"

namespace abl::models {

/// A plugin that is loaded. It stays so until the program ends: what it made may outlive who asked for it.
struct PluginFile {
  std::string name;  ///< by which trials know it
  std::string sha256;
  const Plugin* plugin = nullptr;
};

/// Loads a file, once for each name and content: see load_plugin_library, whose errors it throws.
/// Throws: Error{kInvalidArgument} for a plugin that offers nothing, or both a model and an attention.
std::shared_ptr<const PluginFile> load_plugin(const std::string& name, const std::filesystem::path& file,
                                              const std::string& sha256);

}  // namespace abl::models
