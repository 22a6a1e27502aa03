// SPDX-License-Identifier: Apache-2.0
#include "config/recipes.h"

#include "tests/config/documents.h"

namespace abl::config {
namespace {

RecipeConfig recipe_of(const Json& model) { return read_trial_or_throw(document_of(model)).recipe; }

TEST(RecipesTest, TheMsfRecipeTakesBatchAndMixingFromTheSupplement) {
  const auto expect = [](const char* preset, int batch, double mixing_alpha) {
    const RecipeConfig recipe = recipe_of({{"preset", preset}});
    EXPECT_EQ(recipe.batch, batch) << preset;
    EXPECT_EQ(recipe.mixing_alpha, mixing_alpha) << preset;
  };
  expect("efficientnet_b0", 1024, 0.1);
  expect("resnet50", 1024, 0.1);
  expect("resnet101", 1024, 0.2);
  expect("resnext50_32x4d", 1024, 0.2);
  expect("resnext101_32x8d", 768, 0.2);
  expect("simple-vit-ti", 1024, 0.1);
  expect("simple-vit-ss", 1024, 0.1);
  expect("simple-vit-s", 1024, 0.2);
  expect("simple-vit-b", 768, 0.5);
  expect("swin_tiny_patch4_window7_224", 1024, 0.5);
  expect("swin_small_patch4_window7_224", 768, 0.5);
}

TEST(RecipesTest, TheSizeCountsNotTheName) {
  EXPECT_EQ(recipe_of({{"family", "simple-vit"}, {"dim", 768}, {"depth", 12}, {"heads", 12}}).batch, 768);
  EXPECT_EQ(
      recipe_of(
          {{"family", "resnet"}, {"stage_depths", {3, 4, 23, 3}}, {"cardinality", 32}, {"base_width", 8}})
          .batch,
      768);
  const Json ablated = {{"preset", "swin_small_patch4_window7_224"}, {"attention", {{"kernel", "gaussian"}}}};
  EXPECT_EQ(recipe_of(ablated).batch, 768);
}

TEST(RecipesTest, ModelsThatThePaperDidNotTrainKeepTheRecipesOwn) {
  EXPECT_EQ(recipe_of({{"preset", "vit_tiny_patch16_224"}}).mixing_alpha, 0.2);
  EXPECT_EQ(recipe_of({{"preset", "swinv2_tiny_window8_256"}, {"patch", 4}}).batch, 1024);
}

}  // namespace
}  // namespace abl::config
