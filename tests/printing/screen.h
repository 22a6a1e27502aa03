// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "printing/medium.h"

namespace abl::printing {

/// So many columns, with colours or without.
class Screen final : public Medium {
 public:
  explicit Screen(int width, bool colour = false) : width_{width}, colour_{colour} {}
  int width() const override { return width_; }
  bool colour() const override { return colour_; }

 private:
  int width_;
  bool colour_;
};

}  // namespace abl::printing
