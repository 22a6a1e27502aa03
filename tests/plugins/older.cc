// SPDX-License-Identifier: Apache-2.0
// As a file that was built against another ablate: its code ends the program as soon as it is loaded.
#include <cstdlib>

#include "models/plugins/plugin.h"

#undef ABLATE_PLUGIN_INTERFACE
#define ABLATE_PLUGIN_INTERFACE \
  "ablate-plugin-interface: ablate 0.0.1, headers 0123456789ab, PyTorch 2.11.0, GNU 12"

namespace {
const bool kLoaded = [] {
  std::abort();
  return true;
}();
}  // namespace

ABLATE_PLUGIN(abl::models::Plugin{.sentence = kLoaded ? "Is never loaded" : ""})
