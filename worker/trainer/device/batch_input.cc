// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/device/batch_input.h"

namespace abl::trainer {

BatchInput::BatchInput(torch::Device device)
    : device_{device},
      mean_{torch::tensor({0.485f, 0.456f, 0.406f}).to(device)},
      deviation_{torch::tensor({0.229f, 0.224f, 0.225f}).to(device)} {}

torch::Tensor BatchInput::images(const Batch& batch) const {
  const auto numbers = batch.images.to(device_, /*non_blocking=*/true).to(torch::kFloat32);
  const auto scaled = numbers.mul_(1.f / 255).sub_(mean_).div_(deviation_);
  auto images = scaled.permute({0, 3, 1, 2}).contiguous();
  for (const auto& [image, rectangle, noise] : batch.patches)
    images[image]
        .narrow(1, rectangle.top, rectangle.height)
        .narrow(2, rectangle.left, rectangle.width)
        .copy_(noise, /*non_blocking=*/true);
  return images;
}

torch::Tensor BatchInput::labels(const Batch& batch) const {
  return batch.labels.to(device_, /*non_blocking=*/true);
}

}  // namespace abl::trainer
