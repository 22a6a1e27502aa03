// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/patches.h"

#include <bit>
#include <string>

namespace abl::models {

HalvingConvImpl::HalvingConvImpl(std::int64_t in, std::int64_t out, torch::Device device) {
  conv_ = register_module(
      "0", Conv2d{Conv2dOptions{.in = in, .out = out, .kernel = 3, .stride = 2, .padding = 1, .bias = false},
                  device});
  norm_ = register_module("1", BatchNorm2d{out, device});
}

torch::Tensor HalvingConvImpl::forward(const torch::Tensor& x) { return norm_(conv_(x)); }

ConvStackImpl::ConvStackImpl(std::int64_t dim, std::int64_t patch, torch::Device device) {
  TORCH_CHECK_VALUE(patch >= 2 && std::has_single_bit(static_cast<std::uint64_t>(patch)), "patch is ", patch,
                    "; convolutions of stride 2 make a power of two, at least 2");
  TORCH_CHECK_VALUE(dim > 0 && dim % (patch / 2) == 0, "dim is ", dim, "; convolutions for a patch of ",
                    patch, " start with dim/", patch / 2, " channels");
  std::int64_t in = 3;
  for (auto narrowing = patch / 2; narrowing >= 1; narrowing /= 2) {
    const auto out = dim / narrowing;
    const auto place = 2 * convolutions_.size();  // GELU has the places between
    convolutions_.push_back(register_module(std::to_string(place), HalvingConv{in, out, device}));
    in = out;
  }
}

torch::Tensor ConvStackImpl::forward(const torch::Tensor& images) {
  auto x = convolutions_.front()(images);
  for (std::size_t i = 1; i < convolutions_.size(); ++i) x = convolutions_[i](torch::gelu(x));
  return x;
}

ConvPatchesImpl::ConvPatchesImpl(std::int64_t dim, std::int64_t patch, PatchProjection projection,
                                 torch::Device device)
    : patch_{patch} {
  TORCH_CHECK_VALUE(patch > 0 && dim > 0, "patches of ", patch, " pixels for tokens of width ", dim,
                    "; both must be positive");
  if (projection == PatchProjection::kConvolutions)
    convolutions_ = register_module("proj", ConvStack{dim, patch, device});
  else
    linear_ = register_module(
        "proj", Conv2d{Conv2dOptions{.in = 3, .out = dim, .kernel = patch, .stride = patch}, device});
}

torch::Tensor ConvPatchesImpl::forward(const torch::Tensor& images) {
  check_divides(patch_, images);
  return linear_ ? linear_(images) : convolutions_(images);
}

PatchEmbedImpl::PatchEmbedImpl(std::int64_t image_size, std::int64_t patch, std::int64_t dim,
                               torch::Device device)
    : image_size_{image_size}, patch_{patch} {
  proj_ = register_module(
      "proj", Conv2d{Conv2dOptions{.in = 3, .out = dim, .kernel = patch, .stride = patch}, device});
}

torch::Tensor PatchEmbedImpl::forward(const torch::Tensor& images) {
  check_size(images, image_size_);
  return proj_(images).flatten(2).transpose(1, 2);
}

torch::Tensor PatchEmbedImpl::map_of(const torch::Tensor& images) {
  check_divides(patch_, images);
  return proj_(images);
}

torch::Tensor patchify(const torch::Tensor& images, std::int64_t patch) {
  const auto B = images.size(0), C = images.size(1), p = patch;
  const auto rows = images.size(2) / p, columns = images.size(3) / p;
  check_divides(p, images);
  return images.reshape({B, C, rows, p, columns, p})
      .permute({0, 2, 4, 3, 5, 1})  // [B, rows, columns, p, p, C]
      .reshape({B, rows * columns, p * p * C});
}

void check_patches(std::int64_t image_size, std::int64_t patch) {
  TORCH_CHECK_VALUE(patch > 0 && image_size > 0 && image_size % patch == 0, "images of ", image_size,
                    " pixels cannot be cut into patches of ", patch);
}

void check_divides(std::int64_t patch, const torch::Tensor& images) {
  const auto H = images.size(2), W = images.size(3);
  TORCH_CHECK_VALUE(H % patch == 0 && W % patch == 0, "images of ", H, " x ", W,
                    " pixels cannot be cut into patches of ", patch, " x ", patch);
}

void check_size(const torch::Tensor& images, std::int64_t image_size) {
  TORCH_CHECK_VALUE(images.size(2) == image_size && images.size(3) == image_size, "images of ",
                    images.size(2), " x ", images.size(3), " pixels for a model of ", image_size, " x ",
                    image_size);
}

}  // namespace abl::models
