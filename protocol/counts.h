// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// What is counted of a model before it is trained, by name: `ablate-trainer describe` says them, a sweep's
/// `count:` takes them, and a plan's memory follows from them.
namespace abl::protocol {

// elements
inline constexpr std::string_view kParamsAll = "params.all", kParamsWeights = "params.weights";

// work of one image: multiply-adds, also of a training step, and as papers and tools count it. `@` and the
// name of a convention (models/counting/conventions.h) may follow
inline constexpr std::string_view kFlopsMacs = "flops.macs", kFlopsMsf = "flops.msf", kFlopsCnn = "flops.cnn",
                                  kFlopsStep = "flops.step", kFlopsFvcore2 = "flops.fvcore(2)",
                                  kFlopsFvcore5 = "flops.fvcore(5)";

// bytes of parameters, gradients and AdamW; of bfloat16 weights; of the weights alone, as a frozen teacher
// has them
inline constexpr std::string_view kMemoryState = "memory.state", kMemoryStateBf16 = "memory.state.bf16",
                                  kMemoryWeights = "memory.weights";

/// Memory that grows with the images taken at once is two counts, bytes both: what each image takes, and what
/// is taken beside them. Of a training step, and of a forward pass beside the weights.
inline constexpr std::string_view kStepMemory = "memory", kForwardMemory = "memory.forward";
/// "memory.image.fp32". `precision`: as in a recipe.
inline std::string per_image(std::string_view memory, std::string_view precision) {
  return std::string{memory}.append(".image.").append(precision);
}
/// "memory.base.fp32".
inline std::string beside_images(std::string_view memory, std::string_view precision) {
  return std::string{memory}.append(".base.").append(precision);
}

}  // namespace abl::protocol
