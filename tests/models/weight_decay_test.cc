// SPDX-License-Identifier: Apache-2.0
#include "models/weights/weight_decay.h"

#include <gmock/gmock.h>

#include <map>

#include "models/backbones/model_options.h"
#include "tests/models/small_models.h"
#include "tests/models/xcit_of_blocks.h"

namespace abl::models {
namespace {

using testing::ElementsAreArray;

/// The undecayed parameters of more than one dimension that are no biases.
std::set<std::string> undecayed_tensors(const ModelOptions& options) {
  const auto model = build(options, torch::kMeta);
  auto names = undecayed(*model);
  for (const auto& parameter : model->named_parameters()) {
    const bool is_vector = parameter.value().dim() <= 1 || parameter.key().ends_with(".bias");
    if (!is_vector) continue;
    EXPECT_TRUE(names.erase(parameter.key())) << parameter.key();
  }
  return names;
}

TEST(Undecayed, AreTokensPositionsAndTablesBesideVectors) {
  const std::map<std::string, std::vector<std::string>> expected{
      {"simple-vit", {}},
      {"resnet", {}},
      {"efficientnet", {}},
      {"regnet", {}},
      {"vit", {"cls_token", "pos_embed"}},
      {"key-vit", {"cls", "pos"}},
      {"swin",
       {"layers.0.blocks.0.attn.relative_position_bias_table",
        "layers.0.blocks.1.attn.relative_position_bias_table",
        "layers.1.blocks.0.attn.relative_position_bias_table",
        "layers.1.blocks.1.attn.relative_position_bias_table"}},
      {"xcit", {"cls_token"}},
      {"xcit with other embeddings", {"cls_token"}}};
  for (const auto& [name, options] : small_models()) {
    if (name == "swin-v2") continue;  // below
    EXPECT_THAT(undecayed_tensors(options), ElementsAreArray(expected.at(name))) << name;
  }
}

TEST(Undecayed, OfSwinV2AreThePositionNetworkAndTheTemperature) {
  const auto names = undecayed_tensors(small_model("swin-v2"));
  for (const std::string block : {"layers.0.blocks.1", "layers.1.blocks.1"})
    for (const auto* name : {".attn.logit_scale", ".attn.cpb_mlp.0.weight", ".attn.cpb_mlp.2.weight"})
      EXPECT_TRUE(names.contains(block + name)) << block << name;
  for (const auto& name : names)
    EXPECT_TRUE(name.ends_with("logit_scale") || name.find("cpb_mlp") != name.npos) << name;
}

TEST(Undecayed, AreXcitsScalesAndNormsButNotItsTemperature) {
  const auto names = undecayed(*build(small_model("xcit"), torch::kMeta));
  for (const auto* name :
       {"blocks.0.gamma1", "blocks.0.gamma3", "blocks.0.norm2.weight", "blocks.0.local_mp.bn.weight",
        "blocks.0.attn.qkv.bias", "cls_attn_blocks.1.gamma2"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const auto* name : {"blocks.0.attn.temperature", "pos_embed.token_projection.weight",
                           "blocks.0.attn.qkv.weight", "codes.code"})
    EXPECT_FALSE(names.contains(name)) << name;
}

TEST(Undecayed, OfTheManifoldKeyAreItsFactorsButNotItsMixing) {
  const auto options = small_model("key-vit");
  const auto names = undecayed(*build(options, torch::kMeta));
  std::set<std::string> decayed;
  for (const auto& parameter : build(options, torch::kMeta)->named_parameters())
    if (parameter.key().starts_with("attn.0.key") && !names.contains(parameter.key()))
      decayed.insert(parameter.key());
  EXPECT_TRUE(names.contains("attn.0.key.gamma"));
  for (const auto& name : decayed) EXPECT_TRUE(name.ends_with(".weight")) << name;
  EXPECT_FALSE(decayed.empty());
}

TEST(IsCode, KnowsTheCodesOfTheModelAndOfABlock) {
  for (const bool over_blocks : {true, false}) {
    const EmbeddingChoice f_sne{
        .widths = {32}, .shared = {true, true}, .code_size = 8, .codes_over_blocks = over_blocks};
    int codes = 0;
    const auto model = build(xcit_of_blocks({{.embedding = f_sne}, {.embedding = f_sne}}), torch::kMeta);
    for (const auto& parameter : model->named_parameters()) {
      if (!is_code(parameter.key())) continue;
      ++codes;
      EXPECT_EQ(parameter.value().sizes(), (std::vector<std::int64_t>{3, 8}));
    }
    EXPECT_EQ(codes, over_blocks ? 1 : 2);
  }
  EXPECT_FALSE(is_code("blocks.0.attn.qkv.fc1.0.weight"));
}

}  // namespace
}  // namespace abl::models
