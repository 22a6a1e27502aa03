// SPDX-License-Identifier: Apache-2.0
#include "models/registry.h"

namespace abl::models {

std::shared_ptr<Classifier> build(const SimpleVitOptions& options, torch::Device device) {
  return std::make_shared<SimpleVitImpl>(options, device);
}

}  // namespace abl::models
