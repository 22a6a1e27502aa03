// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "base/stop_on_signals.h"
#include "protocol/command_line.h"
#include "protocol/probe_results.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/probing.h"
#include "worker/trainer/commands/run_flags.h"
#include "worker/trainer/training/found_files.h"

namespace abl::commands {
namespace {

namespace fs = std::filesystem;
namespace flag = protocol::flag;

struct ProbeFlags {
  RunFlags run;
  std::string run_folder, weights;
  std::vector<std::string> images, names, settings;
  std::string out, data_fingerprint;
  bool average = false, json = false, list = false;
};

/// Which trial and weights, from a run's folder where one is given.
void find_run(ProbeFlags& flags) {
  if (!flags.run_folder.empty()) {
    const fs::path folder{flags.run_folder};
    if (flags.run.config_file.empty()) flags.run.config_file = folder / "config.json";
    if (flags.weights.empty()) flags.weights = checkpoint_in(folder);
  }
  if (flags.run.config_file.empty() || flags.weights.empty())
    throw Error{Code::kInvalidArgument, "expected --run FOLDER, or --config FILE with --weights FILE"};
}

nlohmann::ordered_json values_of(const protocol::ProbeDeclaration& probe) {
  auto values = nlohmann::ordered_json::array();
  for (const auto& value : probe.values)
    values.push_back({{"name", fmt::format("{}{}", value.name, value.by_size ? "-SIZE" : "")},
                      {"unit", name_of(value.unit)},
                      {"better", name_of(value.better)}});
  return values;
}

int list(bool json) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& probe : protocol::probe_declarations()) {
    auto settings = nlohmann::ordered_json::array();
    for (const auto& setting : probe.settings)
      settings.push_back(
          {{"name", setting.name}, {"default", setting.fallback}, {"sentence", setting.sentence}});
    if (json) {
      all.push_back({{"name", probe.name},
                     {"sentence", probe.sentence},
                     {"source", probe.source},
                     {"needs", name_of(probe.needs)},
                     {"settings", settings},
                     {"values", values_of(probe)}});
      continue;
    }
    std::cout << fmt::format("{}\n  {} ({}).\n", probe.name, probe.sentence, probe.source);
    for (const auto& setting : probe.settings)
      std::cout << fmt::format("  {}={}  {}\n", setting.name, setting.fallback.dump(), setting.sentence);
    std::cout << fmt::format("  values: {}\n",
                             fmt::join(protocol::value_names(protocol::read_probe(probe.name)), ", "));
  }
  if (json) std::cout << all.dump() << '\n';
  return kExitOk;
}

int probe(ProbeFlags& flags) {
  if (flags.list) return list(flags.json);
  const auto requests = protocol::read_probes(flags.names, flags.settings);
  if (requests.empty())
    throw Error{Code::kInvalidArgument, "expected the name of a probe; --list shows them"};
  find_run(flags);
  flags.run.read();
  const auto& stop = stop_on_signals();
  if (!flags.out.empty()) make_folder(flags.out);
  const bool shows_progress = isatty(STDERR_FILENO) != 0;
  Probing probing{flags.run.options,
                  {.weights = flags.weights,
                   .average = flags.average,
                   .images = {flags.images.begin(), flags.images.end()},
                   .data_fingerprint = flags.data_fingerprint},
                  stop,
                  [&](const std::string& name, double part) {
                    if (shows_progress)
                      std::cerr << fmt::format("\r{} {:3.0f} %{}", name, 100 * part, part < 1 ? "" : "\n");
                  }};
  auto all = nlohmann::ordered_json::array();
  for (const auto& request : requests) {
    const auto result = flags.json ? probing.run_or_say(request, flags.out) : probing.run(request, flags.out);
    if (!flags.out.empty()) training::write_found(result, flags.out);
    if (flags.json)
      all.push_back(protocol::to_json(result));
    else
      std::cout << protocol::to_text(result);
  }
  if (flags.json) std::cout << nlohmann::ordered_json{{"probes", std::move(all)}}.dump() << '\n';
  return kExitOk;
}

}  // namespace

Run declare_probe(CLI::App& app) {
  auto flags = std::make_shared<ProbeFlags>();
  flags->run.declare(app);
  app.get_option(flag::kConfig)->required(false);
  app.add_option("probes", flags->names, "Which probes")->type_name("NAME");
  app.add_flag(flag::kList, flags->list, "List the probes, their settings and values");
  app.add_option("--run", flags->run_folder,
                 "A run's folder, in place of --config and --weights: its config.json and newest checkpoint")
      ->type_name("FOLDER");
  app.add_option(flag::kWeights, flags->weights, "A checkpoint, or a state of the model (safetensors)")
      ->type_name("FILE");
  app.add_option(flag::kDataFingerprint, flags->data_fingerprint, "Refuse data of another fingerprint")
      ->type_name("FINGERPRINT");
  app.add_flag(flag::kAverage, flags->average, "Use the checkpoint's running average instead of its weights");
  app.add_option(flag::kImage, flags->images,
                 "Look at this image (JPEG, PNG, WebP) instead of those of the evaluation, or at tensors "
                 "(safetensors): "
                 "'input' [B, 3, S, S], normalised; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option(flag::kWith, flags->settings,
                 "A probe's setting, such as accuracy-by-resolution.sizes=24,32,48; repeatable")
      ->type_name("PROBE.KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option(flag::kOut, flags->out, "Write what was found here: PROBE.json and pictures (PNG)")
      ->type_name("FOLDER");
  app.add_flag(flag::kJson, flags->json, "As JSON");
  app.footer(
      "Example:\n  ablate-trainer probe --run run feature-norms subspace-similarity\n"
      "  ablate-trainer probe --config trial.json --weights run/best.safetensors --data-root "
      "/data/imagenet --out found attention --with attention.joint=true\n");
  return [flags]() -> int { return probe(*flags); };
}

}  // namespace abl::commands
