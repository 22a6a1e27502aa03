// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/enum_names.h"
#include "base/error.h"

namespace abl::storage {

/// The value that a word of a results file stands for; `what` says of what it is.
/// Throws: Error{kDataLoss} where no value is called so.
template <Named E>
E from_word(std::string_view what, std::string_view word) {
  if (const auto value = value_named<E>(word)) return *value;
  throw Error{Code::kDataLoss, fmt::format("the results file names an unknown {} '{}'", what, word)};
}

}  // namespace abl::storage
