// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/training/checked_tensors.h"
#include "worker/trainer/training/checkpoint.h"

namespace abl::commands {

Run declare_export(CLI::App& app) {
  struct Flags {
    std::filesystem::path weights, output;
    bool average = false, json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("--weights", flags->weights, "A checkpoint")->type_name("FILE")->required();
  app.add_option("--output", flags->output, "Output file (safetensors); overwritten")
      ->type_name("FILE")
      ->required();
  app.add_flag("--average", flags->average, "Use the checkpoint's running average instead of its weights");
  app.add_flag("--json", flags->json, "As JSON");
  app.footer("Example:\n  ablate-trainer export --weights run/best.safetensors --output model.safetensors\n");
  return [flags]() -> int {
    std::error_code missing;
    if (std::filesystem::equivalent(flags->weights, flags->output, missing))
      throw Error{Code::kInvalidArgument,
                  fmt::format("--output {} is the checkpoint itself: its optimiser and random state would be "
                              "lost; name another file",
                              flags->output.string())};
    auto weights = training::read_weights(flags->weights, flags->average);
    const auto count = weights.size();
    training::write_checked(flags->output, {.tensors = std::move(weights), .metadata = {}});
    if (flags->json)
      std::cout << nlohmann::json{{"file", flags->output.string()}, {"tensors", count}}.dump() << '\n';
    else
      std::cout << fmt::format("{}: {} tensors\n", flags->output.string(), count);
    return kExitOk;
  };
}

}  // namespace abl::commands
