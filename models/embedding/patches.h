// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

#include "models/choices/xcit.h"
#include "models/layers/layers.h"

namespace abl::models {

/// A 3 x 3 convolution of stride 2 without bias, and batch normalisation: children "0" and "1".
/// Shape: x [B, in, H, W] -> [B, out, ⌈H/2⌉, ⌈W/2⌉].
class HalvingConvImpl : public torch::nn::Module {
 public:
  HalvingConvImpl(std::int64_t in, std::int64_t out, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Conv2d conv_{nullptr};
  BatchNorm2d norm_{nullptr};
};
using HalvingConv = Part<HalvingConvImpl>;

/// Halving convolutions with GELU between them: children "0", "2", "4", … The last is `dim` wide, each other
/// half as wide as its successor.
/// Shape: images [B, 3, H, W] -> [B, dim, H/patch, W/patch].
class ConvStackImpl : public torch::nn::Module {
 public:
  ConvStackImpl(std::int64_t dim, std::int64_t patch, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& images);

 private:
  std::vector<HalvingConv> convolutions_;
};
using ConvStack = Part<ConvStackImpl>;

/// XCiT's patch embedding: the map of tokens, not yet a sequence. Images of any size that the patch divides.
/// Parameters: `proj.0.0.weight`, `proj.0.1.*`, …; of the linear projection `proj.weight`, `proj.bias`.
/// Shape: images [B, 3, H, W] -> [B, dim, H/patch, W/patch].
/// Source: XCiT section 3.3 (Model configurations), with patches of 8 and 16; linear: Table 4.
class ConvPatchesImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError when a patch of convolutions is no power of two, or `dim` cannot be halved.
  ConvPatchesImpl(std::int64_t dim, std::int64_t patch, PatchProjection projection,
                  torch::Device device = torch::kCPU);
  /// Throws: c10::ValueError when the patch does not divide the image.
  torch::Tensor forward(const torch::Tensor& images);

 private:
  const std::int64_t patch_;
  ConvStack convolutions_{nullptr};  ///< null where the projection is linear
  Conv2d linear_{nullptr};           ///< null where it is not
};
using ConvPatches = Part<ConvPatchesImpl>;

/// Images of one size to tokens, row by row: one convolution whose stride is its kernel.
/// Parameters: `proj`.
/// Shape: images [B, 3, S, S] -> [B, (S/patch)², dim].
class PatchEmbedImpl : public torch::nn::Module {
 public:
  PatchEmbedImpl(std::int64_t image_size, std::int64_t patch, std::int64_t dim,
                 torch::Device device = torch::kCPU);
  /// Throws: c10::ValueError when the images have another size.
  torch::Tensor forward(const torch::Tensor& images);
  /// Shape: images [B, 3, H, W] of any size -> [B, dim, H/patch, W/patch].
  /// Throws: c10::ValueError when the patch does not divide the images.
  torch::Tensor map_of(const torch::Tensor& images);

 private:
  const std::int64_t image_size_, patch_;
  Conv2d proj_{nullptr};
};
using PatchEmbed = Part<PatchEmbedImpl>;

/// Cuts images into square patches, row by row; within a patch the order is row, column, channel.
/// Shape: [B, C, H, W] -> [B, H/p · W/p, p·p·C].
torch::Tensor patchify(const torch::Tensor& images, std::int64_t patch);

/// Refuses square images of a size that patches of this one do not fill.
/// Throws: c10::ValueError.
void check_patches(std::int64_t image_size, std::int64_t patch);

/// Refuses images of any size that patches do not fill.
/// Throws: c10::ValueError.
void check_divides(std::int64_t patch, const torch::Tensor& images);

/// Refuses images of another size than the square one that a model is made for.
/// Throws: c10::ValueError.
void check_size(const torch::Tensor& images, std::int64_t image_size);

}  // namespace abl::models
