// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

namespace abl::models {

/// Largest difference, relative to `scale`, or to the largest value expected.
inline double relative_error(const torch::Tensor& got, const torch::Tensor& expected, double scale = 0) {
  EXPECT_EQ(got.sizes(), expected.sizes());
  if (scale == 0) scale = expected.abs().max().item<double>();
  return (got - expected).abs().max().item<double>() / scale;
}

}  // namespace abl::models
