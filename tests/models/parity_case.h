// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "models/backbones/classifier.h"
#include "models/weights/safetensors.h"
#include "models/weights/state.h"
#include "probes/features.h"
#include "tests/models/relative_error.h"

namespace abl::models {

/// One file of ground truth (tests/parity/write_ground_truth.py): what the reference was, what it was given,
/// and what came out.
class ParityCase {
 public:
  explicit ParityCase(const std::string& name)
      : name_{name},
        file_{read_safetensors(std::filesystem::path{ABLATE_PARITY_DIR} / (name + ".safetensors"))} {}

  const std::string& name() const { return name_; }

  nlohmann::json config() const { return about().at("config"); }
  const torch::Tensor& at(const std::string& name) const { return file_.tensors.at(name); }
  bool has(const std::string& name) const { return file_.tensors.contains(name); }
  /// The tensors whose name begins so, without that beginning.
  std::map<std::string, torch::Tensor> all(const std::string& prefix) const {
    std::map<std::string, torch::Tensor> found;
    for (const auto& [name, tensor] : file_.tensors)
      if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), tensor);
    return found;
  }

 private:
  nlohmann::json about() const { return nlohmann::json::parse(file_.metadata.at("ablate")); }

  const std::string name_;
  const TensorFile file_;
};

/// The parts that a model is made of, "Xcit" of XcitImpl, each once; LibTorch's own are none.
inline nlohmann::json parts_of(const torch::nn::Module& model) {
  constexpr std::string_view kOurs = "abl::models::", kEnding = "Impl";
  std::set<std::string> parts;
  const auto add = [&](const torch::nn::Module& module) {
    std::string_view type = module.name();  // abl::models::XcitImpl
    if (!type.starts_with(kOurs) || !type.ends_with(kEnding)) return;
    type.remove_prefix(kOurs.size());
    type.remove_suffix(kEnding.size());
    parts.emplace(type);
  };
  add(model);
  for (const auto& module : model.modules(/*include_self=*/false)) add(*module);
  return parts;
}

/// Writes the model's state, with its parts, beside the ground truth, where tests/parity/round_trip_test.py
/// and covered_test.py look for it.
inline void write_state(const Classifier& model, const ParityCase& reference) {
  const auto folder = std::filesystem::path{ABLATE_PARITY_DIR} / "written";
  std::filesystem::create_directories(folder);
  write_safetensors(folder / (reference.name() + ".safetensors"),
                    {.tensors = state_of(model), .metadata = {{"parts", parts_of(model).dump()}}});
}

/// Everything that a file holds: state by name (strictly), logits, loss, features, gradients, and one pass in
/// training mode where there is batch normalisation. Logits and features within 1e-5 of their largest value,
/// gradients within 1e-4 of the tensor's; a gradient below a thousandth of the largest is compared
/// absolutely: some are zero but for rounding.
inline void expect_parity(Classifier& model, const ParityCase& reference) {
  load_state(model, reference.all("sd."));
  write_state(model, reference);
  model.eval();
  std::map<std::string, torch::Tensor> features;
  for (const auto& [name, tensor] : reference.all("feat.")) features.emplace(name, torch::Tensor{});
  torch::Tensor logits;
  {
    probes::FeatureTap tap{model, features};
    logits = model.forward(reference.at("input"));
  }
  EXPECT_LT(relative_error(logits, reference.at("logits")), 1e-5) << "logits";
  for (const auto& [name, tensor] : reference.all("feat.")) {
    ASSERT_TRUE(features.at(name).defined()) << "feature " << name << " was not seen";
    EXPECT_LT(relative_error(features.at(name), tensor), 1e-5) << "feature " << name;
  }
  const auto loss = torch::cross_entropy_loss(logits, reference.at("target"));
  EXPECT_LT(relative_error(loss.reshape(1), reference.at("loss")), 1e-5) << "loss";

  loss.backward();
  const auto gradients = reference.all("grad.");
  double largest = 0;
  for (const auto& [name, gradient] : gradients)
    largest = std::max(largest, gradient.abs().max().item<double>());
  const auto parameters = model.named_parameters();
  for (const auto& [name, gradient] : gradients) {
    const auto* parameter = parameters.find(name);
    ASSERT_NE(parameter, nullptr) << name;
    ASSERT_TRUE(parameter->grad().defined()) << name;
    const double scale = std::max(gradient.abs().max().item<double>(), 1e-3 * largest);
    EXPECT_LT(relative_error(parameter->grad(), gradient, scale), 1e-4) << "gradient of " << name;
  }

  if (!reference.has("train_logits")) return;
  const torch::NoGradGuard no_grad;
  model.train();
  EXPECT_LT(relative_error(model.forward(reference.at("input")), reference.at("train_logits")), 1e-5)
      << "logits in training mode";
  const auto state = state_of(model);
  for (const auto& [name, tensor] : reference.all("train."))
    EXPECT_LT(relative_error(state.at(name), tensor), 1e-5) << name << " after one pass in training mode";
}

}  // namespace abl::models
