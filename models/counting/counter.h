// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/record_function.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/backbones/classifier.h"
#include "models/counting/network.h"
#include "models/counting/work.h"

namespace abl::models {

/// One part of a model, with everything inside it.
struct PartCount {
  std::string name;  ///< "blocks.0.attn"; "" for the model itself
  std::string type;  ///< "CrossCovariance"
  std::vector<std::int64_t>
      output;  ///< shape of what it returned, for one image; empty when it was not called
  std::int64_t params_all = 0;
  std::int64_t params_weights = 0;
  Work work;
};

/// The parameters and the work of a model and of each of its parts, the model first, then in the order of
/// registration. The real module runs, once, on one image of the meta device, where that costs no memory and
/// no arithmetic; `model` must have been built there.
/// Throws: c10::NotImplementedError for an operator that has no kernel on the meta device.
std::vector<PartCount> count_parts(Classifier& model, std::int64_t image_size);
/// The same of any network, built for it.
std::vector<PartCount> count_parts(const Network& network, std::int64_t image_size);

/// Multiply-adds of a training step for each of its images: of what learns three times those of the forward
/// pass, whose backward pass is two products for each product, of what does not once. Two images go through.
std::int64_t count_step(const Network& network, std::int64_t image_size);

/// The work of one call of an operator, told by its name and the shapes that it is given; nothing for an
/// operator that costs nothing in any mode (views, additions, GELU, softmax) or calls others that do.
std::optional<Work> operator_work(const at::RecordFunction& call);

}  // namespace abl::models
