// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/xcit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/parity_case.h"

namespace abl::models {
namespace {

using Json = nlohmann::json;

/// The sizes in timm's words.
XcitOptions sizes_of(const Json& config) {
  return {.image_size = 64,
          .patch = config.at("patch_size"),
          .classes = config.at("num_classes"),
          .dim = config.at("embed_dim"),
          .heads = config.at("num_heads"),
          .mlp_ratio = config.value("mlp_ratio", 4),
          .class_blocks = config.value("cls_attn_layers", 2),
          .eta = config.at("eta"),
          .tokens_norm = config.at("tokens_norm")};
}

EmbeddingChoice embedding_of(const Json& embedding) {
  return {.widths = embedding.at("widths").get<std::vector<std::int64_t>>(),
          .shared = embedding.at("shared").get<std::vector<bool>>(),
          .code_size = embedding.at("code_size"),
          .codes_over_blocks = embedding.at("codes_over_blocks"),
          .bias = embedding.at("bias")};
}

/// What the reference says by a word, a width, a size of codes and whether blocks share them.
EmbeddingChoice embedding_of_words(const Json& words) {
  const std::string kind = words.at(0);
  return {.widths = {words.at(1)},
          .shared = {kind == "fsne", kind != "sne"},
          .code_size = words.size() > 2 ? words.at(2).get<std::int64_t>() : 0,
          .codes_over_blocks = words.size() < 4 || words.at(3).get<bool>()};
}

XcitChoice xcit_choice_of(const Json& block) {
  XcitChoice choice;
  const std::string attention = block.value("attention", "channels");
  if (attention == "tokens") choice.attention = XcitAttention::kTokens;
  if (attention == "none") choice.attention = XcitAttention::kNone;
  if (block.contains("embedding")) choice.embedding = embedding_of(block.at("embedding"));
  choice.l2_norm = block.value("l2_norm", true);
  choice.learned_temperature = block.value("learned_temperature", true);
  choice.temperature = block.value("temperature", 1.0);
  choice.local_patch_interaction = block.value("lpi", true);
  return choice;
}

XcitOptions xcit_of(const Json& config) {
  auto options = sizes_of(config);
  if (config.value("patch_projection", "convolutions") == "linear")
    options.patch_projection = PatchProjection::kLinear;
  if (config.contains("blocks")) {
    for (const auto& block : config.at("blocks")) options.blocks.push_back(xcit_choice_of(block));
    return options;
  }
  XcitChoice choice;
  if (config.contains("embedding")) choice.embedding = embedding_of_words(config.at("embedding"));
  options.blocks.assign(config.at("depth").get<std::size_t>(), choice);
  return options;
}

class XcitParity : public ::testing::TestWithParam<std::string> {};

TEST_P(XcitParity, IsTheReference) {
  const ParityCase reference{GetParam()};
  XcitImpl model{xcit_of(reference.config())};
  expect_parity(model, reference);
}

const auto kNameOfCase = [](const auto& parameter) { return parameter.param; };

INSTANTIATE_TEST_SUITE_P(Release, XcitParity,
                         ::testing::Values("timm_xcit_small_case_p16_64", "timm_xcit_small_case_p8_48",
                                           "timm_xcit_small_case_p8_64", "timm_xcit_sizes"),
                         kNameOfCase);
INSTANTIATE_TEST_SUITE_P(Embedding, XcitParity,
                         ::testing::Values("ref_xcit_sne", "ref_xcit_psne", "ref_xcit_fsne8",
                                           "ref_xcit_fsne8_unshared", "ref_xcit_sne_1", "ref_xcit_sne_3",
                                           "ref_xcit_sne_4", "ref_xcit_shared_first",
                                           "ref_xcit_shared_last_two", "ref_xcit_shared_ends",
                                           "ref_xcit_shared_one_layer", "ref_xcit_fsne_3_own_codes",
                                           "ref_xcit_no_bias", "ref_xcit_no_bias_codes"),
                         kNameOfCase);
INSTANTIATE_TEST_SUITE_P(Ablation, XcitParity,
                         ::testing::Values("ref_xcit_no_lpi", "ref_xcit_no_attention", "ref_xcit_tokens",
                                           "ref_xcit_no_l2", "ref_xcit_fixed_temperature",
                                           "ref_xcit_fixed_temperature_2", "ref_xcit_linear_patches",
                                           "ref_xcit_linear_patches_16", "ref_xcit_tokens_fsne",
                                           "ref_xcit_placement"),
                         kNameOfCase);

}  // namespace
}  // namespace abl::models
