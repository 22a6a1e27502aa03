// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/run_flags.h"

#include <fmt/ranges.h>
#include <torch/cuda.h>

#include "base/command_line.h"
#include "base/error.h"
#include "base/named_path.h"
#include "base/nearest_name.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "config/recipe/recipes.h"
#include "protocol/command_line.h"
#include "worker/trainer/commands/settings.h"
#include "worker/trainer/device/failure.h"
#include "worker/trainer/device/gpu.h"

namespace abl::commands {

namespace flag = protocol::flag;

namespace {

/// A file that nothing takes is a name with a mistake.
void expect_named(const training::WeightFiles& files, const config::RecipeConfig& recipe) {
  const auto named = config::named_weights(recipe);
  std::vector<std::string> names;
  for (const auto& [name, sha256] : named) names.push_back(name);
  for (const auto& [name, file] : files)
    if (!named.contains(name))
      throw Error{Code::kInvalidArgument,
                  fmt::format("--weights {}=…: the recipe names {}{}", name,
                              names.empty() ? "no weights (recipe.start_weights, recipe.teacher_weights)"
                                            : fmt::format("{} alone", fmt::join(names, " and ")),
                              did_you_mean(name, names))};
}

/// The same of plugins.
void expect_plugin(const NamedPaths& files, const config::ModelConfig& model) {
  const std::string& wanted = model.plugin.name;
  for (const auto& [name, file] : files)
    if (name != wanted)
      throw Error{Code::kInvalidArgument,
                  fmt::format("{} {}=…: the model names {}", kPluginFlag.flag, name,
                              wanted.empty() ? "no plugin (model.plugin)" : fmt::format("{} alone", wanted))};
}

/// "cuda" or "cuda:N", N up to 99.
bool is_cuda_device(std::string_view device) {
  if (device == "cuda" || device == "cuda:0") return true;
  if (!device.starts_with("cuda:")) return false;
  device.remove_prefix(5);
  return !device.empty() && device.size() <= 2 && device.front() != '0' &&
         device.find_first_not_of("0123456789") == std::string_view::npos;
}

void expect_device(const std::string& device) {
  if (device != "cpu" && !is_cuda_device(device))
    throw Error{Code::kInvalidArgument, "--device " + device + ": expected cpu, cuda or cuda:N"};
}

}  // namespace

void RunFlags::declare(CLI::App& app) {
  app.add_option(flag::kConfig, config_file, "The trial's JSON document")->type_name("FILE")->required();
  declare_settings(app, settings);
  plugins.declare(app);
  app.add_option(flag::kDataRoot, options.data_root, "Folder of the data set")->type_name("FOLDER");
  app.add_option(flag::kThreads, options.threads, "Compute threads")
      ->check(whole_number(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--loader-threads", options.loader_threads, "Data loader threads (0: same as --threads)")
      ->check(whole_number(0, 1024))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(flag::kDevice, options.device, "cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str();
  app.add_flag(flag::kDeterministic, deterministic,
               "Deterministic GPU kernels: slower; CPUs are always deterministic")
      ->envname("ABLATE_DETERMINISTIC");
}

void RunFlags::read_trial() {
  options.weights = parse_named_paths(kWeightsFlag, weights);
  auto document = config::read_json(config_file);
  change_settings(document, settings);
  options.trial = config::read_trial_or_throw(document);
  expect_named(options.weights, options.trial.recipe);
  expect_plugin(parse_named_paths(kPluginFlag, plugins.given), options.trial.model);
  plugins.know();
  options.config_hash = config::config_hash(config::canonical_text(options.trial));
  expect_device(options.device);
  if (deterministic) device::compute_deterministically();
}

void RunFlags::read() {
  read_trial();
  if (options.device != "cpu" && !torch::cuda::is_available())
    throw device::MachineFault{Error{Code::kFailedPrecondition,
                                     "--device " + options.device +
                                         ": no GPU can be used here, or this PyTorch is built without CUDA"},
                               {.part = protocol::Fault::Part::kDevice}};
  const auto there = torch::cuda::device_count();
  if (const torch::Device device{options.device};
      device.has_index() && device.index() >= static_cast<int>(there))
    throw device::MachineFault{
        Error{Code::kFailedPrecondition,
              fmt::format("--device {}: {} can be used here, counted from cuda:0", options.device,
                          there == 1 ? "1 GPU" : fmt::format("{} GPUs", there))},
        {.part = protocol::Fault::Part::kDevice}};
}

std::vector<std::string> RunFlags::arguments() const {
  std::vector<std::string> arguments{flag::kConfig,      config_file,
                                     flag::kThreads,     std::to_string(options.threads),
                                     "--loader-threads", std::to_string(options.loader_threads),
                                     flag::kDevice,      options.device};
  if (!options.data_root.empty()) arguments.insert(arguments.end(), {flag::kDataRoot, options.data_root});
  for (const auto& named : weights) arguments.insert(arguments.end(), {flag::kWeights, named});
  for (const auto& named : plugins.given) arguments.insert(arguments.end(), {flag::kPlugin, named});
  for (const auto& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  if (deterministic) arguments.emplace_back(flag::kDeterministic);
  return arguments;
}

}  // namespace abl::commands
