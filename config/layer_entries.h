// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/trial_document.h"

namespace abl::config {

/// One mapping of a section that may differ from layer to layer, and the layers in which it holds.
struct LayerEntry {
  std::string path;
  Json mapping;
  std::vector<bool> holds;
  bool may_be_placed = false;  ///< `layers` and `elsewhere` may stand in it
};

/// Takes a section apart: one mapping for all `layers` of them, a mapping with `layers` and `elsewhere`, or a
/// list with one mapping for each layer. 0 layers are a number that is not known.
std::vector<LayerEntry> layer_entries(const Json& section, const std::string& path, int layers,
                                      std::vector<Problem>& problems);

}  // namespace abl::config
