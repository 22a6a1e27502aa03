// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/commands.h"

namespace abl::trainer {

Run declare_data(CLI::App& app) {
  app.require_subcommand(1);
  auto* const check = app.add_subcommand("check", "Decode every image and list the damaged ones");
  auto* const pack = app.add_subcommand("pack", "Write a data set into one file that trainers share");
  auto* const format = app.add_subcommand("format", "Say what format a folder has, and decode nothing");
  return [check, pack, run_check = declare_data_check(*check), run_pack = declare_data_pack(*pack),
          run_format = declare_data_format(*format)]() -> int {
    if (*check) return run_check();
    return *pack ? run_pack() : run_format();
  };
}

}  // namespace abl::trainer
