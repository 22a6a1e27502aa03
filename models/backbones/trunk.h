// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "models/backbones/classifier.h"

namespace abl::models {

/// A classifier seen without its head: maps of features from between its layers. One whose options say that
/// it has no head has nothing else: no parameters that logits alone need.
class Trunk {
 public:
  /// What leaves a layer.
  struct Level {
    std::int64_t channels = 0;
    std::int64_t stride = 0;  ///< pixels of the image between neighbours of the map
  };

  virtual ~Trunk() = default;
  /// Of every layer: a block of a vision transformer, a stage of Swin.
  virtual std::vector<Level> levels() const = 0;
  /// The maps after some layers, which are counted from 1 and ascend; those behind the last do not run.
  /// Shape: images [B, 3, H, W], of any size that the patch divides -> for each of `layers`
  ///        [B, channels, ⌈H/stride⌉, ⌈W/stride⌉].
  /// Throws: c10::ValueError where the patch does not divide the images, and for those of another size than
  /// the model's where its weights hold for one number of tokens (a manifold key, a plugin).
  virtual std::vector<torch::Tensor> maps_after(const std::vector<std::int64_t>& layers,
                                                const torch::Tensor& images) = 0;
};

/// Refuses layers that do not ascend, or that a trunk of so many does not have.
/// Throws: c10::ValueError.
void check_layers(const std::vector<std::int64_t>& layers, std::int64_t depth);

/// Refuses logits of a model that has no head.
/// Throws: c10::ValueError.
void check_has_head(bool has_head);

/// A map of tokens as a sequence, row by row, behind `leading` tokens that are no patches.
struct TokenGrid {
  std::int64_t rows = 0, columns = 0, leading = 0;
};

/// `Trunk::maps_after` of a plain vision transformer.
/// `run(layer, x)`: what the layer of this number, from 0, makes of the tokens.
/// Shape: tokens [B, leading + rows·columns, D] -> for each of `layers` [B, D, rows, columns].
template <class Run>
std::vector<torch::Tensor> token_maps(const std::vector<std::int64_t>& layers, torch::Tensor tokens,
                                      const TokenGrid& grid, const Run& run) {
  std::vector<torch::Tensor> maps;
  std::int64_t done = 0;
  for (const auto layer : layers) {
    for (; done < layer; ++done) tokens = run(done, tokens);
    const auto patches = tokens.narrow(1, grid.leading, grid.rows * grid.columns);
    maps.push_back(patches.mT().reshape({tokens.size(0), tokens.size(2), grid.rows, grid.columns}));
  }
  return maps;
}

}  // namespace abl::models
