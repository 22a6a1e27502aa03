// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::models {

/// Autocast to bfloat16 for the meta device, which PyTorch leaves out: while it lives, matrix products,
/// convolutions and attention of this thread take bfloat16 operands, and a parameter is cast once.
class MetaAutocast {
 public:
  explicit MetaAutocast(bool enabled);
  ~MetaAutocast();
  MetaAutocast(const MetaAutocast&) = delete;
  MetaAutocast& operator=(const MetaAutocast&) = delete;

 private:
  static void set(bool enabled);
};

}  // namespace abl::models
