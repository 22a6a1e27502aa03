// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::models {

/// Makes the operators that our models use, forward and backward, work on the meta device, where PyTorch has
/// them for Python alone: convolution, layer and batch normalisation, fused attention and roll. Call it
/// before a model is run there; calling it again does nothing. What the kernels return has the shapes, types
/// and strides of the CPU's, so that it also takes the memory of the CPU's.
void use_meta_kernels();

}  // namespace abl::models
