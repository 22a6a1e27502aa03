// SPDX-License-Identifier: Apache-2.0
// The simple ViT against the reference in Python (tests/parity), whose results lie in ABLATE_PARITY_DIR.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/backbones/simple_vit.h"
#include "tests/models/parity_case.h"

namespace abl::models {
namespace {

using Json = nlohmann::json;

template <class Enum>
Enum named(const Json& value, const std::vector<std::pair<std::string, Enum>>& names) {
  for (const auto& [name, enumerator] : names)
    if (value == name) return enumerator;
  throw std::invalid_argument{"the reference uses a word that the models do not know: " + value.dump()};
}

AttentionChoice simple_vit_choice_of(const Json& layer) {
  return {.kernel = named<Kernel>(
              layer.at("kernel"),
              {{"dot", Kernel::kDot}, {"gaussian", Kernel::kGaussian}, {"none", Kernel::kNone}}),
          .probe = named<Probe>(
              layer.at("probe"),
              {{"none", Probe::kNone}, {"inside", Probe::kInside}, {"outside", Probe::kOutside}}),
          .share = layer.at("share"),
          .groups = layer.at("groups"),
          .layout = named<Layout>(layer.at("layout"), {{"interleaved", Layout::kInterleaved},
                                                       {"block", Layout::kBlock},
                                                       {"fused-block", Layout::kFusedBlock}}),
          .tied_weight_scale = layer.at("tied_weight_scale")};
}

SimpleVitOptions simple_vit_options_of(const Json& config) {
  SimpleVitOptions options{.image_size = config.at("image_size"),
                           .patch = config.at("patch"),
                           .classes = config.at("classes"),
                           .dim = config.at("dim"),
                           .depth = config.at("depth"),
                           .heads = config.at("heads"),
                           .dim_head = config.at("dim_head"),
                           .mlp_dim = config.at("mlp_dim")};
  for (const auto& layer : config.at("attention")) options.attention.push_back(simple_vit_choice_of(layer));
  return options;
}

const std::vector<std::string> kCases{"QKVPW",
                                      "QQQQQ",
                                      "QKKQQ",
                                      "QKKKQ",
                                      "QKKKW",
                                      "QKKPP",
                                      "QKVPP",
                                      "QKVPQ",
                                      "QQVVV",
                                      "QKV-W",
                                      "QKK-Q",
                                      "QQQ-Q",
                                      "QKV-V",
                                      "QKVPW_g2_interleave",
                                      "QKVPW_g2_block",
                                      "QKVPW_g2_fused",
                                      "QKV-W_g2_fused",
                                      "QKKPW_g4_fused",
                                      "QKKKW_g2_interleave",
                                      "QKV-W_g2_interleave",
                                      "QKV-W_g2_block",
                                      "QKVPW_g3_interleave",
                                      "QKKPW_g4_block",
                                      "gauss_orig",
                                      "dot_probe",
                                      "residual",
                                      "residual_g2",
                                      "residual_QKKPQ",
                                      "tied_scale",
                                      "sizes",
                                      "placement"};

class MsfParity : public ::testing::TestWithParam<std::string> {};

TEST_P(MsfParity, IsTheReference) {
  const ParityCase reference{"ref_msf_" + GetParam()};
  SimpleVitImpl model{simple_vit_options_of(reference.config())};
  expect_parity(model, reference);
}

/// A test's name may not hold a dash.
std::string name_of(const ::testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param;
  std::ranges::replace(name, '-', 'x');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Msf, MsfParity, ::testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace abl::models
