// SPDX-License-Identifier: Apache-2.0
#include "config/result_version.h"

#include <algorithm>

#include "config/trial_document.h"
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

TEST(ResultVersion, EvaluationInPixelsOfAnotherSizeIsBeforeTheMend) {
  const auto is_before = [](const char* recipe, int image_size, const Json& stored) {
    Json trial = document_of({{"preset", "simple-vit-nano"}});
    trial["data"]["image_size"] = image_size;
    trial["recipe"] = {{"use", recipe}};
    Json document = canonical_document(read_trial_or_throw(trial));
    document["recipe"].update(stored);
    const auto changes = changes_since(kFirstResultVersion, document);
    return std::ranges::any_of(changes, [](const std::string& change) {
      return change.find("evaluated at 256") != std::string::npos;
    });
  };
  const Json none = Json::object(), as_it_was{{"eval_resize", 256}};
  for (const int image_size : {32, 64, 384}) {
    EXPECT_TRUE(is_before("mk-imagenet", image_size, as_it_was)) << image_size;
    EXPECT_FALSE(is_before("mk-imagenet", image_size, none)) << image_size << ": other pixels, another trial";
  }
  EXPECT_FALSE(is_before("mk-imagenet", 224, as_it_was)) << "the same pixels";
  EXPECT_FALSE(is_before("mk-imagenet", 256, {{"eval_resize", 292}})) << "SwinV2's";
  EXPECT_FALSE(is_before("cifar-lite", 32, none));
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
