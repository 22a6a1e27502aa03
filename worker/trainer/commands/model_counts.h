// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/trial_choices.h"
#include "models/counting/counter.h"
#include "models/counting/memory.h"
#include "models/counting/work.h"
#include "models/registry.h"

namespace abl::commands {

/// How the memory of a recipe's precision is counted.
models::Precision counted_as(config::Precision precision);

/// The work of one image by the modes of `counts_of` that begin with "flops.", conventions left out.
std::map<std::string, double> flops_of(const models::Work& work);

/// What is known of a model before it is trained, by the names that `count:` takes in a sweep file.
///   params.all, params.weights                 elements
///   flops.macs                                 multiply-adds of one image
///   flops.msf, flops.cnn, flops.fvcore(2), flops.fvcore(5)     as papers and tools count one image
///   flops.fvcore(5)@xcit-2021, …               the same under a convention (models/counting/conventions.h)
///   memory.state, memory.state.bf16            bytes of parameters, gradients and AdamW; of bfloat16 weights
///   memory.image.fp32, .bf16, .fp16            bytes of a training step for each image of many, and
///   memory.base.fp32, .bf16, .fp16             what it takes beside them
///   memory.weights                             bytes of the weights alone, as a frozen teacher has them
///   memory.forward.image.fp32, …               bytes of its forward pass for each image of many, beside the
///   memory.forward.base.fp32, …                weights, and what it takes beside these
std::map<std::string, double> counts_of(const models::ModelOptions& options,
                                        const std::vector<models::PartCount>& parts);

}  // namespace abl::commands
