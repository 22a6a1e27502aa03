// SPDX-License-Identifier: Apache-2.0
// Both Swin transformers against timm and the reference in Python, whose results lie in ABLATE_PARITY_DIR.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "models/backbones/swin.h"
#include "models/backbones/swin_v2.h"
#include "tests/models/parity_case.h"

namespace abl::models {
namespace {

using Json = nlohmann::json;

/// The sizes in timm's words.
template <class Options>
Options swin_options_of(const Json& config) {
  Options options;
  options.image_size = config.at("img_size");
  options.patch = config.at("patch_size");
  options.classes = config.at("num_classes");
  options.dim = config.at("embed_dim");
  options.depths = config.at("depths").get<std::vector<std::int64_t>>();
  options.heads = config.at("num_heads").get<std::vector<std::int64_t>>();
  options.window = config.at("window_size");
  options.mlp_ratio = config.value("mlp_ratio", options.mlp_ratio);
  return options;
}

/// The reference's words for the manifold key.
KeyChoice key_of(const std::string& kind, std::int64_t charts) {
  const std::map<std::string, KeyMethod> methods{{"spatial", KeyMethod::kSpatialK},
                                                 {"kua", KeyMethod::kKua},
                                                 {"simple", KeyMethod::kSimpleK},
                                                 {"vanilla", KeyMethod::kVanillaK}};
  return {.method = methods.at(kind), .charts = charts};
}

WindowAttentionChoice swin_choice_of(const Json& block) {
  const std::string kind = block.at("kind");
  if (kind == "qkv") return QkvChoice{};
  if (kind == "key") return key_of(block.at("key"), block.at("charts"));
  if (kind == "none") return AttentionChoice{.kernel = Kernel::kNone};
  const std::string kernel = block.at("kernel"), probe = block.at("probe"), layout = block.at("layout");
  return AttentionChoice{.kernel = kernel == "gaussian" ? Kernel::kGaussian : Kernel::kDot,
                         .probe = probe == "inside"    ? Probe::kInside
                                  : probe == "outside" ? Probe::kOutside
                                                       : Probe::kNone,
                         .share = block.at("share"),
                         .groups = block.at("groups"),
                         .layout = layout == "block"         ? Layout::kBlock
                                   : layout == "fused-block" ? Layout::kFusedBlock
                                                             : Layout::kInterleaved,
                         .tied_weight_scale = block.at("tied_weight_scale")};
}

/// `variant` is the reference's word for one attention in every block.
WindowAttentionChoice choice_of_variant(const std::string& variant, std::int64_t charts) {
  if (!variant.starts_with("msf")) return key_of(variant, charts);
  AttentionChoice choice{.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW"};
  if (variant == "msf-g2") choice.groups = 2;
  return choice;
}

template <class Options>
std::size_t blocks_of(const Options& options) {
  return std::accumulate(options.depths.begin(), options.depths.end(), std::size_t{0});
}

SwinOptions swin_of(const Json& config) {
  auto options = swin_options_of<SwinOptions>(config);
  const auto blocks = blocks_of(options);
  if (config.contains("attention"))
    for (const auto& block : config.at("attention")) options.attention.push_back(swin_choice_of(block));
  else if (config.contains("variant"))
    options.attention.assign(blocks, choice_of_variant(config.at("variant"), config.at("charts")));
  else
    options.attention.assign(blocks, QkvChoice{});
  return options;
}

SwinV2Options swin_v2_of(const Json& config) {
  auto options = swin_options_of<SwinV2Options>(config);
  options.pretrained_window = config.value("pretrained_window_sizes", options.pretrained_window);
  options.attention.assign(blocks_of(options), QkvChoice{});
  if (config.contains("attention"))
    for (std::size_t index = 0; index < options.attention.size(); ++index) {
      const auto& block = config.at("attention").at(index);
      if (block.at("kind") == "key") options.attention[index] = key_of(block.at("key"), block.at("charts"));
    }
  return options;
}

class SwinParity : public ::testing::TestWithParam<std::string> {};

TEST_P(SwinParity, IsTheReference) {
  const ParityCase reference{GetParam()};
  if (GetParam().find("swinv2") != std::string::npos) {
    SwinV2Impl model{swin_v2_of(reference.config())};
    expect_parity(model, reference);
  } else {
    SwinImpl model{swin_of(reference.config())};
    expect_parity(model, reference);
  }
}

INSTANTIATE_TEST_SUITE_P(Swin, SwinParity,
                         ::testing::Values("timm_swin_small_case", "timm_swin_one_window", "timm_swin_padded",
                                           "timm_swin_stages", "timm_swin_sizes", "timm_swinv2_sizes",
                                           "timm_swinv2_small", "timm_swinv2_padded",
                                           "timm_swinv2_pretrained_window", "ref_swinv2_key", "ref_swin_msf",
                                           "ref_swin_msf-g2", "ref_swin_spatial", "ref_swin_kua",
                                           "ref_swin_simple", "ref_swin_vanilla", "ref_swin_gauss_orig",
                                           "ref_swin_dot_probe", "ref_swin_residual", "ref_swin_residual_g2",
                                           "ref_swin_msf_g2_fused", "ref_swin_QKKKW", "ref_swin_QQQ-Q",
                                           "ref_swin_tied", "ref_swin_QKVPW_g3_block", "ref_swin_QKKKW_g2",
                                           "ref_swin_kua_c3", "ref_swin_placement"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace(name, '-', 'x');  // a test's name may not hold a dash
                           return name;
                         });

}  // namespace
}  // namespace abl::models
