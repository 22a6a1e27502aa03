// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sweeps/sweep_spec.h"

namespace abl::sweeps {

inline constexpr int kDeepestYaml = 100;  ///< levels of lists and mappings in each other

/// What is wrong with a text that the YAML parser refused at `place` with `message`: what people do most
/// often (a tab, a bracket or a quote that is never closed, nesting without end) is named, at the place where
/// it was written.
Problem syntax_problem(const std::string& file, std::string_view text, Place place,
                       const std::string& message);

}  // namespace abl::sweeps
