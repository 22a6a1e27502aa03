// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

namespace abl::models {

/// What building a model, or a part of one, says of wrong options; "accepted" where it does not mind.
template <class Impl, class Options>
std::string refusal(const Options& options) {
  try {
    const Impl model{options, torch::kMeta};
  } catch (const c10::ValueError& error) {
    return error.what_without_backtrace();
  }
  return "accepted";
}

}  // namespace abl::models
