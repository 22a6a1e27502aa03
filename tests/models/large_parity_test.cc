// SPDX-License-Identifier: Apache-2.0
// Models of the papers' sizes, built from their presets as a trial's are, against timm and the references,
// whose results (`make parity`) lie in ABLATE_PARITY_DIR.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "config/document/trial_document.h"
#include "models/backbones/model_options.h"
#include "tests/models/parity_case.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::models {
namespace {

/// What the `model` section of a trial's document means.
std::shared_ptr<Classifier> model_of(const nlohmann::json& about) {
  const auto trial = config::read_model_or_throw(
      {{"model", about.at("model")}, {"data", {{"image_size", about.at("input_size")}, {"classes", 1000}}}});
  return build(tasks::model_options(trial.model, trial.data));
}

class LargeParity : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeParity, OfAPresetIsTheReference) {
  const ParityCase reference{GetParam()};
  const auto model = model_of(reference.config());
  expect_parity(*model, reference);
}

/// A test's name may not hold a dash.
std::string name_of(const ::testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param;
  std::ranges::replace(name, '-', 'x');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Timm, LargeParity,
    ::testing::Values("timm_deit_tiny_distilled_patch16_224", "timm_deit3_small_patch16_224", "timm_resnet18",
                      "timm_vit_tiny_patch16_224", "timm_vit_small_patch16_224", "timm_vit_base_patch16_224",
                      "timm_swin_tiny_patch4_window7_224", "timm_swin_small_patch4_window7_224",
                      "timm_swinv2_tiny_window8_256", "timm_xcit_nano_12_p16_224", "timm_xcit_tiny_12_p8_224",
                      "timm_xcit_small_12_p16_224", "timm_xcit_tiny_24_p16_224", "timm_xcit_tiny_12_p16_224",
                      "timm_xcit_small_24_p8_224", "timm_xcit_medium_24_p16_224", "timm_xcit_large_24_p8_224",
                      "timm_resnet50", "timm_resnet101", "timm_resnext50_32x4d", "timm_resnext101_32x8d",
                      "timm_efficientnet_b0", "timm_regnety_160"),
    name_of);
INSTANTIATE_TEST_SUITE_P(Papers, LargeParity,
                         ::testing::Values("ref_msf_simple-vit-s", "ref_msf_simple-vit-s_mean_shift",
                                           "ref_msf_simple-vit-b", "ref_keyvit_key-vit-s",
                                           "ref_keyvit_key-vit-s_spatialk", "ref_keyvit_key-vit-b"),
                         name_of);

}  // namespace
}  // namespace abl::models
