// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

namespace abl::models {

/// Why something was refused; "accepted" where it was not.
template <class Run>
std::string refused(const Run& run) {
  try {
    run();
  } catch (const c10::ValueError& error) {
    return error.what_without_backtrace();
  }
  return "accepted";
}

}  // namespace abl::models
