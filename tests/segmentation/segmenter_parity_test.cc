// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <string>

#include "models/dense/segmentation/segmenter.h"
#include "tests/segmentation/reference.h"

namespace abl::models {
namespace {

using Json = nlohmann::json;

SegmenterOptions options_of(const Json& config) {
  const std::string head = config.at("head");
  const auto& sizes = config.at("options");
  const std::int64_t channels = sizes.at("channels");
  SegmenterOptions options{.classes = 7};
  if (head == "semantic-fpn") {
    options.head = SemanticFpnOptions{
        .channels = channels, .dropout = 0, .align_corners = sizes.value("align_corners", false)};
  } else if (head == "uper-net") {
    options.head = UperNetOptions{
        .channels = channels, .dropout = 0, .auxiliary = {.channels = sizes.at("auxiliary"), .dropout = 0}};
  } else {
    const auto decoder = head == "setr-naive" ? SetrDecoder::kNaive
                         : head == "setr-pup" ? SetrDecoder::kPup
                                              : SetrDecoder::kMla;
    options.head =
        SetrOptions{.decoder = decoder, .channels = channels, .mla_channels = sizes.value("mla_channels", 0)};
  }
  return options;
}

class SegmenterParity : public ::testing::TestWithParam<std::string> {};

TEST_P(SegmenterParity, IsTheReference) {
  const Reference reference{GetParam()};
  const auto config = reference.config();
  const bool is_setr = std::string{config.at("head")}.starts_with("setr");
  const auto backbone = build_feature_maps(backbone_of(config.at("family"), config.at("sizes")),
                                           {.scale = is_setr ? MapScale::kPatch : MapScale::kPyramid});
  SegmenterImpl model{backbone, options_of(config)};
  load_state(model, reference.all("sd."));
  const auto images = reference.at("input"), labels = reference.at("labels");
  {
    const torch::NoGradGuard no_grad;
    model.eval();
    const auto answers = model.answer(images);
    EXPECT_LT(relative_error(answers.logits, reference.at("logits")), 1e-4);
    EXPECT_TRUE(torch::equal(model.forward(images), answers.logits));
    const auto beside = reference.all("beside.");
    ASSERT_EQ(answers.auxiliary.size(), beside.size());
    for (std::size_t head = 0; head < beside.size(); ++head)
      EXPECT_LT(relative_error(answers.auxiliary[head], beside.at(std::to_string(head))), 1e-4) << head;
  }
  model.train();
  const auto answers = model.answer(images);
  const auto losses = segmentation_losses(answers, labels);
  EXPECT_LT(relative_error(losses.total, reference.at("loss")), 1e-4);
  const auto of_valid = segmentation_losses(answers, labels, {.counts_ignored = false});
  EXPECT_LT(relative_error(of_valid.total, reference.at("loss_valid")), 1e-4);
  model.to(torch::kDouble);
  segmentation_losses(model.answer(images.to(torch::kDouble)), labels).total.backward();
  expect_gradients(model, reference);
}

INSTANTIATE_TEST_SUITE_P(Heads, SegmenterParity,
                         ::testing::Values("segmenter_semantic_fpn", "segmenter_semantic_fpn_corners",
                                           "segmenter_semantic_fpn_swin", "segmenter_uper_net",
                                           "segmenter_setr_naive", "segmenter_setr_pup",
                                           "segmenter_setr_mla"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace abl::models
