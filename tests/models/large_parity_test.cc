// SPDX-License-Identifier: Apache-2.0
// Models of the papers' sizes against timm, whose results (`make parity`) lie in ABLATE_PARITY_DIR.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "models/efficient_net.h"
#include "models/reg_net.h"
#include "models/resnet.h"
#include "models/swin.h"
#include "models/swin_v2.h"
#include "models/vit.h"
#include "models/xcit.h"
#include "tests/models/parity_case.h"

namespace abl::models {
namespace {

template <class Impl, class Options>
std::function<std::unique_ptr<Classifier>()> maker(Options options) {
  return [options] { return std::make_unique<Impl>(options); };
}

const std::vector<WindowAttentionChoice> kSwin(12, QkvChoice{});
const std::vector<CosineAttentionChoice> kSwinV2(12, QkvChoice{});
const std::vector<XcitChoice> kXcit(12);

const std::map<std::string, std::function<std::unique_ptr<Classifier>()>> kModels{
    {"timm_vit_tiny_patch16_224", maker<VitImpl>(VitOptions{.dim = 192, .heads = 3})},
    {"timm_vit_small_patch16_224", maker<VitImpl>(VitOptions{})},
    {"timm_swin_tiny_patch4_window7_224", maker<SwinImpl>(SwinOptions{.attention = kSwin})},
    {"timm_swinv2_tiny_window8_256", maker<SwinV2Impl>(SwinV2Options{.attention = kSwinV2})},
    {"timm_xcit_nano_12_p16_224",
     maker<XcitImpl>(XcitOptions{.dim = 128, .heads = 4, .tokens_norm = false, .blocks = kXcit})},
    {"timm_xcit_tiny_12_p8_224",
     maker<XcitImpl>(XcitOptions{.patch = 8, .dim = 192, .heads = 4, .blocks = kXcit})},
    {"timm_resnet50", maker<ResNetImpl>(ResNetOptions{})},
    {"timm_resnext50_32x4d", maker<ResNetImpl>(ResNetOptions{.groups = 32, .width_per_group = 4})},
    {"timm_efficientnet_b0", maker<EfficientNetImpl>(EfficientNetOptions{})},
    {"timm_regnety_160", maker<RegNetImpl>(RegNetOptions{})},
};

class LargeParity : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeParity, IsTimms) {
  const auto model = kModels.at(GetParam())();
  expect_parity(*model, ParityCase{GetParam()}, /*writes_state=*/false);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, make] : kModels) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Timm, LargeParity, ::testing::ValuesIn(names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace abl::models
