// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "models/backbones/classifier.h"
#include "tests/models/autocast.h"

namespace abl::models {

/// Expects that under autocast the model computes in bfloat16, and nearly what it computes without.
/// Gives the logits, so that a backward pass can follow.
inline torch::Tensor expect_close_in_bfloat16(Classifier& model, const torch::Tensor& images,
                                              double tolerance = 0.05) {
  const auto exact = model.forward(images);
  const auto rounded = [&] {
    const Autocast autocast;
    return model.forward(images);
  }();
  EXPECT_EQ(rounded.scalar_type(), torch::kBFloat16);
  EXPECT_LT((rounded.to(torch::kFloat) - exact).abs().max().item<double>(), tolerance);
  return rounded;
}

}  // namespace abl::models
