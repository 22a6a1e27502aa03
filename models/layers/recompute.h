// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

namespace abl::models {

/// Runs one block, from tensor to tensor.
using RunBlock = std::function<torch::Tensor(const torch::Tensor& x)>;

/// run(x) that keeps x alone for the backward pass, which runs the block again for its activations: with the
/// same random numbers, the same autocast, and without a second step of running statistics. Values and
/// gradients are those of run(x), to the bit but where blocks share a parameter and autocast casts it: its
/// gradients are then added in 32 bits, not in bfloat16.
/// Where no gradient is wanted, or while an observer looks on, it is run(x).
/// The backward pass adds to the parameters' gradients itself, in a pass of its own: what is called is
/// `backward()`, and hooks on parameters hear of one gradient each.
/// `run`: owns what it uses, for it lives until the backward pass; its modules do not change mode until then.
/// `parameters`: those of the block, which shall not change until then.
/// Throws, in the backward pass: c10::Error where x or a parameter has changed, under `autograd::grad`, and
/// for second derivatives.
/// Source: Chen et al., "Training deep nets with sublinear memory cost" (2016).
torch::Tensor recomputed(RunBlock run, const torch::Tensor& x, std::vector<torch::Tensor> parameters);

/// run(x), recomputed where that is asked for. An observer hears of it as of a block, the channels last.
/// `modules`: whose parameters are the block's; null where it has no such.
torch::Tensor run_block(const RunBlock& run, const torch::Tensor& x, bool is_recomputed,
                        std::initializer_list<const torch::nn::Module*> modules);

/// The same of a block that is a holder.
template <class Block>
torch::Tensor run_block(const Block& block, const torch::Tensor& x, bool is_recomputed) {
  return run_block(block, x, is_recomputed, {block.get()});
}

/// Whether what runs on this thread is a block's second run: what a training step updates has been updated.
bool recomputing();

/// Refuses a number of recomputed blocks that a model of so many does not have.
/// Throws: c10::ValueError.
void check_recomputed(std::int64_t checkpoint_blocks, std::int64_t blocks);

}  // namespace abl::models
