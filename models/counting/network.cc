// SPDX-License-Identifier: Apache-2.0
#include "models/counting/network.h"

#include <utility>

namespace abl::models {

Network classifier(std::function<std::shared_ptr<Classifier>(torch::Device)> build) {
  const auto answer = [](torch::nn::Module& module, const torch::Tensor& images) {
    return dynamic_cast<Classifier&>(module).forward(images);
  };
  return {.build = std::move(build), .answer = answer, .loss = [answer](auto& module, const auto& images) {
            const auto classes = torch::empty({images.size(0)}, images.options().dtype(torch::kLong));
            return torch::cross_entropy_loss(answer(module, images), classes);
          }};
}

}  // namespace abl::models
