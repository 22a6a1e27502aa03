// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/run_flags.h"

#include <regex>

#include "base/error.h"
#include "config/json_file.h"
#include "config/trial_document.h"
#include "worker/trainer/device/gpu.h"

namespace abl::trainer {
namespace {

WeightFiles weight_files(const std::vector<std::string>& flags) {
  WeightFiles files;
  for (const auto& flag : flags) {
    const auto cut = flag.find('=');
    if (cut == 0 || cut == std::string::npos || cut + 1 == flag.size())
      throw Error{Code::kInvalidArgument, "--weights " + flag + ": expected NAME=FILE"};
    if (!files.emplace(flag.substr(0, cut), flag.substr(cut + 1)).second)
      throw Error{Code::kInvalidArgument, "--weights " + flag + ": this name is given twice"};
  }
  return files;
}

void expect_device(const std::string& device) {
  if (device != "cpu" && !std::regex_match(device, std::regex{"cuda(:[0-9]{1,3})?"}))
    throw Error{Code::kInvalidArgument, "--device " + device + ": expected cpu, cuda or cuda:N"};
}

}  // namespace

void RunFlags::declare(CLI::App& app) {
  app.add_option("--config", config_file, "The trial's JSON document")->required();
  app.add_option("--data-root", options.data_root, "Folder of the data set");
  app.add_option("--threads", options.threads, "Threads for the products")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--loader-threads", options.loader_threads,
                 "Threads that prepare images; 0: as many as --threads")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_flag("--deterministic", deterministic,
               "On a GPU: the same sums in the same order every time, slower; a CPU always does so")
      ->envname("ABLATE_DETERMINISTIC");
}

void RunFlags::read_trial() {
  options.weights = weight_files(weights);
  options.trial = config::read_trial_or_throw(config::read_json(config_file));
  options.config_hash = config::config_hash(config::canonical_text(options.trial));
  expect_device(options.device);
  if (deterministic) compute_deterministically();
}

void RunFlags::read() {
  read_trial();
  if (options.device != "cpu" && !torch::cuda::is_available())
    throw Error{
        Code::kFailedPrecondition,
        "--device " + options.device + ": no GPU can be used here, or this PyTorch is built without CUDA"};
}

std::vector<std::string> RunFlags::arguments() const {
  std::vector<std::string> arguments{"--config",         config_file,
                                     "--threads",        std::to_string(options.threads),
                                     "--loader-threads", std::to_string(options.loader_threads),
                                     "--device",         options.device};
  if (!options.data_root.empty()) arguments.insert(arguments.end(), {"--data-root", options.data_root});
  for (const auto& named : weights) arguments.insert(arguments.end(), {"--weights", named});
  if (deterministic) arguments.emplace_back("--deterministic");
  return arguments;
}

}  // namespace abl::trainer
