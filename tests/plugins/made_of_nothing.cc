// SPDX-License-Identifier: Apache-2.0
// Makes no attention, though it offers one.
#include "models/plugins/plugin.h"

ABLATE_PLUGIN(abl::models::Plugin{.sentence = "Makes nothing", .attention = [](const auto&, const auto&) {
                                    return std::shared_ptr<abl::models::TokenMixer>{};
                                  }})
