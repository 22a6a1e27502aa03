// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

namespace abl::device {

/// What numbers depend on beside the program: "cpu", or the name of the GPU.
std::string name_of(torch::Device device);

/// The most bytes that the training held at one time: on a GPU of its memory, on the CPU of this process.
double peak_memory_bytes(torch::Device device);

/// Throws: Error, or what CUDA says, where not so many GPUs can be used.
void try_gpus(int count);

/// From here on a GPU adds up in the same order every time; what cannot be done so fails, with its name.
/// Must be called before the GPU is used. On the CPU it is always so.
void compute_deterministically();
bool is_deterministic(torch::Device device);

}  // namespace abl::device
