// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/types.h>

namespace abl::models {

/// Autocast to bfloat16 on the CPU, while it lives.
class Autocast {
 public:
  explicit Autocast(bool enabled = true) {
    at::autocast::set_autocast_dtype(torch::kCPU, torch::kBFloat16);
    at::autocast::set_autocast_enabled(torch::kCPU, enabled);
  }
  ~Autocast() {
    at::autocast::set_autocast_enabled(torch::kCPU, false);
    at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

}  // namespace abl::models
