// SPDX-License-Identifier: Apache-2.0
#include "config/model/model_section.h"

#include <algorithm>
#include <set>

#include "base/nearest_name.h"
#include "config/model/family.h"
#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ModelSectionTest, AKeyOfAnotherFamilyIsNamedWithItsOwn) {
  EXPECT_EQ(only_problem(R"({"preset": "vit_small_patch16_224", "window": 7})"),
            "model.window: window is a key of swin and swin-v2, not of vit");
  std::vector<std::string> with_patches;
  for (const Family* family : families())
    if (std::ranges::find(family->keys, "patch") != family->keys.end())
      with_patches.emplace_back(family->name);
  EXPECT_THAT(with_patches, AllOf(Contains("simple-vit"), Contains("xcit"), Not(Contains("resnet"))));
  EXPECT_EQ(only_problem(R"({"preset": "resnet50", "patch": 16})"),
            "model.patch: patch is a key of " + all_of(with_patches) + ", not of resnet");
  EXPECT_EQ(only_problem(R"({"preset": "simple-vit-s", "eta": "wrong"})"),
            "model.eta: eta is a key of xcit, not of simple-vit");
}

TEST(ModelSectionTest, ASectionOfAnotherFamilyIsNamedWithItsOwn) {
  EXPECT_EQ(only_problem(R"({"preset": "xcit_nano_12_p16_224", "attention": {"kernel": "gaussian"}})"),
            "model.attention: attention is a key of simple-vit and swin, not of xcit");
  EXPECT_EQ(only_problem(R"({"preset": "swinv2_tiny_window8_256", "block": 3})"),
            "model.block: block is a key of xcit, not of swin-v2");
}

TEST(ModelSectionTest, AnUnknownKeyIsToldTheKeysOfTheFamily) {
  EXPECT_EQ(only_problem(R"({"preset": "resnet50", "cardinalty": 32})"),
            "model.cardinalty: unknown key; expected preset, family, stage_depths, stage_widths, bottleneck, "
            "cardinality "
            "or base_width "
            "(cardinality)");
}

TEST(ModelSectionTest, OnlyTheKeysOfTheFamilyAreRequired) {
  EXPECT_THAT(
      problems_of_model(R"({"family": "swin", "dim": 96, "patch": 4})"),
      ElementsAre("model.stage_depths: missing; expected a list of whole numbers, or a preset that sets it",
                  "model.stage_heads: missing; expected a list of whole numbers, or a preset that sets it"));
  EXPECT_THAT(problems_of_model(R"({"family": "efficientnet"})"), IsEmpty());
  EXPECT_THAT(problems_of_model(R"({"preset": "resnet50", "family": "xcit"})"),
              Contains("model.dim: missing; expected a whole number, or a preset that sets it"));
}

TEST(ModelSectionTest, AnUnknownFamilyOrPresetIsTheOnlyProblem) {
  EXPECT_EQ(only_problem(R"({"family": "swinn", "dim": 96, "stage_depths": [2, 2], "window": 7, "key": {}})"),
            "model.family: unknown value 'swinn'; expected " + any_of(family_names()) + " (swin)");
  EXPECT_THAT(only_problem(R"({"preset": "swin_tiny_patch4_windw7_224", "window": 8})"),
              HasSubstr("(swin_tiny_patch4_window7_224)"));
  EXPECT_THAT(only_problem(R"({"presett": "swin_tiny_patch4_window7_224", "window": 8})"),
              HasSubstr("model.presett: unknown key"));
  EXPECT_THAT(only_problem(R"({"famly": "swin", "window": 8})"), HasSubstr("model.famly: unknown key"));
}

TEST(ModelSectionTest, AMisspeltPresetNamesTheNearest) {
  EXPECT_THAT(only_problem(R"({"preset": "vit_smal_patch16_224"})"),
              AllOf(HasSubstr("unknown value 'vit_smal_patch16_224'; expected one of the "),
                    HasSubstr("that docs/config-reference.md lists (vit_small_patch16_224)")));
  EXPECT_THAT(only_problem(R"({"preset": 7})"), HasSubstr("model.preset: expected one of the "));
}

TEST(ModelSectionTest, TruthValuesAreTrueOrFalse) {
  EXPECT_FALSE(model_from(R"({"preset": "vit_small_patch16_224", "qkv_bias": false})").qkv_bias);
  EXPECT_EQ(only_problem(R"({"preset": "vit_small_patch16_224", "qkv_bias": "no"})"),
            "model.qkv_bias: expected true or false; got \"no\"");
}

TEST(ModelSectionTest, ProblemsOfAListNameTheEntry) {
  EXPECT_EQ(only_problem(R"({"preset": "resnet50", "stage_depths": [3, 0, 6, 3]})"),
            "model.stage_depths.2: 0 is out of range; expected a whole number, 1 to 1000");
  EXPECT_THAT(problems_of_model(R"({"preset": "resnet50", "stage_depths": [3, 2.5, "6", 3]})"),
              ElementsAre("model.stage_depths.2: 2.5 is not an integer; expected a whole number, 1 to 1000",
                          "model.stage_depths.3: expected a whole number, 1 to 1000; got \"6\""));
  EXPECT_EQ(only_problem(R"({"preset": "resnet50", "stage_depths": 4})"),
            "model.stage_depths: expected a list of 1 to 8 whole numbers, each 1 to 1000; got 4");
  EXPECT_THAT(only_problem(R"({"preset": "resnet50", "stage_depths": []})"), HasSubstr("; got []"));
}

TEST(ModelSectionTest, ListsAreTypedLikeNumbers) {
  EXPECT_EQ(canonical_model_of(R"({"preset": "resnet50", "stage_depths": [3.0, 4, 6, 3.0]})"),
            canonical_model_of(R"({"preset": "resnet50"})"));
  EXPECT_EQ(canonical_model_of(R"({"preset": "resnet50", "stage_widths": [64, 128, 256, 512]})"),
            canonical_model_of(R"({"preset": "resnet50"})"));
}

TEST(ModelSectionTest, CanonicalAndFullFormHaveTheKeysOfTheFamilyAlone) {
  EXPECT_EQ(canonical_model_of(R"({"preset": "efficientnet_b0"})"), R"({"family":"efficientnet"})");
  EXPECT_EQ(canonical_model_of(R"({"preset": "xcit_nano_12_p8_224"})"),
            R"({"depth":12,"dim":128,"family":"xcit","heads":4,"patch":8,"tokens_norm":false})");
  EXPECT_EQ(
      full_model(model_from(R"({"preset": "resnext50_32x4d"})")).dump(),
      R"({"base_width":4,"bottleneck":true,"cardinality":32,"family":"resnet","preset":"resnext50_32x4d",)"
      R"("stage_depths":[3,4,6,3],"stage_widths":[64,128,256,512]})");
  const Json full = full_model(model_from(R"({"preset": "swin_tiny_patch4_window7_224"})"));
  EXPECT_EQ(full["key"]["method"], "linear");
  EXPECT_EQ(full["attention"]["kernel"], "dot");
  EXPECT_FALSE(full.contains("depth"));
}

TEST(ModelSectionTest, WhatAPresetSetsForItsFamilyDoesNotLeakIntoAnother) {
  EXPECT_EQ(canonical_model_of(R"({"preset": "simple-vit-nano", "family": "vit", "mlp_ratio": 2})"),
            R"({"depth":1,"dim":128,"family":"vit","heads":4,"mlp_ratio":2,"patch":8})");
}

TEST(ModelSectionTest, LinearKeysLinearEmbeddingsAndDefaultBlocksLeaveNoTrace) {
  EXPECT_EQ(canonical_model_of(R"({"preset": "key-vit-s", "key": {"method": "linear"}})"),
            canonical_model_of(R"({"preset": "key-vit-s"})"));
  EXPECT_EQ(canonical_model_of(R"({"preset": "xcit_nano_12_p16_224", "embedding": {"kind": "linear"},
                                   "block": {"attention": "channels", "lpi": true}})"),
            canonical_model_of(R"({"preset": "xcit_nano_12_p16_224"})"));
}

TEST(PresetsTest, EveryBuiltInFamilyHasOneAndNamesAreUnique) {
  std::set<std::string_view> names, with_preset;
  for (const Preset& preset : presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    with_preset.insert(preset.family);
  }
  const auto built_in =
      std::ranges::count_if(families(), [](auto* family) { return family->plugin != PluginPart::kModel; });
  EXPECT_EQ(with_preset.size(), static_cast<std::size_t>(built_in));
}

TEST(PresetsTest, XcitStartsAndNormalisesAsReleased) {
  for (const Preset& preset : presets()) {
    if (preset.family != "xcit") continue;
    EXPECT_EQ(preset.sizes.eta, preset.sizes.depth == 24 ? 1e-5 : 1.0) << preset.name;
    EXPECT_EQ(preset.sizes.tokens_norm, preset.sizes.dim != 128) << preset.name;
    EXPECT_EQ(preset.sizes.patch, preset.name.find("_p8_") == std::string_view::npos ? 16 : 8) << preset.name;
  }
}

TEST(PresetsTest, LayersAreTheDepthOrTheSumOfSwinsStages) {
  EXPECT_EQ(layers_of(model_from(R"({"preset": "swin_small_patch4_window7_224"})")), 24);
  EXPECT_EQ(layers_of(model_from(R"({"preset": "xcit_large_24_p8_224"})")), 24);
  EXPECT_EQ(layers_of(model_from(R"({"preset": "resnet101"})")), 0);
}

TEST(ModelSectionTest, TheWindowOfInitialWeightsIsPartOfWhatATrialIs) {
  const auto usual = canonical_model_of(R"({"preset": "swinv2_tiny_window8_256", "window": 16})");
  const auto scaled = canonical_model_of(
      R"({"preset": "swinv2_tiny_window8_256", "window": 16, "pretrained_window": [8, 8, 8, 8]})");
  EXPECT_THAT(usual, Not(HasSubstr("pretrained_window"))) << "what has no such weights keeps its identity";
  EXPECT_THAT(scaled, HasSubstr(R"("pretrained_window":[8,8,8,8])"));
  EXPECT_THAT(canonical_model_of(R"({"preset": "swinv2_base_window12to16_192to256"})"),
              HasSubstr(R"("pretrained_window":[12,12,12,6])"));
  EXPECT_EQ(only_problem(R"({"preset": "swin_tiny_patch4_window7_224", "pretrained_window": [7, 7, 7, 7]})"),
            "model.pretrained_window: pretrained_window is a key of swin-v2, not of swin");
}

}  // namespace
}  // namespace abl::config
