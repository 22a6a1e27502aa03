// SPDX-License-Identifier: Apache-2.0
#include "config/recipe/recipes.h"

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

RecipeConfig recipe_of(const char* name, const Json& model, const Json& changes = Json::object()) {
  auto document = document_of(model);
  document["recipe"] = {{"use", name}};
  document["recipe"].update(changes);
  return read_trial_or_throw(document).recipe;
}

TEST(RecipesTest, EveryRecipeOfThePapersIsThere) {
  for (const char* name :
       {"msf-imagenet", "msf-inat", "mk-imagenet", "sne-imagenet", "sne-imagenet-distill", "sne-transfer",
        "xcit-imagenet", "xcit-imagenet-distill", "xcit-finetune-384", "cifar-lite"})
    EXPECT_NE(find_recipe(name), nullptr) << name;
}

TEST(RecipesTest, TheManifoldKeysIsOneCycleOf300Epochs) {
  const auto recipe = recipe_of("mk-imagenet", {{"preset", "swin_tiny_patch4_window7_224"}});
  EXPECT_EQ(recipe.epochs, 300);
  EXPECT_EQ(recipe.batch, 128);
  EXPECT_EQ(recipe.schedule, config::Schedule::kOneCycle);
  EXPECT_EQ(recipe.lr, 5e-4);
  EXPECT_EQ(recipe.min_lr, 5e-6);
  EXPECT_EQ(recipe.weight_decay, 0.05);
}

TEST(RecipesTest, ThoseOfSneGoByTheModel) {
  EXPECT_EQ(recipe_of("sne-imagenet", {{"preset", "xcit_nano_12_p16_224"}}).batch, 4096);
  const auto tiny = recipe_of("sne-imagenet", {{"preset", "xcit_tiny_12_p16_224"}});
  EXPECT_EQ(tiny.batch, 2816);
  EXPECT_EQ(tiny.lr, 5e-4);
  EXPECT_EQ(tiny.epochs, 400);
  EXPECT_EQ(tiny.decay, config::Decay::kMatricesNotCodes);
  const auto taught = recipe_of("sne-imagenet-distill", {{"preset", "xcit_tiny_12_p16_224"}});
  EXPECT_EQ(taught.batch, 4096);
  EXPECT_EQ(taught.distillation, config::Distillation::kHard);
  EXPECT_EQ(taught.teacher, "regnety_160");
  const auto transfer = recipe_of("sne-transfer", {{"preset", "xcit_nano_12_p16_224"}});
  EXPECT_EQ(transfer.epochs, 1000);
  EXPECT_EQ(transfer.lr, 5e-5);
  EXPECT_EQ(transfer.start_weights, "pretrained") << "without weights it would train from scratch";
}

TEST(RecipesTest, WhereAPaperIsSilentItsReleaseDecides) {
  EXPECT_EQ(recipe_of("msf-imagenet", {{"preset", "simple-vit-s"}}).decay, config::Decay::kAll);
  EXPECT_EQ(recipe_of("sne-transfer", {{"preset", "xcit_nano_12_p16_224"}}).min_lr, 1e-5);
  const auto tuned = recipe_of("xcit-finetune-384", {{"preset", "xcit_small_12_p16_224"}});
  EXPECT_DOUBLE_EQ(tuned.warmup * tuned.epochs, 5);
  EXPECT_DOUBLE_EQ(tuned.warmup_start * tuned.lr, 1e-6);
}

TEST(RecipesTest, WhatAPaperPrintsIsNotScaled) {
  for (const char* model : {"xcit_nano_12_p16_224", "xcit_tiny_12_p16_224"})
    EXPECT_EQ(recipe_of("sne-imagenet", {{"preset", model}}).lr, 5e-4) << "whatever the batch";
  EXPECT_EQ(recipe_of("mk-imagenet", {{"preset", "vit_base_patch16_224"}}).drop_path, 0.2)
      << "alike for all models";
}

TEST(RecipesTest, OfXcitsDeeperModelsDropMorePaths) {
  EXPECT_EQ(recipe_of("xcit-imagenet", {{"preset", "xcit_tiny_12_p16_224"}}).drop_path, 0);
  EXPECT_EQ(recipe_of("xcit-imagenet", {{"preset", "xcit_small_12_p16_224"}}).drop_path, 0.05);
  EXPECT_EQ(recipe_of("xcit-imagenet", {{"preset", "xcit_small_12_p8_224"}}).drop_path, 0.05)
      << "of that size";
  EXPECT_EQ(recipe_of("xcit-imagenet", {{"preset", "xcit_large_24_p16_224"}}).drop_path, 0.25);
}

TEST(RecipesTest, BothKindsOfMixingAreAlikeUnlessSaid) {
  EXPECT_EQ(recipe_of("msf-imagenet", {{"preset", "simple-vit-s"}}).cutmix_alpha, 0.2);
  EXPECT_EQ(recipe_of("msf-imagenet", {{"preset", "simple-vit-s"}}, {{"mixing_alpha", 0.4}}).cutmix_alpha,
            0.4);
  EXPECT_EQ(
      recipe_of("xcit-imagenet", {{"preset", "xcit_nano_12_p16_224"}}, {{"mixing_alpha", 0.4}}).cutmix_alpha,
      1.0);
}

TEST(RecipesTest, WeightDecayEndsWhereItBeginsUnlessSaid) {
  const Json model{{"preset", "simple-vit-s"}};
  EXPECT_EQ(recipe_of("msf-imagenet", model).weight_decay_end, 0.05);
  EXPECT_EQ(recipe_of("msf-imagenet", model, {{"weight_decay", 0.1}}).weight_decay_end, 0.1);
  const auto canonical = [&](const Json& changes) {
    auto document = document_of(model);
    document["recipe"].update(changes);
    return canonical_document(read_trial_or_throw(document)).at("recipe");
  };
  EXPECT_FALSE(canonical({{"weight_decay", 0.1}}).contains("weight_decay_end"));
  EXPECT_FALSE(canonical({{"weight_decay", 0.1}, {"weight_decay_end", 0.1}}).contains("weight_decay_end"));
  EXPECT_EQ(canonical({{"weight_decay_end", 0.4}}).at("weight_decay_end"), 0.4);
  EXPECT_EQ(canonical({{"weight_decay_end", 0}}).at("weight_decay_end"), 0) << "it is not what is left out";
  EXPECT_EQ(canonical({{"weight_decay", 0}, {"weight_decay_end", 0.1}}).at("decay"), "all")
      << "something decays";
}

TEST(RecipesTest, GradientsAreClippedTogetherUnlessSaid) {
  const Json model{{"preset", "simple-vit-s"}};
  EXPECT_EQ(recipe_of("msf-imagenet", model).clip_rule, ClipRule::kGlobal);
  EXPECT_EQ(recipe_of("msf-imagenet", model, {{"clip_rule", "each-tensor"}}).clip_rule,
            ClipRule::kEachTensor);
  EXPECT_EQ(recipe_of("msf-imagenet", model, {{"clip_rule", "each-tensor"}, {"clip_norm", 0}}).clip_rule,
            ClipRule::kGlobal)
      << "nothing is clipped";
}

TEST(RecipesTest, ALearningRateFollowsTheBatchFromThatOfAnother) {
  const Json model{{"preset", "simple-vit-s"}};
  const auto lr_of = [&](Json changes) { return recipe_of("msf-imagenet", model, changes).lr; };
  EXPECT_EQ(lr_of({{"batch", 1024}, {"lr_base", 0.0005}}), 0.001) << "AdamW: by the square root";
  EXPECT_EQ(lr_of({{"batch", 1024}, {"lr_base", 0.0005}, {"lr_scaling", "linear"}}), 0.002);
  EXPECT_EQ(lr_of({{"batch", 1024}, {"lr_base", 0.1}, {"optimiser", "sgd"}}), 0.4);
  EXPECT_EQ(lr_of({{"batch", 1024}, {"lr_base", 0.0005}, {"lr_base_batch", 4096}}), 0.00025);
  Json document = document_of(model), written = document;
  document["recipe"] = {{"use", "msf-imagenet"}, {"batch", 1024}, {"lr_base", 0.0005}};
  written["recipe"] = {{"use", "msf-imagenet"}, {"batch", 1024}, {"lr", 0.001}};
  EXPECT_EQ(canonical_text(read_trial_or_throw(document)), canonical_text(read_trial_or_throw(written)))
      << "it is the same trial";
  document["recipe"]["lr"] = 0.1;
  EXPECT_THAT(problems_of(document), testing::ElementsAre(testing::HasSubstr(
                                         "recipe.lr_base: recipe.lr is set as well; expected one of them")));
}

TEST(RecipesTest, WhatDoesNotGoTogetherIsRefused) {
  auto document = document_of({{"preset", "simple-vit-s"}});
  const auto problem = [&](Json recipe) {
    recipe["use"] = "msf-imagenet", document["recipe"] = recipe;
    const auto problems = problems_of(document);
    return problems.empty() ? std::string{} : problems.front();
  };
  EXPECT_THAT(problem({{"trivial_augment", true}, {"randaugment", "rand-m9"}}),
              testing::HasSubstr("recipe.trivial_augment: there is randaugment: rand-m9 as well"));
  EXPECT_EQ(problem({{"trivial_augment", true}, {"randaugment", "none"}}), "");
  EXPECT_THAT(problem({{"patience", 5}, {"patience_metric", "val_ema/top1"}, {"ema", 0}}),
              testing::HasSubstr("there is no running average"));
  EXPECT_THAT(problem({{"patience", 5}, {"patience_metric", "val/top2"}}), testing::HasSubstr("val/top"));
  EXPECT_EQ(problem({{"position_dropout", 0.1}}), "");
  document = document_of({{"preset", "resnet18"}});
  EXPECT_THAT(problem({{"position_dropout", 0.1}}),
              testing::HasSubstr("recipe.position_dropout: 0.1 of resnet, which adds no positions"));
}

TEST(RecipesTest, AMistakenRandAugmentIsRefused) {
  auto document = document_of({{"preset", "simple-vit-s"}});
  for (const char* text : {"rand-m9-mstd", "rand-", "rand--m9", "rand-m9-", "rand-m9.", "rand-m.5", "rand-x3",
                           "rand-m9m9", "random", ""}) {
    document["recipe"] = {{"use", "msf-imagenet"}, {"randaugment", text}};
    EXPECT_THAT(problems_of(document), testing::ElementsAre(testing::HasSubstr("rand-m9-mstd0.5-inc1")))
        << text;
  }
  for (const char* text : {"none", "rand", "rand-m9-mstd0.5-inc1", "rand-n2-m10.25-p1-mmax10"}) {
    document["recipe"] = {{"use", "msf-imagenet"}, {"randaugment", text}};
    EXPECT_THAT(problems_of(document), testing::IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace abl::config
