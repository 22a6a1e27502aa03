// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/backbones/key_vit.h"
#include "models/backbones/model_options.h"
#include "models/backbones/simple_vit.h"
#include "models/backbones/swin.h"
#include "models/backbones/swin_v2.h"
#include "models/backbones/vit.h"
#include "models/backbones/xcit.h"
#include "models/dense/trunk_maps.h"
#include "models/weights/safetensors.h"
#include "models/weights/state.h"
#include "tests/models/relative_error.h"

namespace abl::models {

/// One file of what the references in Python computed (write_references.py).
class Reference {
 public:
  explicit Reference(const std::string& name)
      : file_{read_safetensors(std::filesystem::path{ABLATE_SEGMENTATION_PARITY_DIR} /
                               (name + ".safetensors"))} {}

  nlohmann::json config() const { return nlohmann::json::parse(file_.metadata.at("config")); }
  const torch::Tensor& at(const std::string& name) const { return file_.tensors.at(name); }
  /// The tensors whose name begins so, without that beginning.
  std::map<std::string, torch::Tensor> all(const std::string& prefix) const {
    std::map<std::string, torch::Tensor> found;
    for (const auto& [name, tensor] : file_.tensors)
      if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), tensor);
    return found;
  }

 private:
  const TensorFile file_;
};

inline ModelOptions backbone_of(const std::string& family, const nlohmann::json& sizes) {
  const auto numbers = [&](const char* name) { return sizes.at(name).get<std::vector<std::int64_t>>(); };
  const auto swin = [&](auto options) {
    options.image_size = sizes.at("img_size"), options.patch = sizes.at("patch_size");
    options.dim = sizes.at("embed_dim"), options.window = sizes.at("window_size");
    options.depths = numbers("depths"), options.heads = numbers("num_heads");
    for (const auto depth : options.depths)
      options.attention.insert(options.attention.end(), static_cast<std::size_t>(depth), QkvChoice{});
    return options;
  };
  if (family == "swin") return swin(SwinOptions{});
  if (family == "swin-v2") return swin(SwinV2Options{});
  if (family == "xcit")
    return XcitOptions{.image_size = sizes.at("img_size"),
                       .patch = sizes.at("patch_size"),
                       .dim = sizes.at("embed_dim"),
                       .heads = sizes.at("num_heads"),
                       .eta = sizes.at("eta"),
                       .blocks = std::vector<XcitChoice>(sizes.at("depth").get<std::size_t>())};
  if (family == "vit")
    return VitOptions{.image_size = sizes.at("img_size"),
                      .patch = sizes.at("patch_size"),
                      .dim = sizes.at("embed_dim"),
                      .depth = sizes.at("depth"),
                      .heads = sizes.at("num_heads")};
  if (family == "simple-vit")
    return SimpleVitOptions{.image_size = sizes.at("image_size"),
                            .patch = sizes.at("patch"),
                            .classes = 1,
                            .dim = sizes.at("dim"),
                            .depth = static_cast<std::int64_t>(sizes.at("attention").size()),
                            .heads = sizes.at("heads"),
                            .dim_head = sizes.at("dim_head"),
                            .mlp_dim = sizes.at("mlp_dim"),
                            .attention = std::vector<AttentionChoice>(
                                sizes.at("attention").size(), {Kernel::kGaussian, Probe::kInside, "QKVPW"})};
  throw std::out_of_range{family};
}

/// The gradients that the reference has, in double precision as those of it are, within 1e-4 of each tensor's
/// largest; one below a hundredth of the largest of all is compared absolutely, for some are zero but for
/// rounding: those of a bias before a normalisation.
inline void expect_gradients(const torch::nn::Module& model, const Reference& reference) {
  const auto gradients = reference.all("grad.");
  double largest = 0;
  for (const auto& [name, gradient] : gradients)
    largest = std::max(largest, gradient.abs().max().item<double>());
  const auto parameters = model.named_parameters();
  ASSERT_FALSE(gradients.empty());
  for (const auto& [name, gradient] : gradients) {
    const auto* parameter = parameters.find(name);
    ASSERT_NE(parameter, nullptr) << name;
    ASSERT_TRUE(parameter->grad().defined()) << name;
    const double scale = std::max(gradient.abs().max().item<double>(), 1e-2 * largest);
    EXPECT_LT(relative_error(parameter->grad(), gradient, scale), 1e-4) << "gradient of " << name;
  }
}

}  // namespace abl::models
