// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/annotated/annotated_source.h"
#include "data/pack.h"

namespace abl::data {

/// Writes both splits of a set of stored pictures into one packed file, as `pack` does: the pictures' files
/// as they are, to the byte, and behind each what is known of it. Of the options, `output`, `threads`, `stop`
/// and `progress` count. Throws: as pack; Error{kInvalidArgument} for `bound` or `raw`, and for a set that is
/// drawn.
PackResult pack_annotated(const AnnotatedSet& set, const PackOptions& options);

}  // namespace abl::data
