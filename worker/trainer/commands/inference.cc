// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/inference.h"

#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <map>

#include "base/error.h"
#include "data/file_source.h"
#include "models/backbones/model_options.h"
#include "models/layers/type_name.h"
#include "models/weights/safetensors.h"
#include "models/weights/state.h"
#include "probes/features.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/loader.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/training/checkpoint.h"
#include "worker/trainer/training/weight_files.h"

namespace abl::commands {
namespace {

using Tensors = std::map<std::string, torch::Tensor>;

/// Throws: Error{kInvalidArgument} unless the tensor is there, of that type and with so many dimensions.
torch::Tensor wanted(const Tensors& tensors, const std::string& name, torch::ScalarType type,
                     std::int64_t dimensions, const std::filesystem::path& file) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    throw Error{Code::kInvalidArgument, fmt::format("{}: no tensor '{}'", file.string(), name)};
  const auto& tensor = found->second;
  if (tensor.scalar_type() != type || tensor.dim() != dimensions)
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: '{}' is {} {}; expected {} with {} dimensions", file.string(), name,
                            models::type_name(tensor.scalar_type()),
                            fmt::format("[{}]", fmt::join(tensor.sizes(), ", ")), models::type_name(type),
                            dimensions)};
  return tensor;
}

torch::Tensor images(const Tensors& tensors, std::int64_t image_size, const std::filesystem::path& file) {
  const auto input = wanted(tensors, "input", torch::kFloat, 4, file);
  if (input.size(0) == 0 || input.size(1) != 3 || input.size(2) != image_size || input.size(3) != image_size)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{}: 'input' is [{}]; the model takes [B, 3, {}, {}] (data.image_size), B at least 1",
                    file.string(), fmt::join(input.sizes(), ", "), image_size, image_size)};
  if (!input.isfinite().all().item<bool>())
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: 'input' has values that are not finite", file.string())};
  return input;
}

/// What the input file holds; a photograph as `eval` would show it: resized, the centre, normalised.
Tensors given_in(const std::filesystem::path& file, const config::TrialConfig& trial) {
  if (!data::is_photograph(file)) {
    try {
      return models::read_safetensors(file).tensors;
    } catch (const Error& error) {
      if (error.code() == Code::kNotFound) throw;
      throw Error{
          error.code(),
          fmt::format("the input is not a JPEG, PNG or WebP file; read as safetensors: {}", error.what())};
    }
  }
  const auto photograph = data::open_photograph(file);
  const int size = trial.data.image_size;
  const auto batch = tasks::collate({0}, {.image_size = size}, [&](std::uint32_t index, std::size_t) {
    return data::centre_of(*photograph, index, trial.recipe, size);
  });
  return {{"input", tasks::BatchInput{torch::kCPU, trial.data}.images(batch)}};
}

void check_finite(const Tensors& weights, const std::filesystem::path& file) {
  for (const auto& [name, tensor] : weights)
    if (tensor.is_floating_point() && !tensor.isfinite().all().item<bool>())
      throw Error{Code::kInvalidArgument,
                  fmt::format("{}: '{}' has values that are not finite", file.string(), name)};
}

torch::Tensor targets(const Tensors& tensors, std::int64_t batch, std::int64_t classes,
                      const std::filesystem::path& file) {
  const auto target = wanted(tensors, "target", torch::kLong, 1, file);
  const bool fits = target.size(0) == batch && target.min().item<std::int64_t>() >= 0 &&
                    target.max().item<std::int64_t>() < classes;
  if (!fits)
    throw Error{Code::kInvalidArgument, fmt::format("{}: 'target' must hold {} classes from 0 to {}",
                                                    file.string(), batch, classes - 1)};
  return target;
}

void add_gradients(const torch::nn::Module& model, Tensors& output) {
  for (const auto& parameter : model.named_parameters())
    if (parameter.value().grad().defined())
      output.emplace("grad." + parameter.key(), parameter.value().grad().contiguous());
}

void add_buffers(const torch::nn::Module& model, Tensors& output) {
  const auto parameters = model.named_parameters();
  for (const auto& [name, tensor] : models::state_of(model))
    if (!parameters.contains(name)) output.emplace("train." + name, tensor);
}

models::LoadedWeights load(models::Classifier& model, const Tensors& weights, const InferOptions& options) {
  try {
    return training::fit_weights(model, weights, options.weights.string(), options.differ);
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument) throw;
    throw Error{
        error.code(),
        fmt::format("{} (--fresh-head, --resize-positions and --other-patch take weights of another class "
                    "count, image size or patch)",
                    error.what())};
  }
}

/// The output is replaced as a whole: nothing but a file may stand there, and not one that is read.
void check_output(const InferOptions& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(options.output, ignored)) return;
  if (!fs::is_regular_file(options.output, ignored))
    throw Error{Code::kInvalidArgument,
                fmt::format("--output {}: it exists and is not a regular file", options.output.string())};
  for (const auto& file : {options.input, options.weights})
    if (fs::equivalent(options.output, file, ignored))
      throw Error{Code::kInvalidArgument,
                  fmt::format("--output {}: it is the input", options.output.string())};
}

}  // namespace

torch::Tensor read_images(const std::filesystem::path& file, const config::TrialConfig& trial) {
  return images(given_in(file, trial), trial.data.image_size, file);
}

Inference infer(const config::TrialConfig& trial, const InferOptions& options) {
  tasks::expect_classifies(trial, "infer");
  if (!options.output.empty()) check_output(options);
  torch::manual_seed(static_cast<std::uint64_t>(trial.seed));  // of what does not come from the weights
  const auto model = models::build(tasks::model_options(trial.model, trial.data));
  const auto weights = training::read_weights(options.weights);
  check_finite(weights, options.weights);
  Inference result{.loaded = load(*model, weights, options), .logits = {}};
  model->train(options.train);
  const auto given = given_in(options.input, trial);
  const auto input = images(given, trial.data.image_size, options.input);

  Tensors features;
  for (const auto& name : options.features) features.emplace(name, torch::Tensor{});
  models::TensorFile output;
  {
    const torch::AutoGradMode with_gradients{options.gradients};
    torch::Tensor logits;
    {
      const probes::FeatureTap tap{*model, features};
      logits = model->forward(input);
    }
    if (options.gradients) {
      const auto target = targets(given, input.size(0), logits.size(1), options.input);
      const auto loss = torch::cross_entropy_loss(logits, target);
      loss.backward();
      output.tensors.emplace("loss", loss.detach().reshape({1}));
      add_gradients(*model, output.tensors);
    }
    result.logits = logits.detach();
    output.tensors.emplace("logits", result.logits);
  }
  if (options.train) add_buffers(*model, output.tensors);
  for (const auto& [name, feature] : features) {
    if (!feature.defined())
      throw Error{Code::kInvalidArgument, fmt::format("'{}' does not return one tensor", name)};
    output.tensors.emplace("feat." + name, feature.detach().contiguous());
  }
  if (!options.output.empty()) models::write_safetensors(options.output, output);
  return result;
}

}  // namespace abl::commands
