// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/backbones/xcit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/bfloat16.h"
#include "tests/models/refusal.h"
#include "tests/models/small_models.h"
#include "tests/models/xcit_of_blocks.h"

namespace abl::models {
namespace {

const SmallModel kSmallXcit{
    "xcit",
    xcit_of_blocks({{},
                    {.embedding = EmbeddingChoice{.widths = {32}, .shared = {true, true}, .code_size = 8}},
                    {.l2_norm = false}})};

const SmallModel kSmallXcitOfOtherEmbeddings{
    "xcit with other embeddings",
    xcit_of_blocks({{.embedding = EmbeddingChoice{.widths = {32}, .shared = {false, false}}},
                    {.embedding = EmbeddingChoice{.widths = {32}, .shared = {false, true}}}})};

/// For images of 32 pixels.
XcitOptions small_xcit(std::vector<XcitChoice> blocks) {
  return {.image_size = 32,
          .patch = 8,
          .classes = 5,
          .dim = 16,
          .heads = 4,
          .mlp_ratio = 2,
          .blocks = std::move(blocks)};
}

EmbeddingChoice fully_shared(std::int64_t code_size = 4) {
  return {.widths = {12}, .shared = {true, true}, .code_size = code_size};
}

/// One block of each kind.
std::vector<XcitChoice> all_kinds() {
  auto own_codes = fully_shared();
  own_codes.codes_over_blocks = false;
  return {{},
          {.attention = XcitAttention::kTokens},
          {.attention = XcitAttention::kNone},
          {.local_patch_interaction = false},
          {.embedding = EmbeddingChoice{.widths = {12}, .shared = {false, false}}},
          {.embedding = EmbeddingChoice{.widths = {12, 8}, .shared = {false, true, true}}},
          {.embedding = fully_shared()},
          {.embedding = own_codes, .learned_temperature = false}};
}

TEST(Xcit, TrainsEveryParameterOfEveryKindOfBlock) {
  torch::manual_seed(1);
  XcitImpl model{small_xcit(all_kinds())};
  for (auto& parameter : model.parameters()) {  // at their start the logits are nearly 0
    const torch::NoGradGuard no_grad;
    parameter.add_(torch::randn_like(parameter), 0.2);
  }
  const auto logits = model.forward(torch::randn({3, 3, 32, 32}));
  EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{3, 5}));
  torch::cross_entropy_loss(logits, torch::tensor({0, 1, 2})).backward();
  for (const auto& parameter : model.named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 0) << parameter.key();
  }
}

TEST(Xcit, TakesImagesOfAnySizeThatThePatchDivides) {
  XcitImpl model{small_xcit(all_kinds())};
  model.eval();
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({2, 3, 32, 32});
  const auto before = model.forward(images);
  EXPECT_EQ(model.forward(torch::randn({2, 3, 24, 40})).size(1), 5);
  EXPECT_TRUE(torch::equal(model.forward(images), before)) << "the positions of another size stayed";
  EXPECT_THROW(model.forward(torch::zeros({1, 3, 32, 36})), c10::ValueError);
}

TEST(Xcit, ABlockHasNoParametersOfWhatIsLeftOut) {
  XcitImpl model{small_xcit({{.attention = XcitAttention::kNone, .local_patch_interaction = false},
                             {.learned_temperature = false}})};
  for (const auto& name : model.named_parameters().keys())
    EXPECT_TRUE(!name.starts_with("blocks.0.") || name.starts_with("blocks.0.norm2.") ||
                name.starts_with("blocks.0.mlp.") || name == "blocks.0.gamma2")
        << name;
  EXPECT_EQ(model.named_parameters().find("blocks.1.attn.temperature"), nullptr);
}

TEST(Xcit, TrainsInBfloat16UnderAutocast) {
  torch::manual_seed(2);
  const auto images = torch::randn({2, 3, 32, 32});
  XcitImpl model{small_xcit(all_kinds())};
  for (const bool training : {false, true}) {
    model.train(training);
    expect_close_in_bfloat16(model, images).sum().backward();
  }
}

TEST(Xcit, OfSharedCodesHasOneSetAndOtherwiseOneForEachBlock) {
  auto own = fully_shared();
  own.codes_over_blocks = false;
  const auto codes_of = [](const EmbeddingChoice& choice) {
    const XcitImpl model{small_xcit({{.embedding = choice}, {.embedding = choice}}), torch::kMeta};
    std::vector<std::string> names;
    for (const auto& name : model.named_parameters().keys())
      if (name.ends_with("code")) names.push_back(name);
    return names;
  };
  EXPECT_EQ(codes_of(fully_shared()), std::vector<std::string>{"codes.code"});
  EXPECT_EQ(codes_of(own),
            (std::vector<std::string>{"blocks.0.attn.codes.code", "blocks.1.attn.codes.code"}));
}

TEST(Xcit, RefusesOptionsThatDoNotFitTogetherInOneLine) {
  const auto refused = [](const std::string& option, auto&& change) {
    auto options = small_xcit({{.embedding = fully_shared()}, {}});
    change(options, options.blocks[0], *options.blocks[0].embedding);
    const auto text = refusal<XcitImpl>(options);
    EXPECT_NE(text.find(option), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  EXPECT_EQ(refusal<XcitImpl>(small_xcit({{.embedding = fully_shared()}, {}})), "accepted");
  refused("36 pixels", [](auto& options, auto&, auto&) { options.image_size = 36; });
  refused("patches of 0", [](auto& options, auto&, auto&) { options.patch = 0; });
  refused("dim is 9", [](auto& options, auto&, auto&) {
    options.patch = 4;
    options.dim = 9;
    options.heads = 3;
  });
  refused("patch is 6", [](auto& options, auto&, auto&) {
    options.patch = 6;
    options.image_size = 36;
  });
  refused("-1 classes", [](auto& options, auto&, auto&) { options.classes = -1; });
  refused("0 blocks of class attention", [](auto& options, auto&, auto&) { options.class_blocks = 0; });
  refused("heads is 3", [](auto& options, auto&, auto&) { options.heads = 3; });
  refused("l2_norm", [](auto&, auto& block, auto&) {
    block.attention = XcitAttention::kTokens;
    block.l2_norm = false;
  });
  refused("temperature", [](auto&, auto& block, auto&) {
    block.attention = XcitAttention::kTokens;
    block.temperature = 2;
  });
  refused("embedding is given", [](auto&, auto& block, auto&) { block.attention = XcitAttention::kNone; });
  refused("code_size is 4 and 8",
          [](auto& options, auto&, auto&) { options.blocks[1].embedding = fully_shared(8); });
  refused("code_deviation is 0.02 and 1", [](auto& options, auto&, auto&) {
    options.blocks[1].embedding = fully_shared();
    options.blocks[1].embedding->code_deviation = 1;
  });
  refused("code_size is 0", [](auto&, auto&, auto& embedding) { embedding.code_size = 0; });
  refused("code_size is 4", [](auto&, auto&, auto& embedding) { embedding.shared = {false, true}; });
  refused("code_size is -1", [](auto&, auto&, auto& embedding) { embedding.code_size = -1; });
  refused("code_deviation is -1", [](auto&, auto&, auto& embedding) { embedding.code_deviation = -1; });
  refused("widths has 1 hidden", [](auto&, auto&, auto& embedding) {
    embedding.shared = {true, true, true};
  });
  refused("widths has 0;", [](auto&, auto&, auto& embedding) { embedding.widths = {0}; });
  refused("shared tells of 0", [](auto&, auto&, auto& embedding) { embedding.shared = {}; });
  refused("shared tells of 5", [](auto&, auto&, auto& embedding) {
    embedding.shared.assign(5, true);
    embedding.widths.assign(4, 8);
  });
}

}  // namespace
}  // namespace abl::models
