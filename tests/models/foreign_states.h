// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <string>

#include "base/error.h"
#include "models/backbones/xcit.h"
#include "models/weights/state.h"
#include "models/weights/weights.h"

namespace abl::models {

inline XcitOptions xcit(std::int64_t patch = 8, std::int64_t image_size = 64) {
  return {.image_size = image_size,
          .patch = patch,
          .classes = 5,
          .dim = 32,
          .heads = 4,
          .blocks = std::vector<XcitChoice>(1)};
}

/// The state of a model, as another program would hold it.
inline State copy_of(const torch::nn::Module& model) {
  State copy;
  for (const auto& [name, tensor] : state_of(model)) copy.emplace(name, tensor.clone());
  return copy;
}

/// Random values where a model starts with constants.
inline void stir(const torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : state_of(model))
    if (tensor.is_floating_point()) tensor.copy_(torch::rand(tensor.sizes()) + 0.1);
}

/// What is said of a state that does not fit; checks that it changed nothing.
inline std::string refusal(torch::nn::Module& model, const State& state, const WeightsOptions& options = {}) {
  const auto before = copy_of(model);
  try {
    load_weights(model, state, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    for (const auto& [name, tensor] : state_of(model))
      EXPECT_TRUE(torch::equal(tensor, before.at(name))) << name << " was changed by a refused state";
    return error.what();
  }
  return "accepted";
}

inline void expect_equal(const torch::nn::Module& model, const State& expected) {
  for (const auto& [name, tensor] : state_of(model))
    EXPECT_TRUE(torch::equal(tensor, expected.at(name))) << name;
}

}  // namespace abl::models
