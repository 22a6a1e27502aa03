// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <istream>
#include <ostream>

#include "config/trial_document.h"
#include "models/counting.h"
#include "models/registry.h"
#include "worker/trainer/model_factory.h"

namespace abl::trainer {
namespace {

config::Json counts_json(const models::Counts& counts) {
  return {{"params.all", counts.params_all},
          {"params.weights", counts.params_weights},
          {"flops.macs", counts.macs},
          {"flops.msf", counts.flops_msf}};
}

/// "name: message" for LibTorch's errors, without its backtrace.
std::string reason(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error))
    return torch_error->what_without_backtrace();
  return error.what();
}

}  // namespace

void describe_lines(std::istream& in, std::ostream& out) {
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    config::Json answer;
    try {
      const auto trial = config::read_model_or_throw(config::Json::parse(line));
      answer["counts"] = counts_json(models::count(model_options(trial.model, trial.data)));
    } catch (const std::exception& error) {
      answer["error"] = reason(error);
    }
    out << answer.dump() << '\n' << std::flush;
  }
}

void describe_model(const config::TrialConfig& trial, bool json, std::ostream& out) {
  const auto options = model_options(trial.model, trial.data);
  const auto model = models::build(options, torch::kMeta);
  const auto counts = models::count(options);
  const auto parameters = models::list_parameters(*model);
  if (json) {
    config::Json document{{"counts", counts_json(counts)}, {"parameters", config::Json::array()}};
    for (const auto& entry : parameters)
      document["parameters"].push_back({{"name", entry.name},
                                        {"shape", entry.shape},
                                        {"elements", entry.elements},
                                        {"weight", entry.is_weight}});
    out << document.dump(2) << '\n';
    return;
  }
  for (const auto& entry : parameters)
    out << fmt::format("{:<36} {:>20} {:>12}{}\n", entry.name,
                       fmt::format("[{}]", fmt::join(entry.shape, ", ")), entry.elements,
                       entry.is_weight ? "  weight" : "");
  out << fmt::format(
      "\nparams.all     {:>10.2f} M   every trainable element\nparams.weights {:>10.2f} M   weight matrices "
      "alone\n"
      "flops.macs     {:>10.2f} G   multiply-adds of one image\nflops.msf      {:>10.2f} G   as the MSF "
      "paper counts\n",
      counts.params_all / 1e6, counts.params_weights / 1e6, counts.macs / 1e9, counts.flops_msf / 1e9);
}

}  // namespace abl::trainer
