// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <optional>

#include "base/error.h"
#include "config/trial_config.h"

namespace abl::trainer {

/// What to tell of an exception of LibTorch or of the standard library that says that memory ran out: what it
/// was needed for and what would need less. Nothing for any other exception.
/// Returns: Error{kResourceExhausted}, one line.
std::optional<Error> out_of_memory(const std::exception& error, const config::TrialConfig& trial);

}  // namespace abl::trainer
