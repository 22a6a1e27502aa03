// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/data/formats.h"

namespace abl::trainer {

Run declare_data_format(CLI::App& app) {
  struct Flags {
    std::string root;
    bool open = false, json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("--root", flags->root, "Folder of the data set, or a packed file")
      ->type_name("FOLDER")
      ->required();
  app.add_flag("--open", flags->open,
               "Open it as a training does: every file must be there; slow for a folder of many");
  app.add_flag("--json", flags->json, "One JSON object");
  app.footer(
      "Example:\n  ablate-trainer data format --root /data/imagenet\n\n"
      "Exit codes: 0 a known format; 2 none, no such folder, or with --open one that is not whole");
  return [flags]() -> int {
    const std::string format = flags->open
                                   ? open_stored(config::DataConfig{.name = flags->root}, flags->root).format
                                   : recognise(flags->root);
    std::cout << (flags->json ? nlohmann::json{{"root", flags->root}, {"format", format}}.dump(
                                    -1, ' ', false, nlohmann::json::error_handler_t::replace)
                              : format)
              << '\n';
    return kExitOk;
  };
}

}  // namespace abl::trainer
