// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/describe.h"

#include <fmt/format.h>

#include <istream>
#include <ostream>

#include "config/trial_document.h"
#include "models/counting/conventions.h"
#include "models/counting/memory.h"
#include "models/counting/parameters.h"
#include "worker/trainer/model_counts.h"
#include "worker/trainer/model_factory.h"
#include "worker/trainer/part_tree.h"

namespace abl::trainer {
namespace {

using config::Json;

std::vector<models::PartCount> parts_of(const models::ModelOptions& options) {
  return models::count_parts(*models::build(options, torch::kMeta), models::image_size(options));
}

models::StepMemory memory_of(const models::ModelOptions& options, std::int64_t batch,
                             const std::string& precision) {
  return models::predict_step_memory(
      [&](torch::Device device) { return models::build(options, device); },
      {.batch = batch,
       .image_size = models::image_size(options),
       .precision = precision == "fp32" ? models::Precision::kFloat : models::Precision::kBFloat16});
}

/// "name: message" for LibTorch's errors, without its backtrace.
std::string reason(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error))
    return torch_error->what_without_backtrace();
  return error.what();
}

Json parts_json(const std::vector<models::PartCount>& parts) {
  Json list = Json::array();
  for (const auto& part : parts) {
    Json entry(flops_of(part.work));
    entry.update({{"name", part.name},
                  {"type", part.type},
                  {"output", part.output},
                  {"params.all", part.params_all},
                  {"params.weights", part.params_weights},
                  {"flops.macs", part.work.macs}});  // as what it is, a whole number
    list.push_back(std::move(entry));
  }
  return list;
}

Json parameters_json(const torch::nn::Module& model) {
  Json list = Json::array();
  for (const auto& entry : models::list_parameters(model))
    list.push_back({{"name", entry.name},
                    {"shape", entry.shape},
                    {"elements", entry.elements},
                    {"weight", entry.is_weight}});
  return list;
}

Json memory_json(const models::StepMemory& memory, std::int64_t batch, const std::string& precision) {
  return {{"batch", batch},
          {"precision", precision},
          {"parameters", memory.parameters},
          {"gradients", memory.gradients},
          {"optimiser", memory.optimiser},
          {"activations", memory.activations},
          {"peak", memory.peak}};
}

std::string count_line(const std::string& mode, double count) {
  if (mode.starts_with("params.")) return fmt::format("{:<32} {:>10.2f} M\n", mode, count / 1e6);
  return fmt::format("{:<32} {:>10.2f} G\n", mode, count / 1e9);
}

/// Beside the plain count, where it is another number.
std::string convention_line(const models::Convention& convention,
                            const std::map<std::string, double>& counts) {
  const auto plain = fmt::format("flops.fvcore({})", convention.batch_norm);
  const auto mode = fmt::format("{}@{}", plain, convention.name);
  if (counts.at(mode) == counts.at(plain)) return {};
  auto line = count_line(mode, counts.at(mode));
  line.pop_back();
  return fmt::format("{}   {} Source: {}.\n", line, convention.meaning, convention.source);
}

std::string memory_text(const models::StepMemory& memory, std::int64_t batch, const std::string& precision) {
  const auto gib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
  return fmt::format(
      "training step of {} images in {}: {:.2f} GiB = parameters {:.2f} + gradients {:.2f} + AdamW {:.2f} + "
      "activations {:.2f}\n",
      batch, precision, gib(memory.peak), gib(memory.parameters), gib(memory.gradients),
      gib(memory.optimiser), gib(memory.activations));
}

}  // namespace

void describe_lines(std::istream& in, std::ostream& out) {
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    Json answer;
    try {
      const auto trial = config::read_model_or_throw(Json::parse(line));
      const auto options = model_options(trial.model, trial.data);
      answer["counts"] = counts_of(options, parts_of(options));
    } catch (const std::exception& error) {
      answer["error"] = reason(error);
    }
    out << answer.dump() << '\n' << std::flush;
  }
}

void describe_model(const config::TrialConfig& trial, const DescribeOptions& wanted, std::ostream& out) {
  const auto options = model_options(trial.model, trial.data);
  const auto parts = parts_of(options);
  const auto counts = counts_of(options, parts);
  const auto batch = wanted.batch > 0 ? wanted.batch : trial.recipe.batch;
  const auto memory = memory_of(options, batch, trial.recipe.precision);
  if (wanted.json) {
    const Json document{{"counts", counts},
                        {"memory", memory_json(memory, batch, trial.recipe.precision)},
                        {"parts", parts_json(parts)},
                        {"parameters", parameters_json(*models::build(options, torch::kMeta))}};
    out << document.dump(2) << '\n';
    return;
  }
  out << part_tree(parts, wanted.depth) << '\n';
  for (const auto& [mode, count] : counts)
    if (!mode.starts_with("memory.") && mode.find('@') == std::string::npos) out << count_line(mode, count);
  for (const auto& convention : models::conventions()) out << convention_line(convention, counts);
  out << '\n' << memory_text(memory, batch, trial.recipe.precision);
}

}  // namespace abl::trainer
