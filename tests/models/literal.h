// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include "models/layers/part.h"

namespace abl::models {

/// While it lives, the parts that run on this thread compute as the papers write it and not as it is fast.
class Literal final : public Observer {
 public:
  void enter(const torch::nn::Module&) override {}
  void leave(const torch::nn::Module&, const torch::Tensor&) override {}
  bool wants_literal() const override { return true; }

 private:
  const Observation observation_{*this};
};

}  // namespace abl::models
