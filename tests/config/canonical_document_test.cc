// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "config/document/result_version.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "config/model/family.h"
#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string canonical(const Json& document) { return canonical_text(read_trial_or_throw(document)); }

std::string canonical_with(const char* pointer, const Json& value) {
  Json changed = document();
  changed[Json::json_pointer{pointer}] = value;
  return canonical(changed);
}

TEST(CanonicalTest, TheTextIsPinned) {
  // A change here changes the identity of every stored trial: it needs a new result version and a good
  // reason.
  EXPECT_EQ(
      canonical(document()),
      R"({"data":{"classes":1000,"image_size":224,"name":"imagenet-1k"},)"
      R"("model":{"attention":{"kernel":"gaussian","probe":"inside"},"depth":12,"dim":384,"heads":6},)"
      R"("recipe":{"appearance":"3-augment","batch":1024,"clip_norm":1,"color_jitter":0.3,"crop":"resized","decay":"all","epochs":100,)"
      R"("eval_resize":256,"flip":0.5,"label_smoothing":0.1,"lr":0.001,"mixing":"mixup-or-cutmix","mixing_alpha":0.2,)"
      R"("precision":"bf16","repeated_augmentation":3,"warmup":0.1,"warmup_start":0.03333333333333333,"weight_decay":0.05},"seed":1})");
}

/// A trial of the time when there was one family.
struct Known {
  const char *preset, *attention, *hash;
};

TEST(CanonicalTest, NewKeysHaveNotChangedTheIdentityOfKnownTrials) {
  constexpr const char* kOriginal = R"({})";
  constexpr const char* kMsf = R"({"kernel":"gaussian","probe":"inside"})";
  constexpr const char* kResidual = R"({"kernel":"gaussian","probe":"outside","groups":1})";
  constexpr const char* kTied = R"({"share":"QKK-Q","tied_weight_scale":0.125})";
  constexpr const char* kPlaced =
      R"({"kernel":"gaussian","probe":"inside","groups":2,"layout":"block","layers":"1","elsewhere":{"kernel":"none"}})";
  constexpr Known kKnown[] = {
      {"simple-vit-nano", kOriginal, "66e7a12e78674a9e301233d7679a310b5cf0f57884d231ea9a64dbec2af700af"},
      {"simple-vit-nano", kMsf, "e01cc7d15b66e1c2c003f3c38a07f7a61bc3ac046d28da014a670ba081b95950"},
      {"simple-vit-ti", kOriginal, "9773ec5af1811a7999525fddea3d7abd52255305014020b068e0611a99b436cc"},
      {"simple-vit-ti", kMsf, "a8bb50e8cd41d66996da09faca4435cb91c66a7219fb1100365f0135b2b9fc1a"},
      {"simple-vit-ss", kOriginal, "64f00694d7a2a125e4d5dec5008b85fffda48c1f5a116717172958088e440b69"},
      {"simple-vit-ss", kMsf, "723127026ea4be58fd8b37255dec6ded6bd1841303dbd63166d924fb388d7c81"},
      {"simple-vit-s", kOriginal, "cfe16523f956095ab7844bff0f6593e1745ea6c2582a490835f0d188ba7960b1"},
      {"simple-vit-s", kMsf, "8e9559f7cecd206c49cc5e68f2488125ac8115f5d02721f6addd7dcc39c2c407"},
      {"simple-vit-s", kResidual, "7ce9f57fc4832d0a1f75392952fb71be2a76cc598bc00777a52307a2f66cf70f"},
      {"simple-vit-s", kTied, "6192741fc560c9f331d7de7705dd3911f1d6365359ffc853b8634881cc0cfada"},
      {"simple-vit-s", kPlaced, "69a2573acd3454233d458a593f7f583bf6a161a11e9b86eb85ef4ffd5d145d84"},
      {"simple-vit-b", kOriginal, "708d20e4cebfc3bc71eab0bdebb979ac0939879ea321183293553d97d14f707c"},
      {"simple-vit-b", kMsf, "20093b9d73308d2cc3636ff75776dca0c69c7a0e9a2eb2c302d961dc6c2c1a8f"}};
  for (const auto& [preset, attention, hash] : kKnown) {
    Json trial = document_of({{"preset", preset}, {"attention", Json::parse(attention)}});
    trial["recipe"] = {{"use", "msf-imagenet"}, {"decay", "matrices"}};  // as the recipe was then
    trial["seed"] = 3;
    EXPECT_EQ(config_hash(canonical(trial)), hash) << preset << attention;
  }
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

TEST(EffectiveTest, EveryKeyThatHasAnEffectIsThereAndNoOther) {
  const auto attention_with = [](const Json& change) {
    Json written = document();
    written["model"]["attention"].update(change);
    return effective_document(read_trial_or_throw(written))["model"]["attention"];
  };
  EXPECT_EQ(attention_with({{"layout", "block"}}),
            Json::parse(R"({"kernel": "gaussian", "probe": "inside", "share": "QKVPW", "groups": 1})"));
  EXPECT_EQ(attention_with({{"groups", 2}})["layout"], "interleaved") << "as by default";
  EXPECT_EQ(attention_with({{"kernel", "none"}}), Json::parse(R"({"kernel": "none"})"));
  const Json trial = effective_document(read_trial_or_throw(document()));
  EXPECT_FALSE(trial["recipe"].contains("crop_padding")) << "without crop: pad";
  EXPECT_FALSE(trial["recipe"].contains("use")) << "it is expanded";
  EXPECT_EQ(trial["recipe"]["optimiser"], "adamw");
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
                                                 {"/data/held_out", 0.1},
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

TEST(CanonicalTest, AnImageSizeThatThePresetGivesIsTheSameWrittenOut) {
  Json trial = document_of({{"preset", "swinv2_tiny_window8_256"}});
  const std::string given = canonical(trial);
  EXPECT_THAT(given, HasSubstr(R"("image_size":256)"));
  trial["data"]["image_size"] = 256;
  EXPECT_EQ(canonical(trial), given);
  trial["data"]["image_size"] = 224;
  EXPECT_NE(canonical(trial), given);
  EXPECT_EQ(canonical(Json::parse(canonical(trial))), canonical(trial)) << "the text names its size";
}

TEST(CanonicalTest, WhatEvaluatesTheSamePixelsIsTheSameTrial) {
  const std::string text = canonical(document());
  EXPECT_THAT(text, HasSubstr(R"("eval_resize":256)"));
  EXPECT_EQ(canonical_with("/recipe/eval_crop_ratio", 0.875), text) << "written out";
  EXPECT_EQ(canonical_with("/recipe/eval_crop_ratio", 0.8745), text) << "256 pixels too";
  EXPECT_NE(canonical_with("/recipe/eval_crop_ratio", 0.9), text);
  EXPECT_THAT(canonical_with("/recipe/eval_crop_ratio", 1), Not(HasSubstr("eval_")));
}

TEST(CanonicalTest, TheEvaluatedPixelsFollowTheImageSize) {
  for (const auto& [image_size, side] : {std::pair{32, 36}, {64, 73}, {224, 256}, {384, 438}}) {
    Json trial = document_of({{"preset", "simple-vit-s"}});
    trial["data"]["image_size"] = image_size;
    EXPECT_THAT(canonical(trial), HasSubstr(fmt::format(R"("eval_resize":{},)", side))) << image_size;
  }
}

TEST(CanonicalTest, AStoredEvaluationInPixelsIsReadAsItWas) {
  for (const int side : {225, 256, 257, 292, 366, 1000}) {
    Json stored = Json::parse(canonical(document()));
    stored["recipe"]["eval_resize"] = side;
    EXPECT_EQ(canonical(stored), canonical_json(stored)) << side;
  }
  Json stored = Json::parse(canonical(document()));
  stored["recipe"]["eval_crop_ratio"] = 1;  // --set on top of it
  EXPECT_THAT(canonical(stored), Not(HasSubstr("eval_")));
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

/// One of these for the model, and what the model's sections say.
struct Ablated {
  const char* preset;
  const char* sections;
};

TEST(CanonicalTest, TextOfEveryPresetReadsBackAsItself) {
  for (const Preset& preset : presets()) {
    const std::string text = canonical(document_of({{"preset", preset.name}}));
    EXPECT_EQ(canonical(Json::parse(text)), text) << preset.name;
  }
}

TEST(CanonicalTest, TextOfAblatedModelsReadsBackAsItself) {
  constexpr Ablated kAblated[] = {
      {"key-vit-s", R"({"key": {"method": "kua", "charts": 4, "layers": "1-6"}})"},
      {"key-vit-s", R"({"key": {"method": "vanillak", "broadcasting": "none", "gamma": 0.1}})"},
      {"swin_tiny_patch4_window7_224",
       R"({"attention": {"kernel": "gaussian", "probe": "inside", "groups": 2}})"},
      {"swin_tiny_patch4_window7_224",
       R"({"attention": {"kernel": "none", "layers": 1}, "key": {"method": "simplek", "layers": "2-12"}})"},
      {"swinv2_tiny_window8_256",
       R"({"key": {"method": "spatialk", "chart_order": "plain-reshape"}, "window": 7})"},
      {"xcit_tiny_12_p16_224",
       R"({"embedding": {"kind": "f-sne", "width": 282, "code_size": 8, "codes": "block"}})"},
      {"xcit_tiny_12_p16_224",
       R"({"embedding": {"kind": "p-sne", "depth": 4, "width": 96, "shared": "2,4"}})"},
      {"xcit_tiny_12_p16_224",
       R"({"embedding": {"kind": "sne", "depth": 1, "bias": false, "layers": "none"}})"},
      {"xcit_small_12_p8_224",
       R"({"block": [{"lpi": false}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {"attention": "tokens"}]})"},
      {"vit_tiny_patch16_224", R"({"qkv_bias": false})"},
      {"xcit_tiny_12_p16_224", R"({"embedding": {"kind": "sne", "depth": 3, "widths": [96, 48]}})"},
      {"resnet50", R"({"stage_depths": [1, 1, 1, 1], "stage_widths": [32, 64, 128, 256]})"},
      {"efficientnet_b0", R"({"width_factor": 1.1, "depth_factor": 1.2})"}};
  for (const auto& [preset, sections] : kAblated) {
    Json model = Json::parse(sections);
    model["preset"] = preset;
    const std::string text = canonical(document_of(model));
    EXPECT_EQ(canonical(Json::parse(text)), text) << preset << sections;
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
  auto twice = trial;
  twice.recipe.checkpoint_blocks = 6;
  const std::string other = canonical_model_text(twice);
  EXPECT_NE(other, text);
  EXPECT_EQ(canonical_model_text(read_model_or_throw(Json::parse(other))), other);
}

TEST(ModelDocumentTest, AWrongOneIsRefused) {
  EXPECT_THROW(read_model_or_throw(Json::parse(R"({"model": {"preset": "simple-vit-s"}})")), Error);
  EXPECT_THROW(read_model_or_throw(
                   Json::parse(R"({"model": {"preset": "simple-vit-nano"}, "data": {"classes": 10}})")),
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
