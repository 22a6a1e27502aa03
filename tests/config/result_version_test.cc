// SPDX-License-Identifier: Apache-2.0
#include "config/document/result_version.h"

#include <algorithm>

#include "config/document/trial_document.h"
#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool is_bf16(const Json& document) { return document.value("/recipe/precision"_json_pointer, "") == "bf16"; }
bool has_swin_windows(const Json& document) {
  return document.value("/model/family"_json_pointer, "") == "swin-v2";
}

constexpr ResultChange kChanges[] = {{7, "scores are rounded less", is_bf16},
                                     {8, "windows are scaled", has_swin_windows},
                                     {9, "gradients are added in float32", is_bf16}};

TEST(ResultVersion, ATrialHasTheNewestVersionThatTouchesIt) {
  EXPECT_EQ(result_version({{"recipe", {{"precision", "bf16"}}}}, kChanges), 9);
  EXPECT_EQ(result_version({{"model", {{"family", "swin-v2"}}}}, kChanges), 8);
  EXPECT_EQ(result_version({{"recipe", {{"epochs", 3}}}}, kChanges), kFirstResultVersion)
      << "it gives the numbers that it always gave";
  EXPECT_EQ(newest_result_version(kChanges), 9);
}

TEST(ResultVersion, ADocumentThatCannotBeJudgedCountsAsTouched) {
  EXPECT_EQ(result_version({{"recipe", {{"precision", 16}}}}, kChanges), 9);
  EXPECT_EQ(result_version(Json::parse("{", nullptr, false), kChanges), 9);
}

TEST(ResultVersion, WithoutChangesEveryTrialHasTheFirst) {
  EXPECT_EQ(result_version({{"recipe", {{"precision", "bf16"}}}}, {}), kFirstResultVersion);
  EXPECT_EQ(newest_result_version({}), kFirstResultVersion);
}

TEST(ResultVersion, WhatHasChangedSinceIsSaidInOrder) {
  const Json bf16{{"recipe", {{"precision", "bf16"}}}};
  EXPECT_THAT(changes_since(6, bf16, kChanges),
              ElementsAre("scores are rounded less", "gradients are added in float32"));
  EXPECT_THAT(changes_since(7, bf16, kChanges), ElementsAre("gradients are added in float32"));
  EXPECT_THAT(changes_since(9, bf16, kChanges), IsEmpty());
}

/// A document of today as a file gives it.
Json document_by(const Json& recipe, int image_size, const Json& model = {{"preset", "simple-vit-nano"}}) {
  Json trial = document_of(model);
  trial["data"]["image_size"] = image_size;
  trial["recipe"] = recipe;
  return canonical_document(read_trial_or_throw(trial));
}

/// The same as it was stored once: with other keys of the recipe, null where it lacked one.
Json as_it_was(Json document, const Json& recipe) {
  document["recipe"].merge_patch(recipe);
  return document;
}

bool is_touched_by(int version, const Json& document) {
  const auto changes = changes_since(kFirstResultVersion, document);
  return std::ranges::find(changes, what_changed(version)) != changes.end();
}

TEST(ResultVersion, EvaluationInPixelsOfAnotherSizeIsCorrected) {
  for (const char* recipe : {"msf-imagenet", "mk-imagenet"})
    for (const int image_size : {32, 64, 256, 384}) {
      const Json today = document_by({{"use", recipe}, {"epochs", 5}, {"lr", 0.002}}, image_size);
      const Json once = as_it_was(today, {{"eval_resize", image_size == 256 ? Json{} : Json(256)}});
      EXPECT_TRUE(is_touched_by(7, once)) << recipe << image_size;
      EXPECT_FALSE(is_touched_by(7, today)) << recipe << image_size;
      EXPECT_EQ(corrected(once, kFirstResultVersion), today) << recipe << image_size;
      EXPECT_EQ(corrected(once, 7), once) << "pixels that were asked for since";
    }
  EXPECT_FALSE(is_touched_by(7, document_by({{"use", "mk-imagenet"}}, 224))) << "the same pixels";
  const Json swin = document_by({{"use", "mk-imagenet"}}, 256, {{"preset", "swinv2_tiny_window8_256"}});
  EXPECT_FALSE(is_touched_by(7, as_it_was(swin, {{"eval_resize", 292}}))) << "SwinV2's";
}

TEST(ResultVersion, EvaluationIsAsItWasWhereNoRecipeNamedPixels) {
  for (const char* recipe : {"xcit-imagenet", "sne-imagenet", "cifar-lite", "demo"})
    for (const int image_size : {32, 256}) {
      const Json document = document_by({{"use", recipe}}, image_size);
      EXPECT_FALSE(is_touched_by(7, document)) << recipe << image_size;
      EXPECT_FALSE(is_touched_by(7, as_it_was(document, {{"eval_resize", 292}}))) << "on purpose";
    }
  const Json own{
      {"epochs", 3}, {"batch", 60}, {"lr", 0.1}, {"optimiser", "sgd"}, {"eval_crop_ratio", 0.8125}};
  EXPECT_EQ(document_by(own, 208).at("recipe").at("eval_resize"), 256);
  EXPECT_FALSE(is_touched_by(7, document_by(own, 208)));
}

TEST(ResultVersion, WhatMsfLeftOutOfDecayIsTrainedAgain) {
  const Json msf{{"use", "msf-imagenet"}, {"epochs", 300}};
  const Json today = document_by(msf, 224), once = as_it_was(today, {{"decay", nullptr}});
  EXPECT_TRUE(is_touched_by(10, once));
  EXPECT_EQ(corrected(once, kFirstResultVersion), today);
  EXPECT_EQ(result_version(corrected(once, kFirstResultVersion)), result_version(today))
      << "one trial with what the file gives today";
  EXPECT_FALSE(is_touched_by(10, today));
  EXPECT_FALSE(is_touched_by(10, as_it_was(today, {{"decay", nullptr}, {"weight_decay", nullptr}})));
  for (const char* recipe : {"mk-imagenet", "xcit-imagenet", "cifar-lite"})
    EXPECT_FALSE(is_touched_by(10, document_by({{"use", recipe}}, 224))) << recipe;
}

TEST(ResultVersion, SwinV2InOtherWindowsThanItsWeightsIsCorrected) {
  const Json tiny{{"preset", "swinv2_tiny_window8_256"}};
  const auto with_window = [&](int window, const Json& recipe) {
    Json model = tiny;
    model["window"] = window;
    return document_by(recipe, 256, model);
  };
  const Json tuned{{"use", "sne-transfer"}}, from_scratch{{"use", "mk-imagenet"}};
  const Json today = with_window(16, tuned);
  Json once = today;
  once["model"].erase("pretrained_window");
  EXPECT_TRUE(is_touched_by(11, once));
  EXPECT_EQ(corrected(once, kFirstResultVersion), today);
  EXPECT_FALSE(is_touched_by(11, today));
  EXPECT_FALSE(is_touched_by(11, with_window(8, tuned))) << "the windows of the weights";
  EXPECT_FALSE(is_touched_by(11, with_window(16, from_scratch)));
  EXPECT_FALSE(is_touched_by(11, document_by(tuned, 224, {{"preset", "swin_tiny_patch4_window7_224"}})));
  once["model"]["dim"] = 48;
  EXPECT_FALSE(is_touched_by(11, once)) << "sizes of nobody's weights but its own";
  const auto taught = [](int image_size) {
    return document_by({{"use", "cifar-lite"},
                        {"distillation", "hard"},
                        {"teacher", "swinv2_tiny_window8_256"},
                        {"teacher_weights", "w"}},
                       image_size);
  };
  EXPECT_TRUE(is_touched_by(11, taught(128))) << "the teacher's last map is 4 x 4";
  EXPECT_FALSE(is_touched_by(11, taught(256)));
}

TEST(ResultVersion, CorrectedSchedulesAreThoseOfTheRecipe) {
  const Json transfer = document_by({{"use", "sne-transfer"}}, 224);
  const Json low = as_it_was(transfer, {{"min_lr", 1e-6}});
  EXPECT_TRUE(is_touched_by(12, low));
  EXPECT_FALSE(is_touched_by(12, transfer));
  EXPECT_EQ(corrected(low, kFirstResultVersion), transfer);
  const Json tuned = document_by({{"use", "xcit-finetune-384"}}, 384);
  const Json cold = as_it_was(tuned, {{"warmup", nullptr}, {"warmup_start", nullptr}});
  EXPECT_TRUE(is_touched_by(13, cold));
  EXPECT_FALSE(is_touched_by(13, tuned));
  EXPECT_EQ(corrected(cold, kFirstResultVersion), tuned);
  for (const int version : {12, 13}) EXPECT_FALSE(is_touched_by(version, document_by({{"use", "demo"}}, 32)));
}

TEST(ResultVersion, StudentsWithANormalisationOfTheirOwnAreTaughtAgain) {
  const auto taught = [](const char* teacher, const Json& data) {
    Json document = document_by({{"use", "demo"}}, 32);
    document["recipe"].update({{"distillation", "hard"}, {"teacher", teacher}, {"teacher_weights", "w"}});
    document["data"].update(data);
    return is_touched_by(14, document);
  };
  EXPECT_TRUE(taught("trial", {{"mean", {0.5, 0.5, 0.5}}}));
  EXPECT_TRUE(taught("trial", {{"std", {0.5, 0.5, 0.5}}}));
  EXPECT_FALSE(taught("trial", Json::object()));
  EXPECT_FALSE(taught("simple-vit-nano", {{"mean", {0.5, 0.5, 0.5}}})) << "its file says none, as before";
}

TEST(ResultVersion, WhatCannotBeCorrectedStaysAsItIs) {
  const Json odd{{"recipe", 3}, {"data", {{"image_size", "large"}}}};
  EXPECT_EQ(corrected(odd, kFirstResultVersion), odd);
  const Json plain = document_by({{"use", "demo"}}, 32);
  EXPECT_EQ(corrected(plain, kFirstResultVersion), plain);
}

/// The small trial of the tests with other keys of its recipe, in canonical form.
Json with_recipe(const Json& keys) {
  auto changed = document();
  changed["recipe"].update(keys);
  return canonical_document(read_trial_or_throw(changed));
}

/// Whether the change whose sentence holds these words touches a document.
bool is_touched(const Json& document, const std::string& words) {
  const auto changes = changes_since(kFirstResultVersion, document);
  return std::ranges::any_of(
      changes, [&](const std::string& change) { return change.find(words) != std::string::npos; });
}

TEST(ResultVersion, GradientsOfPartsInBFloat16AreAddedInFloat32) {
  const auto added = [](const Json& keys) {
    return is_touched(with_recipe(keys), "gradients of a batch's parts");
  };
  EXPECT_TRUE(added({{"precision", "bf16"}, {"accumulate", 4}}));
  EXPECT_FALSE(added({{"precision", "bf16"}, {"accumulate", 1}}));
  EXPECT_FALSE(added({{"precision", "bf16"}}));
  for (const char* precision : {"fp32", "fp16"})
    EXPECT_FALSE(added({{"precision", precision}, {"accumulate", 4}})) << precision;
}

TEST(ResultVersion, ScoresOf32BitsTouchAttentionIn16BitsAlone) {
  const auto rounded = [](const char* family, const char* precision, const char* teacher = "") {
    return is_touched(
        {{"model", {{"family", family}}}, {"recipe", {{"precision", precision}, {"teacher", teacher}}}},
        "rounded its scores");
  };
  for (const char* family : {"simple-vit", "vit", "key-vit", "swin", "swin-v2", "xcit"}) {
    EXPECT_TRUE(rounded(family, "bf16")) << family;
    EXPECT_TRUE(rounded(family, "fp16")) << family;
    EXPECT_FALSE(rounded(family, "fp32")) << family;
  }
  EXPECT_FALSE(rounded("resnet", "bf16", "regnety_160"));
  EXPECT_TRUE(rounded("resnet", "bf16", "vit_base_patch16_224"));
  EXPECT_TRUE(is_touched({{"recipe", {{"precision", "bf16"}}}}, "rounded its scores"))
      << "a simple-vit, as by default";
}

TEST(ResultVersion, TheChangesAreNumberedInOrderAndTakeAnyDocument) {
  int version = kFirstResultVersion;
  for (const ResultChange& change : result_changes()) {
    EXPECT_EQ(change.version, ++version);
    EXPECT_STRNE(change.what, "");
    EXPECT_NO_THROW(change.touches(canonical_document(read_trial_or_throw(document()))));
    EXPECT_NO_THROW(change.touches(Json::object())) << "a document of another release lacks keys";
  }
}

}  // namespace
}  // namespace abl::config
