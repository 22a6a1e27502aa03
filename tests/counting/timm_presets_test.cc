// SPDX-License-Identifier: Apache-2.0
// Presets under timm's names against timm's models, tensor by tensor; what that are says the file
// (tests/parity/write_preset_shapes.py).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/sha256.h"
#include "config/document/trial_document.h"
#include "config/model/family.h"
#include "models/backbones/model_options.h"
#include "models/weights/layers_of_parameters.h"
#include "models/weights/state.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::trainer {
namespace {

struct TimmPreset {
  std::size_t tensors = 0;
  std::int64_t elements = 0;
  std::string shapes;
  int layers = 0;
  std::string order;
};

std::map<std::string, TimmPreset> read_timm_presets() {
  std::ifstream file{ABLATE_TIMM_PRESETS};
  std::map<std::string, TimmPreset> presets;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields{line};
    std::string name;
    TimmPreset preset;
    fields >> name >> preset.tensors >> preset.elements >> preset.shapes >> preset.layers >> preset.order;
    presets.emplace(name, preset);
  }
  return presets;
}

std::shared_ptr<models::Classifier> model_on_meta(const config::Preset& preset) {
  const auto trial =
      config::read_model_or_throw({{"model", {{"preset", preset.name}}},
                                   {"data", {{"image_size", preset.image_size}, {"classes", 1000}}}});
  return models::build(tasks::model_options(trial.model, trial.data), torch::kMeta);
}

TEST(TimmPresets, HaveTimmsTensorsByNameAndShape) {
  auto timm = read_timm_presets();
  ASSERT_GT(timm.size(), 90u);
  for (const auto& preset : config::presets()) {
    const auto found = timm.find(std::string{preset.name});
    if (found == timm.end()) {  // of a paper
      EXPECT_TRUE(preset.family == "simple-vit" || preset.family == "key-vit") << preset.name;
      continue;
    }
    const auto model = model_on_meta(preset);
    std::string lines;
    std::int64_t elements = 0;
    const auto state = models::state_of(*model);
    for (const auto& [name, tensor] : state) {
      lines += fmt::format("{} {}\n", name, fmt::join(tensor.sizes(), ","));
      elements += tensor.numel();
    }
    const std::string hint = fmt::format("; write_preset_shapes.py --show {0} lists timm's", preset.name);
    EXPECT_EQ(state.size(), found->second.tensors) << preset.name << hint;
    EXPECT_EQ(elements, found->second.elements) << preset.name << hint;
    EXPECT_EQ(sha256_hex(lines), found->second.shapes) << preset.name << hint;
    timm.erase(found);
  }
  EXPECT_TRUE(timm.empty()) << timm.begin()->first << " is no preset";
}

TEST(TimmPresets, HaveTheLayersByWhichTimmLowersLearningRates) {
  for (const auto& [name, timm] : read_timm_presets()) {
    const auto* preset = config::find_preset(name);
    ASSERT_NE(preset, nullptr) << name;
    std::string lines;
    int layers = 0;
    for (const auto& [parameter, layer] : models::layers_of_parameters(*model_on_meta(*preset))) {
      lines += fmt::format("{} {}\n", parameter, layer);
      layers = std::max(layers, layer + 1);
    }
    EXPECT_EQ(layers, timm.layers) << name;
    EXPECT_EQ(sha256_hex(lines), timm.order) << name;
  }
}

}  // namespace
}  // namespace abl::trainer
