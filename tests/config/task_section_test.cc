// SPDX-License-Identifier: Apache-2.0
#include "config/task/task_section.h"

#include "config/model/family.h"
#include "config/recipe/recipes.h"
#include "config/tasks.h"
#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Json segmenting() {
  return Json::parse(R"({
    "model": {"preset": "xcit_tiny_12_p16_224"},
    "data": {"name": "ade20k"},
    "task": {"kind": "segment"},
    "recipe": {"use": "xcit-sem-fpn"},
    "seed": 1})");
}

/// The one problem of a segmentation with `value` at `pointer`.
std::string segmenting_with(const char* pointer, const Json& value) {
  Json changed = segmenting();
  changed[Json::json_pointer{pointer}] = value;
  const auto problems = problems_of(changed);
  EXPECT_EQ(problems.size(), 1u) << pointer << " = " << value << testing::PrintToString(problems);
  return problems.empty() ? "" : problems.front();
}

TEST(TaskSection, WithoutOneImagesAreClassifiedAndNothingSaysSo) {
  Json written = document();
  const auto text = canonical_text(read_trial_or_throw(written));
  written["task"] = {{"kind", "classify"}};
  const auto trial = read_trial_or_throw(written);
  EXPECT_EQ(trial.task, TaskConfig{});
  EXPECT_EQ(canonical_text(trial), text);
  for (const auto& made : {canonical_document(trial), full_document(trial), effective_document(trial),
                           Json::parse(canonical_model_text(trial))})
    EXPECT_FALSE(made.contains("task")) << made;
  EXPECT_THAT(names(recipe_fields()), testing::Contains("scale_range"));
  EXPECT_FALSE(full_document(trial)["recipe"].contains("scale_range")) << "it says nothing of a classifier";
}

TEST(TaskSection, ASegmentationFollowsItsDataAndHead) {
  const auto trial = read_trial_or_throw(segmenting());
  EXPECT_EQ(trial.task.kind, TaskKind::kSegment);
  EXPECT_EQ(trial.task.head, DenseHead::kSemanticFpn);
  EXPECT_EQ(trial.task.width, 128);
  EXPECT_EQ(trial.data.classes, 150);
  EXPECT_EQ(trial.data.image_size, 512);
  EXPECT_THAT(trial.recipe.scale_range, ElementsAre(0.5, 2));
  EXPECT_EQ(canonical_document(trial)["task"], Json::parse(R"({"kind": "segment"})"));
  EXPECT_EQ(Json::parse(canonical_model_text(trial))["task"], Json::parse(R"({"kind": "segment"})"));
  Json changed = segmenting();
  changed["task"] = {{"kind", "segment"}, {"head", "uper-net"}, {"inference", "slide"}};
  const auto other = read_trial_or_throw(changed);
  EXPECT_EQ(other.task.width, 512);
  EXPECT_EQ(canonical_document(other)["task"],
            Json::parse(R"({"kind": "segment", "head": "uper-net", "inference": "slide"})"));
  EXPECT_EQ(Json::parse(canonical_model_text(other))["task"],
            Json::parse(R"({"kind": "segment", "head": "uper-net"})"))
      << "how it is judged changes no count";
}

TEST(TaskSection, ADocumentComesBackFromItsCanonicalText) {
  for (const auto& trial : {segmenting(), document()}) {
    const auto text = canonical_text(read_trial_or_throw(trial));
    EXPECT_EQ(canonical_text(read_trial_or_throw(Json::parse(text))), text);
  }
  const auto counted = canonical_model_text(read_trial_or_throw(segmenting()));
  EXPECT_EQ(canonical_model_text(read_model_or_throw(Json::parse(counted))), counted);
}

TEST(TaskSection, ItsEffectiveDocumentHasNoKeyThatSaysNothing) {
  const auto document = effective_document(read_trial_or_throw(segmenting()));
  for (const auto key : task_of(TaskKind::kSegment).no_recipe_keys)
    EXPECT_FALSE(document["recipe"].contains(key)) << key;
  EXPECT_TRUE(document["recipe"].contains("distortion"));
}

TEST(TaskSection, EveryKeyThatSaysNothingIsAKeyOfRecipes) {
  const auto known = names(recipe_fields());
  for (const auto& task : tasks())
    for (const auto& keys : {task.no_recipe_keys, task.only_recipe_keys})
      for (const auto key : keys) EXPECT_THAT(known, testing::Contains(key)) << name_of(task.kind);
}

TEST(TaskSection, DataSayWhatCanBeLearned) {
  EXPECT_EQ(segmenting_with("/data", {{"name", "imagenet-1k"}}),
            "data.name: imagenet-1k has no labels of pixels; expected task: {kind: classify}, {kind: dino}, "
            "{kind: probe-linear} or {kind: probe-knn}");
  Json changed = document();
  changed["data"] = {{"name", "ade20k"}};
  EXPECT_THAT(problems_of(changed),
              ElementsAre("data.name: ade20k has no labels of images; expected task: {kind: segment}"));
  EXPECT_THAT(segmenting_with("/data/classes", 151), HasSubstr("151 of ade20k, which has 150"));
  EXPECT_THAT(segmenting_with("/data", {{"name", "mine"}, {"classes", 300}, {"image_size", 512}}),
              HasSubstr("data.classes: 300 labels of pixels; expected at most 255"));
  EXPECT_THAT(segmenting_with("/data/held_out", 0.1), HasSubstr("expected 0"));
  EXPECT_THAT(segmenting_with("/data/decode", "reduced"), HasSubstr("expected full"));
}

TEST(TaskSection, WhatSaysNothingOfATaskIsRefused) {
  EXPECT_EQ(segmenting_with("/recipe/mixing", "mixup"),
            "recipe.mixing: mixup: says nothing of a task of kind segment; expected none");
  EXPECT_THAT(segmenting_with("/recipe/label_smoothing", 0.1), HasSubstr("expected 0"));
  EXPECT_THAT(segmenting_with("/recipe/use", "xcit-imagenet"),
              HasSubstr("recipe.use: xcit-imagenet sets label_smoothing, crop, interpolation"));
  Json changed = document();
  changed["recipe"]["scale_range"] = {0.5, 2};
  EXPECT_THAT(
      problems_of(changed),
      ElementsAre("recipe.scale_range: [0.5,2]: says nothing of a task of kind classify; expected none"));
  changed = document();
  changed["recipe"] = {{"use", "xcit-upernet"}};
  EXPECT_THAT(
      problems_of(changed),
      ElementsAre("recipe.use: xcit-upernet is for task: {kind: segment}; this one is of kind classify"));
  EXPECT_THAT(segmenting_with("/recipe/scale_range", {2, 0.5}), HasSubstr("the least and the largest"));
  EXPECT_THAT(segmenting_with("/recipe/scale_range", Json::array({1})), HasSubstr("expected two numbers"));
  changed = segmenting();
  changed["recipe"]["patience"] = 3;
  EXPECT_THAT(problems_of(changed),
              ElementsAre("recipe.patience_metric: val/top1 is not measured with task.kind segment; "
                          "expected one of val/miou, val/macc, val/aacc, val/loss"));
  changed["recipe"]["patience_metric"] = "val/miou";
  EXPECT_THAT(problems_of(changed), IsEmpty());
}

TEST(TaskSection, ABackboneMustGiveTheMapsThatItsHeadStandsOn) {
  EXPECT_THAT(segmenting_with("/model", {{"preset", "regnety_160"}}),
              AllOf(HasSubstr("model.family: regnet gives no maps"), HasSubstr("xcit")));
  EXPECT_THAT(segmenting_with("/model", {{"preset", "simple-vit-nano"}, {"patch", 4}, {"depth", 4}}),
              HasSubstr("model.patch: 4 pixels"));
  EXPECT_THAT(segmenting_with("/model", {{"preset", "simple-vit-nano"}}), HasSubstr("expected at least 4"));
  Json swin = segmenting();
  swin["model"] = {{"preset", "swin_tiny_patch4_window7_224"}};
  EXPECT_THAT(problems_of(swin), IsEmpty());
  swin["task"]["head"] = "setr-mla";
  EXPECT_THAT(problems_of(swin), ElementsAre(HasSubstr("task.head: setr-mla stands on maps of one size")));
  swin["task"] = {{"kind", "segment"}, {"layers", {1, 2, 3, 4}}};
  EXPECT_THAT(problems_of(swin), ElementsAre(HasSubstr("task.layers: of swin")));
  EXPECT_THAT(segmenting_with("/task/layers", {4, 6, 8, 13}), HasSubstr("four ascending ones of 1 to 12"));
  EXPECT_THAT(segmenting_with("/task/layers", {4, 6, 6, 12}), HasSubstr("four ascending ones"));
  EXPECT_THAT(segmenting_with("/task/head", "fpn"), HasSubstr("semantic-fpn"));
  EXPECT_THAT(segmenting_with("/task/knid", "segment"), HasSubstr("unknown key"));
}

Json detecting() {
  return Json::parse(R"({
    "model": {"preset": "xcit_tiny_12_p16_224"},
    "data": {"name": "coco"},
    "task": {"kind": "detect"},
    "recipe": {"use": "xcit-coco"},
    "seed": 1})");
}

TEST(TaskSection, ADetectorHasAnchorsOfEachLevelOfItsPyramid) {
  const auto trial = read_trial_or_throw(detecting());
  EXPECT_EQ(trial.data.classes, 80);
  EXPECT_EQ(trial.data.image_size, 800);
  EXPECT_EQ(trial.task.width, 256);
  EXPECT_THAT(trial.task.anchors, ElementsAre(32, 64, 128, 256, 512));
  EXPECT_EQ(canonical_document(trial)["task"], Json::parse(R"({"kind": "detect"})"));
  EXPECT_EQ(effective_document(trial)["task"]["sampled"], 512);
  EXPECT_FALSE(effective_document(trial)["task"].contains("head")) << "there is but one";
  const auto text = canonical_text(trial);
  EXPECT_EQ(canonical_text(read_trial_or_throw(Json::parse(text))), text);
  Json changed = detecting();
  changed["task"]["anchors"] = {8, 16, 32, 64};
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("task.anchors: 4 sides of anchors; expected 5")));
  changed = detecting();
  changed["model"] = {{"preset", "simple-vit-nano"}, {"patch", 4}, {"depth", 4}};
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("the pyramid below Mask R-CNN")));
  changed = detecting();
  changed["data"] = {{"name", "ade20k"}};
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("ade20k has no labels of things")));
}

TEST(TaskSection, PicturesOfADetectorHaveASideOrAScale) {
  Json changed = detecting();
  changed["recipe"]["side_range"] = {480, 500};
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("whole steps of 32 apart")));
  changed["recipe"]["side_range"] = {800, 480};
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("the least and the largest")));
  changed = detecting();
  changed["recipe"]["scale_range"] = {0.5, 2};
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("recipe.side_range is set as well")));
  changed = detecting();
  changed["recipe"]["distortion"] = true;
  EXPECT_THAT(problems_of(changed), ElementsAre(HasSubstr("says nothing of a task of kind detect")));
}

TEST(TaskSection, RecipesOfATaskFitEveryBackboneThatItIsFor) {
  for (const Recipe& recipe : recipes()) {
    if (!recipe.task) continue;
    const bool is_dense = recipe.task == TaskKind::kDetect || recipe.task == TaskKind::kSegment;
    for (const Preset& preset : presets()) {
      const Family& family = family_of(model_of(preset));
      if (is_dense ? family.maps == MapsOf::kNone : !family.describes_images) continue;
      Json changed = recipe.task == TaskKind::kDetect ? detecting() : segmenting();
      if (!is_dense)
        changed = {{"data", {{"name", "imagenet-1k"}}}, {"task", {{"kind", name_of(*recipe.task)}}}};
      changed["model"] = {{"preset", preset.name}};
      changed["recipe"] = {{"use", recipe.name}};
      const auto problems = problems_of(changed);
      EXPECT_THAT(problems, Each(Not(HasSubstr("recipe.")))) << preset.name << " with " << recipe.name;
    }
  }
}

Json describing(const char* kind) {
  Json trial = Json::parse(R"({
    "model": {"family": "xcit", "dim": 32, "depth": 3, "heads": 2, "patch": 8},
    "data": {"name": "cifar10"}, "seed": 1})");
  trial["task"] = {{"kind", kind}};
  trial["recipe"] = {{"batch", 64}};
  if (std::string{"probe-knn"} != kind) trial["recipe"].update({{"epochs", 2}, {"lr", 0.1}});
  if (std::string{"dino"} == kind) trial["task"]["local_size"] = 16;
  return trial;
}

/// The problems of such a trial with `value` at `pointer`.
std::vector<std::string> describing_with(const char* kind, const char* pointer, const Json& value) {
  Json changed = describing(kind);
  changed[Json::json_pointer{pointer}] = value;
  return problems_of(changed);
}

TEST(TaskSection, WhatDescribesImagesSaysHow) {
  for (const char* kind : {"dino", "probe-linear", "probe-knn"}) {
    SCOPED_TRACE(kind);
    const auto trial = read_trial_or_throw(describing(kind));
    EXPECT_EQ(trial.task.bank, std::string{"dino"} == kind ? 10'000 : 0);
    const auto text = canonical_text(trial);
    EXPECT_EQ(canonical_text(read_trial_or_throw(Json::parse(text))), text);
    for (const auto& [key, value] : effective_document(trial)["recipe"].items())
      EXPECT_TRUE(task_of(trial.task.kind).heeds(key)) << key;
  }
  Json trained = describing("probe-knn");
  trained["recipe"].update({{"use", "demo"}, {"lr", 0.1}, {"label_smoothing", 0.1}, {"patience", 3}});
  EXPECT_EQ(canonical_text(read_trial_or_throw(trained)),
            canonical_text(read_trial_or_throw(describing("probe-knn"))))
      << "what is of a training has no effect where nothing learns";
  EXPECT_EQ(canonical_document(read_trial_or_throw(describing("probe-knn")))["task"],
            (Json{{"kind", "probe-knn"}}));
}

TEST(TaskSection, WhatDescribesImagesIsRefusedWhatSaysNothingOfIt) {
  for (const char* key : {"ema", "label_smoothing"})
    EXPECT_THAT(describing_with("dino", (std::string{"/recipe/"} + key).c_str(), 0.5),
                ElementsAre(HasSubstr("says nothing of a task of kind dino; expected 0")));
  EXPECT_THAT(describing_with("dino", "/recipe/layer_decay", 0.5), ElementsAre(HasSubstr("expected 1")));
  EXPECT_THAT(describing_with("probe-linear", "/recipe/drop_path", 0.1),
              ElementsAre(HasSubstr("recipe.drop_path")));
  EXPECT_THAT(describing_with("dino", "/task/local_size", 20),
              ElementsAre("task.local_size: 20 pixels; expected a multiple of the patch of 8"));
  EXPECT_THAT(describing_with("dino", "/task", {{"kind", "dino"}}),
              ElementsAre("task.local_size: 96 pixels; expected at most data.image_size, 32"));
  EXPECT_THAT(describing_with("dino", "/task/global_area", {1, 0.5}),
              ElementsAre("task.global_area: [1, 0.5]; expected [minimum, maximum]"));
  EXPECT_THAT(
      describing_with("dino", "/task/frozen_epochs", 2),
      ElementsAre(
          "task.frozen_epochs: 2 of 2 epochs: the last layer would never be trained; expected fewer"));
  EXPECT_THAT(describing_with("dino", "/task/blur", -1), ElementsAre(HasSubstr("task.blur")));
  EXPECT_THAT(describing_with("probe-linear", "/task/blocks", 4),
              ElementsAre("task.blocks: 4: the class token of xcit is behind all blocks; expected 1"));
  EXPECT_THAT(describing_with("probe-linear", "/task/patch_mean", true),
              ElementsAre(HasSubstr("expected false")));
  EXPECT_THAT(describing_with("probe-knn", "/model", {{"preset", "resnet18"}}),
              ElementsAre("model.family: resnet does not support task.kind probe-knn; expected vit or xcit"));
  EXPECT_THAT(describing_with("dino", "/data/name", "ade20k"), Not(IsEmpty()));
}

}  // namespace
}  // namespace abl::config
