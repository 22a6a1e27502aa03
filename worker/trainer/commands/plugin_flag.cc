// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/plugin_flag.h"

#include "base/named_path.h"
#include "worker/trainer/tasks/plugins.h"

namespace abl::commands {

void PluginFlag::declare(CLI::App& app) {
  app.add_option(kPluginFlag.flag, given, "Location of a plugin that models name (model.plugin); repeatable")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
}

void PluginFlag::know() const { tasks::know_plugins(parse_named_paths(kPluginFlag, given)); }

}  // namespace abl::commands
