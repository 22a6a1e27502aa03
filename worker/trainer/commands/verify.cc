// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/stop_on_signals.h"
#include "config/json.h"
#include "data/progress.h"
#include "protocol/command_line.h"
#include "protocol/metrics.h"
#include "protocol/number.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/rank_runs.h"
#include "worker/trainer/commands/run_flags.h"
#include "worker/trainer/training/checkpoint.h"
#include "worker/trainer/training/verification.h"

namespace abl::commands {

namespace flag = protocol::flag;

namespace {

using OrderedJson = nlohmann::ordered_json;

struct VerifyFlags {
  RunFlags run;
  std::filesystem::path to;
  std::string points;  ///< file with those that were stored
  bool json = false;
};

/// Compares what was measured again with {"20": {"train/loss": 1.5, "val/loss": "Infinity"}, …}.
void compare_points(const config::Json& stored, training::Verification& result) {
  for (const auto& [step, values] : result.points)
    for (const auto& [metric, value] : values) {
      const auto found = stored.find(std::to_string(step));
      if (protocol::tells_of_the_machine(metric) || found == stored.end() || !found->contains(metric))
        continue;
      ++result.compared;
      const double before = protocol::number_of(found->at(metric)).value_or(NAN);
      if (before != value && !(std::isnan(before) && std::isnan(value)))
        result.different.push_back({fmt::format("{} at step {}", metric, step), std::abs(before - value)});
    }
}

std::string as_json(const training::Verification& result) {
  OrderedJson different = OrderedJson::array(), points = OrderedJson::array();
  for (const auto& [name, largest] : result.different)
    different.push_back({{"name", name}, {"largest", protocol::json_number(largest)}});
  for (const auto& [step, values] : result.points) {
    OrderedJson metrics = OrderedJson::object();
    for (const auto& [name, value] : values) metrics[name] = protocol::json_number(value);
    points.push_back({{"step", step}, {"values", metrics}});
  }
  return OrderedJson{{"same", result.different.empty()},
                     {"from", result.from},
                     {"to", result.to},
                     {"compared", result.compared},
                     {"different", different},
                     {"other_machine", result.other_machine},
                     {"points", points}}
      .dump();
}

std::string as_text(const training::Verification& result) {
  constexpr std::size_t kShown = 8;
  auto text = fmt::format("steps {} to {}: ", result.from, result.to);
  if (result.different.empty())
    text += fmt::format("bit-identical ({} tensors, sums and points)\n", result.compared);
  else
    text +=
        fmt::format("{} of {} tensors, sums and points differ\n", result.different.size(), result.compared);
  for (std::size_t i = 0; i < result.different.size() && i < kShown; ++i)
    text += fmt::format("  {} by up to {:.3g}\n", result.different[i].name, result.different[i].largest);
  if (result.different.size() > kShown)
    text += fmt::format("  … and {} more\n", result.different.size() - kShown);
  if (!result.other_machine.empty() && !result.different.empty())
    text += fmt::format("the checkpoint was written elsewhere: {}\n", result.other_machine);
  return text;
}

/// With a bar of the steps.
training::Verification again(const training::TrainingOptions& run, const std::filesystem::path& to,
                             const training::TrainAgain& train) {
  std::optional<data::Progress> progress;
  std::int64_t shown =
      run.resume.empty() ? 0 : training::read_checkpoint(run.resume, {}, run.config_hash).step;
  return training::verify(run, to, train, [&](std::int64_t step, std::int64_t last) {
    if (!progress) progress.emplace(static_cast<std::uint64_t>(last - shown));
    progress->advance(static_cast<std::uint64_t>(step - std::exchange(shown, step)));
  });
}

}  // namespace

Run declare_verify(CLI::App& app) {
  auto flags = std::make_shared<VerifyFlags>();
  auto& options = flags->run.options;
  flags->run.declare(app);
  app.add_option(flag::kFrom, options.resume, "The earlier checkpoint [the start of the training]")
      ->type_name("FILE");
  app.add_option(flag::kTo, flags->to, "The later checkpoint of the same run")->type_name("FILE")->required();
  app.add_option(flag::kWeights, flags->run.weights,
                 "Safetensors file with the weights that the recipe calls NAME (repeatable)")
      ->type_name("NAME=FILE");
  app.add_option(flag::kPoints, flags->points, "JSON file {STEP: {METRIC: VALUE}} with expected values")
      ->type_name("FILE");
  app.add_flag(flag::kJson, flags->json, "As JSON, with the points that were measured");
  app.footer(
      "Example:\n  ablate-trainer verify --config trial.json --from run/checkpoint-300.safetensors --to "
      "run/checkpoint-400.safetensors\n\n"
      "It takes as many ranks as the run had, which share --threads.\n\n"
      "Exit codes: 0 bit-identical; 1 not bit-identical; 2 bad input; 3 a rank was lost, nothing was "
      "compared");
  return [flags]() -> int {
    const auto& stop = stop_on_signals();
    flags->run.read_trial();
    const auto& run = flags->run.options;
    const int ranks = training::read_checkpoint(flags->to, {}, run.config_hash).machine.ranks;
    check_gpus(flags->to, run.device, ranks);
    const auto train = ranks == 1 ? training::train_here(stop) : train_as_ranks(ranks, flags->run, stop);
    auto result = again(run, flags->to, train);
    if (!flags->points.empty()) compare_points(config::read_json(flags->points), result);
    std::cout << (flags->json ? as_json(result) + "\n" : as_text(result));
    return result.different.empty() ? kExitOk : kExitFailed;
  };
}

}  // namespace abl::commands
