// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"

namespace abl::config {
namespace {

constexpr std::span<const std::string_view> kNoKeys{};

}  // namespace

extern constinit const Family kPluginFamily{
    .place = 10,
    .name = "plugin",
    .sentence = "a model of your own, from a file that the trainer loads (`plugin`, docs/plugins.md)",
    .keys = kNoKeys,
    .plugin = PluginPart::kModel,
    .presets = [] { return std::vector<Preset>{}; },
};

}  // namespace abl::config
