// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/weights/release_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/backbones/simple_vit.h"
#include "tests/models/foreign_states.h"

namespace abl::models {
namespace {

using ::testing::HasSubstr;

SimpleVitOptions msf(const AttentionChoice& choice) {
  return {.image_size = 32,
          .patch = 8,
          .classes = 5,
          .dim = 16,
          .depth = 2,
          .heads = 2,
          .dim_head = 8,
          .mlp_dim = 32,
          .attention = std::vector<AttentionChoice>(2, choice)};
}

/// What the MSF release's grouped layer computes, output by output: output j of the fused layer is made of
/// the inputs of group j mod G by the row j div G of that group.
torch::Tensor released_projection(const torch::Tensor& x, const torch::Tensor& fused, std::int64_t groups) {
  const auto per_group = fused.size(0) / groups, width = fused.size(1);
  std::vector<torch::Tensor> outputs;
  for (std::int64_t j = 0; j < fused.size(0); ++j)
    outputs.push_back(
        x.narrow(-1, j % groups * width, width).matmul(fused[j % groups * per_group + j / groups]));
  return torch::stack(outputs, -1);
}

class MsfRelease : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(MsfRelease, KeepsInOneTensorWhatWeKeepByRole) {
  torch::manual_seed(11);
  const auto groups = GetParam();
  const auto fused = torch::randn({4 * 16, 16 / groups}), x = torch::randn({2, 3, 16});
  const auto ours = from_msf_release({{"transformer.layers.7.0.norm.weight", torch::ones({16})},
                                      {"transformer.layers.7.0.to_qkvp.weight", fused}});
  const auto released = released_projection(x, fused, groups).chunk(4, -1);
  for (std::size_t role = 0; role < 4; ++role) {
    const auto name = std::string{"attn.7.mat."} + "QKVP"[role];
    const auto made = grouped_linear(x, ours.at(name), groups, Layout::kInterleaved);
    EXPECT_LT((made - released[role]).abs().max().item<double>(), 1e-5) << name;
  }
}

TEST_P(MsfRelease, KeepsBlocksOfAllProjectionsSideBySide) {
  torch::manual_seed(12);
  const auto groups = GetParam();
  const auto fused = torch::randn({4 * 16, 16 / groups}), x = torch::randn({2, 3, 16});
  const State release{{"transformer.layers.7.0.norm.weight", torch::ones({16})},
                      {"transformer.layers.7.0.to_qkvp.weight", fused}};
  const auto ours = from_msf_release(release, {{"7", Layout::kFusedBlock}});
  const auto released = grouped_linear(x, fused, groups, Layout::kBlock).chunk(4, -1);
  for (std::int64_t role = 0; role < 4; ++role) {
    const auto name = std::string{"attn.7.mat."} + "QKVP"[role];
    const auto made = grouped_linear(x, ours.at(name), groups, Layout::kFusedBlock, {}, {role, 4});
    EXPECT_LT((made - released[static_cast<std::size_t>(role)]).abs().max().item<double>(), 1e-5) << name;
  }
  if (groups > 1) {
    EXPECT_THROW(from_msf_release(release, {{"7", Layout::kBlock}}), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, MsfRelease, ::testing::Values(1, 2, 4));

/// The state of one of our models under the names of the MSF release.
State released_msf(const State& ours, std::int64_t groups, const std::string& letters) {
  State out;
  const std::map<std::string, std::string> outside{{"embed_norm1.", "to_patch_embedding.1."},
                                                   {"embed.", "to_patch_embedding.2."},
                                                   {"embed_norm2.", "to_patch_embedding.3."},
                                                   {"head_norm.", "linear_head.0."},
                                                   {"head.", "linear_head.1."}};
  for (const auto& [mine, theirs] : outside)
    for (const std::string end : {"weight", "bias"}) out.emplace(theirs + end, ours.at(mine + end));
  for (const std::string layer : {"0", "1"}) {
    const auto attention = "attn." + layer + ".", mlp = "ff." + layer + ".";
    const auto theirs = "transformer.layers." + layer + ".";
    for (const std::string end : {"weight", "bias"}) {
      out.emplace(theirs + "0.norm." + end, ours.at(attention + "norm." + end));
      out.emplace(theirs + "1.net.0." + end, ours.at(mlp + "norm." + end));
      out.emplace(theirs + "1.net.1." + end, ours.at(mlp + "fc1." + end));
      out.emplace(theirs + "1.net.3." + end, ours.at(mlp + "fc2." + end));
    }
    std::vector<torch::Tensor> rows;  // by group, then role
    for (std::int64_t group = 0; group < groups; ++group)
      for (const char letter : letters)
        rows.push_back(ours.at(attention + "mat." + letter).chunk(groups)[group]);
    out.emplace(theirs + (letters == "QKV" ? "0.to_qkv.weight" : "0.to_qkvp.weight"), torch::cat(rows));
    out.emplace(theirs + "0.to_out.weight", ours.at(attention + "mat.W"));
  }
  return out;
}

TEST(MsfReleaseNames, AreAllKnown) {
  torch::manual_seed(12);
  const AttentionChoice original{},
      grouped{.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW", .groups = 2};
  for (const auto& choice : {original, grouped}) {
    const SimpleVit from{msf(choice)};
    SimpleVit into{msf(choice)};
    const auto letters = choice.probe == Probe::kNone ? "QKV" : "QKVP";
    load_weights(*into, released_msf(copy_of(*from), choice.groups, letters));
    expect_equal(*into, copy_of(*from));
  }
}

TEST(MsfReleaseNames, AreThoseOfEachLayersLayout) {
  torch::manual_seed(12);
  const AttentionChoice whole{.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW"};
  auto blocks = whole;
  blocks.groups = 2;
  blocks.layout = Layout::kFusedBlock;
  auto options = msf(whole);
  options.attention = {whole, blocks};
  const SimpleVit from{options};
  SimpleVit into{options};
  load_weights(*into, released_msf(copy_of(*from), /*groups=*/1, "QKVP"));  // blocks go by role
  expect_equal(*into, copy_of(*from));
}

TEST(MsfReleaseNames, AFusedTensorThatIsNotOfItsRolesIsRefused) {
  SimpleVit into{msf({})};
  auto state = released_msf(copy_of(*into), 1, "QKV");
  state.insert_or_assign("transformer.layers.1.0.to_qkv.weight", torch::zeros({47, 16}));
  EXPECT_THAT(refusal(*into, state), HasSubstr("transformer.layers.1.0.to_qkv.weight has shape [47, 16]"));
  state.insert_or_assign("transformer.layers.1.0.to_qkv.weight", torch::zeros({48, 0}));
  EXPECT_THAT(refusal(*into, state), HasSubstr("has shape [48, 0]"));
  state.insert_or_assign("transformer.layers.1.0.to_qkv.weight", torch::zeros({48, 16}));
  state.insert_or_assign("transformer.layers.1.0.norm.weight", torch::zeros({0}));
  EXPECT_THAT(refusal(*into, state), HasSubstr("has shape [48, 16]"));
  state.erase("transformer.layers.1.0.norm.weight");
  EXPECT_THAT(refusal(*into, state), HasSubstr("no preceding norm"));
}

TEST(XcitReleaseNames, AreAllKnown) {
  torch::manual_seed(13);
  const Xcit from{xcit()};
  stir(*from);
  State released;
  for (const auto& [name, tensor] : copy_of(*from)) {
    if (name.starts_with("pos_embed."))
      released.emplace("pos_embeder." + name.substr(10), tensor);
    else if (!name.starts_with("cls_attn_blocks.") ||
             (name.find(".attn.") == std::string::npos || name.find(".proj.") != std::string::npos))
      released.emplace(name, tensor);
  }
  for (const std::string block : {"0", "1"})
    for (const std::string end : {"weight", "bias"}) {
      const auto attention = "cls_attn_blocks." + block + ".attn.";
      const auto ours = copy_of(*from);
      released.emplace(attention + "qkv." + end,
                       torch::cat({ours.at(attention + "q." + end), ours.at(attention + "k." + end),
                                   ours.at(attention + "v." + end)}));
    }
  Xcit into{xcit()};
  load_weights(*into, released);
  expect_equal(*into, copy_of(*from));
  released.insert_or_assign("cls_attn_blocks.1.attn.qkv.bias", torch::zeros({95}));
  EXPECT_THAT(refusal(*into, released), HasSubstr("cls_attn_blocks.1.attn.qkv.bias has shape [95]"));
}

}  // namespace
}  // namespace abl::models
