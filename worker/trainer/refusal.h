// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <optional>
#include <string>

#include "base/error.h"

namespace abl::trainer {

/// What a model or LibTorch says of values that it does not take (batch normalisation over one value, a shape
/// that does not fit): nothing that another try would change. Nothing for any other exception.
/// Returns: Error{kInvalidArgument}, one line.
std::optional<Error> refusal(const std::exception& error);

/// The first line of what LibTorch says, without where in its sources it says so.
std::string first_line(const c10::Error& error);

}  // namespace abl::trainer
