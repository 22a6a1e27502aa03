// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/model_factory.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "config/document/trial_document.h"
#include "config/model/family.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

TEST(Backbones, AreTheFamiliesOfTheConfiguration) {
  std::vector<std::string> names;
  for (const Backbone* backbone : all_backbones()) names.emplace_back(backbone->family);
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(config::family_names()));
}

TEST(ModelOptions, OfEveryPresetGiveAModelForItsImages) {
  for (const config::Preset& preset : config::presets()) {
    const auto trial =
        config::read_model_or_throw({{"model", {{"preset", preset.name}}},
                                     {"data", {{"image_size", preset.image_size}, {"classes", 10}}}});
    const auto options = model_options(trial.model, trial.data);
    EXPECT_EQ(models::image_size(options), preset.image_size) << preset.name;
    EXPECT_NO_THROW(models::build(options, torch::kMeta)) << preset.name;
  }
}

TEST(ModelOptions, OfAnUnknownFamilyAreRefused) {
  EXPECT_THROW(model_options({.family = "perceiver"}, {}), Error);
}

}  // namespace
}  // namespace abl::tasks
