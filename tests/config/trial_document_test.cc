// SPDX-License-Identifier: Apache-2.0
#include "config/document/trial_document.h"

#include "base/error.h"
#include "config/model/family.h"
#include "config/recipe/recipes.h"
#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The one problem of the document with `value` at `pointer`.
std::string problem_with(const char* pointer, const Json& value) {
  Json changed = document();
  changed[Json::json_pointer{pointer}] = value;
  const auto problems = problems_of(changed);
  EXPECT_EQ(problems.size(), 1u) << pointer << " = " << value;
  return problems.empty() ? "" : problems.front();
}

TEST(ReadTrialTest, PresetRecipeAndDataSetFillInTheRest) {
  const TrialConfig trial = read_trial_or_throw(document());
  EXPECT_EQ(trial.model.dim, 384);
  EXPECT_EQ(trial.model.mlp_dim, 1536);
  EXPECT_EQ(trial.model.attention.size(), 12u);
  EXPECT_EQ(trial.model.attention.back().share, "QKVPW");
  EXPECT_EQ(trial.data.classes, 1000);
  EXPECT_EQ(trial.data.image_size, 224);
  EXPECT_EQ(trial.recipe.batch, 1024);
  EXPECT_EQ(trial.recipe.mixing_alpha, 0.2);
  EXPECT_EQ(trial.recipe.precision, config::Precision::kBFloat16);
  EXPECT_EQ(trial.seed, 1);
}

TEST(ReadTrialTest, TheMlpFollowsTheWidthThatIsWritten) {
  Json changed = document();
  changed["model"]["dim"] = 256;
  EXPECT_EQ(read_trial_or_throw(changed).model.mlp_dim, 1024);
}

TEST(ReadTrialTest, APresetMayHaveAnMlpOfItsOwn) {
  EXPECT_EQ(model_from(R"({"preset": "simple-vit-nano"})").mlp_dim, 256);
  EXPECT_EQ(model_from(R"({"preset": "key-vit-b"})").mlp_dim, 3072);
}

TEST(ReadTrialTest, EveryPresetAndRecipeIsUsable) {
  for (const Preset& preset : presets()) {
    for (const Recipe& recipe : recipes()) {
      if (recipe.task) continue;  // task_section_test.cc
      Json changed = document_of({{"preset", preset.name}});
      changed["recipe"] = {{"use", recipe.name}};
      EXPECT_THAT(problems_of(changed), IsEmpty()) << preset.name << " with " << recipe.name;
    }
  }
}

TEST(ReadTrialTest, MeanAndDeviationAreThreeNumbersAndImageNetsWhereNothingIsSaid) {
  Json changed = document();
  changed["data"]["mean"] = {0.485, 0.456, 0.406};
  EXPECT_EQ(canonical_text(read_trial_or_throw(changed)), canonical_text(read_trial_or_throw(document())));
  changed["data"]["mean"] = {0.5, 0.5, 0.5};
  EXPECT_THAT(canonical_text(read_trial_or_throw(changed)), HasSubstr(R"("mean":[0.5,0.5,0.5])"));
  EXPECT_THAT(problem_with("/data/mean", {0.5, 0.5}), HasSubstr("data.mean: 2 numbers; expected 3"));
  EXPECT_THAT(problem_with("/data/mean", {0.5, 0.5, 123}),
              HasSubstr("data.mean.3: 123 is out of range; expected a "
                        "number, 0 to 1"));
  EXPECT_THAT(problem_with("/data/std", {0.5, 0.5, 0}), HasSubstr("data.std.3: 0 is out of range"));
  EXPECT_THAT(problem_with("/data/std", 0.5), HasSubstr("expected a list of 1 to 8 numbers"));
}

TEST(ReadTrialTest, AMisspeltKeyNamesTheNearest) {
  EXPECT_THAT(problem_with("/model/attention/kernal", "dot"),
              HasSubstr("model.attention.kernal: unknown key; expected kernel, probe"));
  EXPECT_THAT(problem_with("/recipe/epoch", 3), HasSubstr("(epochs)"));
  EXPECT_THAT(problem_with("/modle", 3), HasSubstr("(model)"));
}

TEST(ReadTrialTest, AWrongChoiceNamesTheNearest) {
  EXPECT_EQ(problem_with("/model/attention/kernel", "gausian"),
            "model.attention.kernel: unknown value 'gausian'; expected dot, gaussian or none (gaussian)");
  EXPECT_THAT(problem_with("/model/preset", "simple-vit-x"),
              HasSubstr("model.preset: unknown value 'simple-vit-x'; expected one of the "));
  EXPECT_THAT(problem_with("/recipe/use", "msf-imagnet"), HasSubstr("(msf-imagenet)"));
}

TEST(ReadTrialTest, TypesAndRangesAreChecked) {
  EXPECT_EQ(problem_with("/recipe/epochs", "ten"), "recipe.epochs: expected a number, above 0; got \"ten\"");
  EXPECT_EQ(problem_with("/recipe/epochs", 0),
            "recipe.epochs: 0 is out of range; expected a number, above 0");
  EXPECT_EQ(problem_with("/recipe/flip", 1.5), "recipe.flip: 1.5 is out of range; expected a number, 0 to 1");
  EXPECT_THAT(problem_with("/recipe/batch", 2.5), HasSubstr("recipe.batch: 2.5 is not an integer"));
  EXPECT_THAT(problem_with("/recipe/batch", true), HasSubstr("expected a whole number"));
  EXPECT_THAT(problem_with("/model/dim", 1e300), HasSubstr("out of range"));
  EXPECT_THAT(problem_with("/seed", -1), HasSubstr("seed: -1 is out of range"));
  EXPECT_THAT(problem_with("/data/name", 7), HasSubstr("data.name: expected a text; got 7"));
  EXPECT_THAT(problem_with("/data/name", "../etc"), HasSubstr("data.name: invalid name '../etc'"));
  EXPECT_THAT(problem_with("/model", "simple-vit-s"),
              HasSubstr("model: expected a mapping; got \"simple-vit-s\""));
  EXPECT_THAT(problem_with("/model/attention", nullptr),
              HasSubstr("model.attention: expected a mapping; got nothing"));
}

TEST(ReadTrialTest, ModelAndImagesMustFitTogether) {
  EXPECT_THAT(problem_with("/data/image_size", 30),
              HasSubstr("model.patch: patches of 16 do not divide the image size 30"));
}

TEST(ReadTrialTest, WithoutAPresetTheDimensionsAreRequired) {
  Json changed = document();
  changed["model"] = {{"dim", 64}};
  EXPECT_THAT(problems_of(changed),
              ElementsAre("model.depth: missing; expected a whole number, or a preset that sets it",
                          "model.heads: missing; expected a whole number, or a preset that sets it"));
}

TEST(ReadTrialTest, WhatAMisspeltPresetOrRecipeWouldSetIsNotMissing) {
  Json changed = document();
  changed["model"] = {{"presett", "simple-vit-s"}};
  changed["recipe"] = {{"ues", "demo"}};
  EXPECT_THAT(problems_of(changed),
              ElementsAre(HasSubstr("model.presett: unknown key"), HasSubstr("recipe.ues: unknown key")));
  changed = document();
  changed["data"]["nmae"] = changed["data"]["name"];
  changed["data"].erase("name");
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("data.nmae: unknown key")));
  changed = document();
  changed["modle"] = changed["model"];
  changed.erase("model");
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("modle: unknown key")));
}

TEST(ReadTrialTest, AnUnknownDataSetStatesItsClassesAndSize) {
  Json changed = document_of({{"dim", 384}, {"depth", 12}, {"heads", 6}});
  changed["data"] = {{"name", "flowers"}};
  EXPECT_THAT(problems_of(changed), ElementsAre("data.image_size: missing; expected a whole number; "
                                                "unknown data set 'flowers'",
                                                "data.classes: missing; expected a whole number; "
                                                "unknown data set 'flowers'"));
  changed["data"] = {{"name", "flowers"}, {"image_size", 224}, {"classes", 102}};
  EXPECT_THAT(problems_of(changed), IsEmpty());
}

int image_size_of(const Json& model, const Json& data) {
  Json changed = document_of(model);
  changed["data"] = data;
  return read_trial_or_throw(changed).data.image_size;
}

TEST(ReadTrialTest, APresetGivesTheImageSizeWhereTheDataHasNone) {
  const Json swin_v2{{"preset", "swinv2_tiny_window8_256"}}, vit{{"preset", "vit_tiny_patch16_224"}};
  EXPECT_EQ(image_size_of(swin_v2, {{"name", "imagenet-1k"}}), 256);
  EXPECT_EQ(image_size_of(swin_v2, {{"name", "imagenet-1k"}, {"image_size", 224}}), 224) << "what is written";
  EXPECT_EQ(image_size_of(swin_v2, {{"name", "flowers"}, {"classes", 102}}), 256);
  EXPECT_EQ(image_size_of(vit, {{"name", "imagenet-1k"}}), 224);
  EXPECT_EQ(image_size_of(vit, {{"name", "flowers"}, {"classes", 102}}), 224);
}

TEST(ReadTrialTest, DataOfOneSizeKeepsItWhateverThePresetIsMadeFor) {
  const Json swin_v2{{"preset", "swinv2_tiny_window8_256"}};
  EXPECT_EQ(image_size_of(swin_v2, {{"name", "cifar10"}}), 32);
  EXPECT_EQ(image_size_of(swin_v2, {{"name", "shapes"}}), 32);
}

TEST(ReadTrialTest, AModelForSmallImagesTakesTheSizeOfTheData) {
  const Json nano{{"preset", "simple-vit-nano"}};
  EXPECT_EQ(image_size_of(nano, {{"name", "imagenet-1k"}}), 224);
  EXPECT_EQ(image_size_of(nano, {{"name", "shapes"}}), 32);
  Json unknown = document_of(nano);
  unknown["data"] = {{"name", "flowers"}, {"classes", 102}};
  EXPECT_THAT(problems_of(unknown), ElementsAre(HasSubstr("data.image_size: missing")));
}

TEST(ReadTrialTest, MissingSectionsAreNamed) {
  EXPECT_THAT(problems_of(Json::object()),
              ElementsAre("model: missing; expected a mapping", "data: missing; expected a mapping",
                          "recipe: missing; expected a mapping"));
  EXPECT_THAT(problems_of(Json::array()), ElementsAre("trial: expected a mapping; got []"));
}

TEST(ReadTrialTest, AllProblemsComeAtOnce) {
  Json changed = document();
  changed["model"]["attention"]["kernel"] = "gausian";
  changed["data"]["classes"] = 1;
  changed["recipe"]["lr"] = -1;
  EXPECT_EQ(problems_of(changed).size(), 3u);
  try {
    read_trial_or_throw(changed);
    FAIL() << "a wrong document must not be usable";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'gaussian'?\ndata.classes: 1 is out of range"));
  }
}

}  // namespace
}  // namespace abl::config
