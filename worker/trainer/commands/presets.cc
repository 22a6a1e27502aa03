// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/error.h"
#include "config/document/reference.h"
#include "worker/trainer/commands/commands.h"

namespace abl::commands {

Run declare_presets(CLI::App& app) {
  auto json = std::make_shared<bool>(false), schema = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "As JSON");
  app.add_flag("--schema", *schema,
               "Print the JSON Schema of a trial's document instead: every key with its values");
  app.footer("Example:\n  ablate-trainer presets\n");
  return [json, schema]() -> int {
    if (*schema) {
      std::cout << config::json_schema().dump(2) << '\n';
      return kExitOk;
    }
    auto list = config::Json::array();
    for (const auto& preset : config::presets()) {
      if (*json)
        list.push_back({{"name", preset.name},
                        {"family", preset.family},
                        {"image_size", preset.image_size},
                        {"meaning", preset.sentence}});
      else
        std::cout << fmt::format("{:<32} {:<14} {}\n", preset.name, preset.family, preset.sentence);
    }
    if (*json) std::cout << list.dump(2) << '\n';
    return kExitOk;
  };
}

}  // namespace abl::commands
