// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

/// Detectors and segmentation models on XCiT, only to be counted: trees of their parts on the meta device,
/// with no forward. The backbone is XCiT's patch embedding, positions and blocks, without class token, class
/// attention, final normalisation and head.
namespace abl::models {

struct DenseBackbone {
  std::int64_t dim = 0, depth = 0, heads = 0;
  std::int64_t patch = 16;  ///< 16 or 8
};

/// Mask R-CNN with a feature pyramid, 80 classes of things: the released configuration for COCO.
/// Deconvolutions bring the maps of the backbone to the four sizes of the pyramid. Source: XCiT section 4.2,
/// Table 5.
std::shared_ptr<torch::nn::Module> mask_rcnn(const DenseBackbone& backbone);

/// Semantic FPN, 150 classes. The printed numbers leave the deconvolutions out.
/// Source: XCiT section 4.3, Table 6.
std::shared_ptr<torch::nn::Module> semantic_fpn(const DenseBackbone& backbone);

/// UperNet with its auxiliary head, 150 classes. The printed numbers leave the deconvolutions out.
/// Source: XCiT section 4.3, Table 6.
std::shared_ptr<torch::nn::Module> uper_net(const DenseBackbone& backbone);

}  // namespace abl::models
