// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/commands.h"

namespace abl::trainer {

Run declare_data(CLI::App& app) {
  app.require_subcommand(1);
  auto* const check = app.add_subcommand("check", "Decode every image and list the damaged ones");
  auto* const pack = app.add_subcommand("pack", "Write a data set into one file that trainers share");
  return [check, run_check = declare_data_check(*check), run_pack = declare_data_pack(*pack)]() -> int {
    return *check ? run_check() : run_pack();
  };
}

}  // namespace abl::trainer
