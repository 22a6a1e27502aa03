// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "data/pack.h"

namespace abl::data {

/// `data check` of annotated pictures: says what there is, and every annotation and picture that cannot be
/// used, a line each. Returns the exit code: 1 where there are some. Throws: what the format throws.
int check_annotations(const std::string& root, int threads, bool json);

/// `data pack` of annotated pictures: what cannot be used is left out, and said.
int pack_annotations(const std::string& root, PackOptions options, bool json);

}  // namespace abl::data
