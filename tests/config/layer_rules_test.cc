// SPDX-License-Identifier: Apache-2.0
#include "config/model/layer_sections.h"

#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A document with one section of the model.
std::string with(const char* preset, const char* section, const char* text) {
  return fmt::format(R"({{"preset": "{}", "{}": {}}})", preset, section, text);
}
std::string simple(const char* text) { return with("simple-vit-s", "attention", text); }
std::string key(const char* text) { return with("key-vit-s", "key", text); }
std::string swin(const char* text) { return with("swin_tiny_patch4_window7_224", "attention", text); }
std::string embedding(const char* text) { return with("xcit_nano_12_p16_224", "embedding", text); }
std::string block(const char* text) { return with("xcit_nano_12_p16_224", "block", text); }

std::string problem(const std::string& model) { return only_problem(model.c_str()); }
std::string canonical(const std::string& model) { return canonical_model_of(model.c_str()); }

TEST(AttentionRulesTest, TheDefaultSharingFollowsTheProbe) {
  const auto share = [](const char* text) {
    return model_from(simple(text).c_str()).attention.front().share;
  };
  EXPECT_EQ(share(R"({})"), "QKV-W");
  EXPECT_EQ(share(R"({"probe": "inside"})"), "QKVPW");
  EXPECT_EQ(share(R"({"probe": "outside"})"), "QKVPW");
}

TEST(AttentionRulesTest, SharingMustAgreeWithTheProbe) {
  EXPECT_THAT(problem(simple(R"({"probe": "inside", "share": "QKV-W"})")),
              HasSubstr("model.attention.share: QKV-W has no PROBE"));
  EXPECT_THAT(problem(simple(R"({"share": "QKVPW"})")),
              HasSubstr("model.attention.share: QKVPW has a PROBE but probe is none"));
  EXPECT_THAT(problem(simple(R"({"probe": "outside", "share": "QKVVW"})")),
              HasSubstr("QKVVW shares the PROBE"));
}

TEST(AttentionRulesTest, GroupsMustDivideBothSidesOfTheProjection) {
  EXPECT_EQ(problem(simple(R"({"groups": 5})")),
            "model.attention.groups: 5 groups do not divide the embedding dimension 384");
  EXPECT_EQ(problem(R"({"preset": "simple-vit-s", "heads": 4, "dim_head": 32, "attention": {"groups": 3}})"),
            "model.attention.groups: 3 groups do not divide the width of all heads, 4 × 32");
}

TEST(AttentionRulesTest, ASharedWeightCannotBeGrouped) {
  EXPECT_THAT(problem(simple(R"({"share": "QKV-Q", "groups": 2})")),
              HasSubstr("2 groups cannot be combined with a shared WEIGHT (QKV-Q)"));
  EXPECT_EQ(model_from(simple(R"({"share": "QKK-W", "groups": 2})").c_str()).attention.front().groups, 2);
}

TEST(AttentionRulesTest, KeysWithoutEffectLeaveNoTrace) {
  const std::string plain = canonical(simple("{}"));
  EXPECT_EQ(canonical(simple(R"({"layout": "block"})")), plain);
  EXPECT_EQ(canonical(simple(R"({"tied_weight_scale": 0.125})")), plain);
  EXPECT_NE(canonical(simple(R"({"share": "QKV-Q", "tied_weight_scale": 0.125})")),
            canonical(simple(R"({"share": "QKV-Q"})")));
  EXPECT_NE(canonical(simple(R"({"groups": 2, "layout": "block"})")), canonical(simple(R"({"groups": 2})")));
  EXPECT_EQ(canonical(simple(R"({"kernel": "none", "probe": "inside", "groups": 2})")),
            canonical(simple(R"({"kernel": "none"})")));
}

TEST(AttentionRulesTest, InSwinGroupsMustDivideTheWidthOfTheirStages) {
  EXPECT_EQ(problem(swin(R"({"groups": 128})")),
            "model.attention.groups: 128 groups do not divide the embedding dimension 96");
  EXPECT_EQ(problem(swin(R"({"groups": 128, "layers": "4-12"})")),
            "model.attention.groups: 128 groups do not divide the embedding dimension 192")
      << "layer 4 is of the second stage";
  EXPECT_EQ(model_from(swin(R"({"groups": 128, "layers": "5-12"})").c_str()).attention.back().groups, 128);
}

TEST(KeyRulesTest, BroadcastingFollowsTheMethod) {
  const auto broadcasting = [](const char* text) {
    return name_of(broadcasting_of(model_from(key(text).c_str()).key.front()));
  };
  EXPECT_EQ(broadcasting(R"({"method": "kua"})"), "all");
  EXPECT_EQ(broadcasting(R"({"method": "vanillak"})"), "all");
  EXPECT_EQ(broadcasting(R"({"method": "spatialk"})"), "none");
  EXPECT_EQ(broadcasting(R"({"method": "simplek"})"), "none");
  EXPECT_EQ(broadcasting(R"({"method": "kua", "broadcasting": "none"})"), "none");
}

TEST(KeyRulesTest, ThereIsAtLeastOneChart) {
  EXPECT_EQ(problem(key(R"({"method": "kua", "charts": 0})")),
            "model.key.charts: 0 is out of range; expected a whole number, 1 to 1024");
}

TEST(KeyRulesTest, SimpleKLeavesNothingToBroadcast) {
  EXPECT_EQ(
      problem(key(R"({"method": "simplek", "broadcasting": "charts"})")),
      "model.key.broadcasting: charts is not supported with simplek, whose convolution leaves no charts; "
      "expected none");
}

TEST(KeyRulesTest, KeysWithoutEffectLeaveNoTrace) {
  EXPECT_EQ(
      canonical(key(R"({"charts": 4, "broadcasting": "all", "chart_order": "plain-reshape", "gamma": 2})")),
      canonical(key("{}")));
  EXPECT_EQ(canonical(key(R"({"method": "spatialk", "gamma_cb": 2})")),
            canonical(key(R"({"method": "spatialk"})")));
  EXPECT_NE(canonical(key(R"({"method": "kua", "gamma_cb": 2})")), canonical(key(R"({"method": "kua"})")));
}

TEST(KeyRulesTest, ALayerOfSwinHasAKeyOrAnAttentionOfItsOwn) {
  EXPECT_EQ(
      only_problem(R"({"preset": "swin_tiny_patch4_window7_224", "key": {"method": "kua", "layers": "1-6"},
                             "attention": {"kernel": "gaussian", "layers": "5-12"}})"),
      "model.key: in layers 5-6 model.key asks for a key that is not linear, and model.attention for an "
      "attention that is not the original; one of them must be left as it is");
  model_from(R"({"preset": "swin_tiny_patch4_window7_224", "key": {"method": "kua", "layers": "1-4"},
                 "attention": {"kernel": "gaussian", "layers": "5-12"}})");
}

TEST(EmbeddingRulesTest, TheKindSaysWhatIsShared) {
  const auto shared = [](const char* text) {
    return model_from(embedding(text).c_str()).embedding.front().shared_layers;
  };
  EXPECT_EQ(shared(R"({"kind": "sne", "width": 64})"), "none");
  EXPECT_EQ(shared(R"({"kind": "p-sne", "width": 64})"), "2");
  EXPECT_EQ(shared(R"({"kind": "p-sne", "depth": 3, "width": 64})"), "3");
  EXPECT_EQ(shared(R"({"kind": "f-sne", "width": 64, "code_size": 8})"), "1-2");
}

TEST(EmbeddingRulesTest, WhatIsSharedSaysTheKind) {
  EXPECT_EQ(canonical(embedding(R"({"kind": "sne", "width": 64, "shared": 2})")),
            canonical(embedding(R"({"kind": "p-sne", "width": 64})")));
  EXPECT_EQ(canonical(embedding(R"({"kind": "p-sne", "width": 64, "shared": "1,2", "code_size": 8})")),
            canonical(embedding(R"({"kind": "f-sne", "width": 64, "code_size": 8})")));
  EXPECT_THAT(canonical(embedding(R"({"kind": "p-sne", "width": 64, "shared": "1", "code_size": 8})")),
              HasSubstr(R"("embedding":{"code_size":8,"kind":"p-sne","shared":"1","width":64})"));
}

TEST(EmbeddingRulesTest, SharedLayersMustExist) {
  EXPECT_EQ(problem(embedding(R"({"kind": "p-sne", "width": 64, "shared": "3"})")),
            "model.embedding.shared: layers 3 out of range; the embedding has layers 1 to 2");
  EXPECT_EQ(problem(embedding(R"({"kind": "p-sne", "width": 64, "shared": "1-5"})")),
            "model.embedding.shared: layers 1-5 out of range; an embedding has layers 1 to 4");
  EXPECT_EQ(problem(embedding(R"({"kind": "p-sne", "width": 64, "shared": true})")),
            "model.embedding.shared: expected a text; got true");
}

TEST(EmbeddingRulesTest, HiddenLayersNeedAWidth) {
  EXPECT_EQ(
      problem(embedding(R"({"kind": "sne", "depth": 3})")),
      "model.embedding.width: missing; expected the width of the hidden layers, at least 1, for an embedding "
      "of 3 layers");
  EXPECT_EQ(problem(embedding(R"({"kind": "sne", "width": 0})")),
            "model.embedding.width: 0 is out of range; expected a whole number, 1 to 65536");
  EXPECT_EQ(canonical(embedding(R"({"kind": "sne", "depth": 1, "width": 64})")),
            canonical(embedding(R"({"kind": "sne", "depth": 1})")));
}

TEST(EmbeddingRulesTest, HiddenLayersMayHaveWidthsOfTheirOwn) {
  EXPECT_THAT(canonical(embedding(R"({"kind": "sne", "depth": 3, "widths": [96, 48]})")),
              HasSubstr(R"("widths":[96,48])"));
  EXPECT_EQ(canonical(embedding(R"({"kind": "sne", "depth": 3, "widths": [64, 64]})")),
            canonical(embedding(R"({"kind": "sne", "depth": 3, "width": 64})")));
  EXPECT_EQ(problem(embedding(R"({"kind": "sne", "depth": 3, "widths": [96]})")),
            "model.embedding.widths: 1 entries for an embedding of 3 layers; expected one for each of its 2 "
            "hidden layers");
  EXPECT_EQ(problem(embedding(R"({"kind": "sne", "width": 64, "widths": [96]})")),
            "model.embedding.widths: given beside width 64; expected one of the two");
}

TEST(EmbeddingRulesTest, ASharedFirstLayerNeedsCodes) {
  EXPECT_EQ(problem(embedding(R"({"kind": "f-sne", "width": 128})")),
            "model.embedding.code_size: no codes, but queries, keys and values share layer 1, where only "
            "codes tell "
            "them apart; expected at least 1");
  EXPECT_EQ(canonical(embedding(R"({"kind": "p-sne", "width": 64, "code_size": 8, "codes": "block"})")),
            canonical(embedding(R"({"kind": "p-sne", "width": 64})")));
}

TEST(EmbeddingRulesTest, BlocksThatUseTheCodesOfTheModelUseTheSame) {
  const std::string different =
      R"({"kind": "f-sne", "width": 64, "code_size": 8, "layers": 1,
          "elsewhere": {"kind": "f-sne", "width": 64, "code_size": 16)";
  EXPECT_EQ(
      problem(embedding((different + "}}").c_str())),
      "model.embedding: blocks 1 and 2 use the codes of the model but differ in code_size or code_deviation; "
      "expected the same, or codes: block");
  model_from(embedding((different + R"(, "codes": "block"}})").c_str()).c_str());
}

TEST(EmbeddingRulesTest, ALinearEmbeddingLeavesNoTrace) {
  EXPECT_EQ(
      canonical(embedding(R"({"depth": 3, "width": 64, "shared": "1", "code_size": 8, "bias": false})")),
      canonical(embedding("{}")));
}

TEST(BlockRulesTest, KeysWithoutEffectLeaveNoTrace) {
  EXPECT_EQ(canonical(block(R"({"attention": "tokens", "l2_norm": false, "learned_temperature": false})")),
            canonical(block(R"({"attention": "tokens"})")));
  EXPECT_NE(canonical(block(R"({"l2_norm": false})")), canonical(block("{}")));
}

TEST(BlockRulesTest, TheTemperatureHasAStartThatIsPositive) {
  EXPECT_NE(canonical(block(R"({"temperature": 2, "learned_temperature": false})")),
            canonical(block(R"({"learned_temperature": false})")));
  EXPECT_EQ(canonical(block(R"({"attention": "none", "temperature": 2})")),
            canonical(block(R"({"attention": "none"})")));
  EXPECT_EQ(problem(block(R"({"temperature": 0})")),
            "model.block.temperature: 0 is out of range; expected a number, above 0");
}

TEST(BlockRulesTest, WithoutAttentionThereIsNothingToEmbed) {
  EXPECT_EQ(canonical_model_of(R"({"preset": "xcit_nano_12_p16_224", "block": {"attention": "none"},
                                   "embedding": {"kind": "sne", "width": 64}})"),
            canonical(block(R"({"attention": "none"})")));
  const ModelConfig model = model_from(R"({"preset": "xcit_nano_12_p16_224",
      "block": {"attention": "none", "layers": 1}, "embedding": {"kind": "sne", "width": 64}})");
  EXPECT_EQ(model.embedding[0], EmbeddingSpelling{});
  EXPECT_EQ(model.embedding[1].kind, EmbeddingKind::kSne);
}

}  // namespace
}  // namespace abl::config
