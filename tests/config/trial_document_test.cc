// SPDX-License-Identifier: Apache-2.0
#include "config/trial_document.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "config/presets.h"
#include "config/recipes.h"

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Json document() {
  return Json::parse(R"({
    "model": {"preset": "simple-vit-s", "attention": {"kernel": "gaussian", "probe": "inside"}},
    "data": {"name": "imagenet-1k"},
    "recipe": {"use": "msf-imagenet", "epochs": 100},
    "seed": 1})");
}

/// "path: message (nearest)" for each problem.
std::vector<std::string> problems_of(const Json& document) {
  std::vector<Problem> problems;
  read_trial(document, problems);
  std::vector<std::string> texts;
  for (const Problem& problem : problems) {
    texts.push_back(problem.path + ": " + problem.message +
                    (problem.nearest.empty() ? "" : " (" + problem.nearest + ")"));
  }
  return texts;
}

/// The one problem of the document with `value` at `pointer`.
std::string problem_with(const char* pointer, const Json& value) {
  Json changed = document();
  changed[Json::json_pointer{pointer}] = value;
  const auto problems = problems_of(changed);
  EXPECT_EQ(problems.size(), 1u) << pointer << " = " << value;
  return problems.empty() ? "" : problems.front();
}

std::string canonical(const Json& document) { return canonical_text(read_trial_or_throw(document)); }

std::string canonical_with(const char* pointer, const Json& value) {
  Json changed = document();
  changed[Json::json_pointer{pointer}] = value;
  return canonical(changed);
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
  EXPECT_EQ(trial.recipe.precision, "bf16");
  EXPECT_EQ(trial.seed, 1);
}

TEST(ReadTrialTest, TheMlpFollowsTheWidthThatIsWritten) {
  Json changed = document();
  changed["model"]["dim"] = 256;
  EXPECT_EQ(read_trial_or_throw(changed).model.mlp_dim, 1024);
}

TEST(ReadTrialTest, APresetMayHaveAnMlpOfItsOwn) {
  for (const Preset& preset : presets()) {
    Json changed = document();
    changed["model"]["preset"] = preset.name;
    const int expected = preset.mlp_dim > 0 ? preset.mlp_dim : 4 * preset.dim;
    EXPECT_EQ(read_trial_or_throw(changed).model.mlp_dim, expected) << preset.name;
  }
}

TEST(ReadTrialTest, TheMsfRecipeGoesByTheModel) {
  Json changed = document();
  changed["model"]["preset"] = "simple-vit-b";
  EXPECT_EQ(read_trial_or_throw(changed).recipe.batch, 768);
  EXPECT_EQ(read_trial_or_throw(changed).recipe.mixing_alpha, 0.5);
  changed["model"]["preset"] = "simple-vit-ti";
  EXPECT_EQ(read_trial_or_throw(changed).recipe.mixing_alpha, 0.1);
}

TEST(ReadTrialTest, EveryPresetAndRecipeIsUsable) {
  for (const Preset& preset : presets()) {
    for (const Recipe& recipe : recipes()) {
      Json changed = document();
      changed["model"]["preset"] = preset.name;
      changed["recipe"] = {{"use", recipe.recipe.use}};
      EXPECT_THAT(problems_of(changed), IsEmpty()) << preset.name << " with " << recipe.recipe.use;
    }
  }
}

TEST(ReadTrialTest, AMisspeltKeyNamesTheNearest) {
  EXPECT_THAT(problem_with("/model/attention/kernal", "dot"),
              HasSubstr("model.attention.kernal: unknown key; expected kernel, probe"));
  EXPECT_THAT(problem_with("/recipe/epoch", 3), HasSubstr("(epochs)"));
  EXPECT_THAT(problem_with("/modle", 3), HasSubstr("(model)"));
}

TEST(ReadTrialTest, AWrongChoiceNamesTheNearest) {
  EXPECT_EQ(problem_with("/model/attention/kernel", "gausian"),
            "model.attention.kernel: 'gausian' is not known; expected dot, gaussian or none (gaussian)");
  EXPECT_THAT(problem_with("/model/preset", "simple-vit-x"),
              HasSubstr("model.preset: 'simple-vit-x' is not known; expected simple-vit-nano"));
  EXPECT_THAT(problem_with("/recipe/use", "msf-imagnet"), HasSubstr("(msf-imagenet)"));
}

TEST(ReadTrialTest, TypesAndRangesAreChecked) {
  EXPECT_EQ(problem_with("/recipe/epochs", "ten"), "recipe.epochs: expected a number, above 0; got \"ten\"");
  EXPECT_EQ(problem_with("/recipe/epochs", 0),
            "recipe.epochs: 0 is out of range; expected a number, above 0");
  EXPECT_EQ(problem_with("/recipe/flip", 1.5), "recipe.flip: 1.5 is out of range; expected a number, 0 to 1");
  EXPECT_THAT(problem_with("/recipe/batch", 2.5), HasSubstr("recipe.batch: 2.5 is not whole"));
  EXPECT_THAT(problem_with("/recipe/batch", true), HasSubstr("expected a whole number"));
  EXPECT_THAT(problem_with("/model/dim", 1e300), HasSubstr("out of range"));
  EXPECT_THAT(problem_with("/seed", -1), HasSubstr("seed: -1 is out of range"));
  EXPECT_THAT(problem_with("/data/name", 7), HasSubstr("data.name: expected a text; got 7"));
  EXPECT_THAT(problem_with("/data/name", "../etc"), HasSubstr("data.name: '../etc' is no name"));
  EXPECT_THAT(problem_with("/model", "simple-vit-s"),
              HasSubstr("model: expected a mapping; got \"simple-vit-s\""));
  EXPECT_THAT(problem_with("/model/attention", nullptr),
              HasSubstr("model.attention: expected a mapping; got nothing"));
}

TEST(ReadTrialTest, SizesMustFitTogether) {
  EXPECT_THAT(problem_with("/data/image_size", 30),
              HasSubstr("model.patch: patches of 16 do not divide the image size 30"));
  EXPECT_THAT(problem_with("/model/dim", 130), HasSubstr("model.dim: 130 is not a multiple of 4"));
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
  Json changed = document();
  changed["data"] = {{"name", "flowers"}};
  EXPECT_THAT(problems_of(changed), ElementsAre("data.image_size: missing; expected a whole number; "
                                                "'flowers' is none of the data sets that are known",
                                                "data.classes: missing; expected a whole number; 'flowers' "
                                                "is none of the data sets that are known"));
  changed["data"] = {{"name", "flowers"}, {"image_size", 224}, {"classes", 102}};
  EXPECT_THAT(problems_of(changed), IsEmpty());
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

TEST(CanonicalTest, TheTextIsPinned) {
  // A change here changes the identity of every stored trial: it needs a new kResultVersion and a good
  // reason.
  EXPECT_EQ(
      canonical(document()),
      R"({"data":{"classes":1000,"image_size":224,"name":"imagenet-1k"},)"
      R"("model":{"attention":{"kernel":"gaussian","probe":"inside"},"depth":12,"dim":384,"heads":6},)"
      R"("recipe":{"appearance":"3-augment","batch":1024,"clip_norm":1,"color_jitter":0.3,"crop":"resized","epochs":100,)"
      R"("eval_resize":256,"flip":0.5,"label_smoothing":0.1,"lr":0.001,"mixing":"mixup-or-cutmix","mixing_alpha":0.2,)"
      R"("precision":"bf16","repeated_augmentation":3,"warmup":0.1,"warmup_start":0.03333333333333333,"weight_decay":0.05},"seed":1})");
}

TEST(CanonicalTest, EqualTrialsHaveEqualText) {
  const std::string text = canonical(document());
  EXPECT_EQ(canonical_with("/recipe/epochs", 100.0), text);
  EXPECT_EQ(canonical_with("/recipe/beta2", 0.999), text) << "a key equal to its default";
  EXPECT_EQ(canonical_with("/recipe/crop_padding", 9), text) << "no effect without crop: pad";
  EXPECT_EQ(canonical_with("/model/attention/layout", "block"), text) << "no effect with one group";
  EXPECT_EQ(canonical_with("/model/attention/tied_weight_scale", 0.5), text) << "no effect on a free WEIGHT";
  EXPECT_EQ(canonical_with("/model/attention/share", "ABCDE"), text) << "letters are names";
  EXPECT_EQ(canonical_with("/model/attention/layers", "1-12"), text);
  EXPECT_EQ(canonical_with("/data/image_size", 224), text);
}

TEST(CanonicalTest, DifferentTrialsHaveDifferentText) {
  const std::string text = canonical(document());
  for (const auto& [pointer, value] :
       std::vector<std::pair<const char*, Json>>{{"/seed", 2},
                                                 {"/recipe/epochs", 100.5},
                                                 {"/model/attention/share", "QKKKW"},
                                                 {"/model/attention/groups", 2},
                                                 {"/model/attention/layers", "1-11"},
                                                 {"/model/patch", 32},
                                                 {"/data/train_images", 10},
                                                 {"/data/damaged", "skip"},
                                                 {"/recipe/precision", "fp32"}}) {
    EXPECT_NE(canonical_with(pointer, value), text) << pointer;
  }
}

TEST(CanonicalTest, APresetIsItsDimensionsWrittenOut) {
  Json written = document();
  written["model"].erase("preset");
  written["model"].update(
      {{"dim", 384}, {"depth", 12}, {"heads", 6}, {"mlp_dim", 1536}, {"patch", 16}, {"dim_head", 64}});
  EXPECT_EQ(canonical(written), canonical(document()));
}

TEST(CanonicalTest, AnEvaluationSizeOfTheImageIsNoResize) {
  EXPECT_EQ(canonical_with("/recipe/eval_resize", 224), canonical_with("/recipe/eval_resize", 0));
}

TEST(CanonicalTest, CanonicalTextReadsBackAsItself) {
  for (const Json& attention :
       {Json::parse(
            R"({"kernel": "gaussian", "probe": "inside", "layers": "2-3", "elsewhere": {"share": "QKV-Q"}})"),
        Json::parse(R"({"kernel": "none"})"),
        Json::parse(R"({"share": "QKV-Q", "tied_weight_scale": 0.125})")}) {
    Json changed = document();
    changed["model"]["attention"] = attention;
    changed["data"] = {{"name", "shapes"}, {"image_size", 32}};
    const std::string text = canonical(changed);
    EXPECT_EQ(canonical(Json::parse(text)), text);
    EXPECT_THAT(text, Not(HasSubstr("preset")));
  }
}

TEST(CanonicalTest, TheHashIsSha256OfTheText) {
  EXPECT_EQ(config_hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(ModelDocumentTest, HoldsWhatCountsDependOnAndReadsBack) {
  const TrialConfig trial = read_trial_or_throw(document());
  const std::string text = canonical_model_text(trial);
  EXPECT_EQ(
      text,
      R"({"data":{"classes":1000,"image_size":224},)"
      R"("model":{"attention":{"kernel":"gaussian","probe":"inside"},"depth":12,"dim":384,"heads":6}})");
  EXPECT_EQ(canonical_model_text(read_model_or_throw(Json::parse(text))), text);
  EXPECT_EQ(canonical_model_text(read_model_or_throw(document())), text) << "a whole trial serves too";
}

TEST(ModelDocumentTest, AWrongOneIsRefused) {
  EXPECT_THROW(read_model_or_throw(Json::parse(R"({"model": {"preset": "simple-vit-s"}})")), Error);
  EXPECT_THROW(
      read_model_or_throw(Json::parse(R"({"model": {"preset": "simple-vit-s"}, "data": {"classes": 10}})")),
      Error);
  EXPECT_THROW(read_model_or_throw(Json("x")), Error);
}

TEST(FullDocumentTest, ShowsEveryKey) {
  const Json full = full_document(read_trial_or_throw(document()));
  EXPECT_EQ(full["model"]["preset"], "simple-vit-s");
  EXPECT_EQ(full["model"]["attention"]["groups"], 1);
  EXPECT_EQ(full["recipe"]["beta1"], 0.9);
  EXPECT_EQ(full["data"]["damaged"], "fail");
}

}  // namespace
}  // namespace abl::config
