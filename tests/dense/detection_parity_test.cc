// SPDX-License-Identifier: Apache-2.0
// Against what torchvision makes of the same: tests/parity/write_detection.py.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "models/backbones/resnet.h"
#include "models/dense/mask_rcnn/mask_rcnn.h"
#include "models/dense/nms.h"
#include "models/dense/roi_align.h"
#include "models/weights/safetensors.h"
#include "models/weights/state.h"

namespace abl::models {
namespace {

using torch::Tensor;

const std::filesystem::path kFolder{ABLATE_DETECTION_PARITY_DIR};

/// One file of them.
struct Reference {
  explicit Reference(const std::string& name) : file{read_safetensors(kFolder / (name + ".safetensors"))} {}

  const Tensor& operator[](const std::string& name) const { return file.tensors.at(name); }
  bool has(const std::string& name) const { return file.tensors.contains(name); }
  nlohmann::json cases() const { return nlohmann::json::parse(file.metadata.at("ablate")); }
  std::map<std::string, Tensor> all(const std::string& prefix) const {
    std::map<std::string, Tensor> found;
    for (const auto& [name, tensor] : file.tensors)
      if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), tensor);
    return found;
  }

  const TensorFile file;
};

/// The largest difference, of numbers around 1 or larger relative to the largest.
double error(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(got.sizes(), expected.sizes());
  if (got.sizes() != expected.sizes() || got.numel() == 0) return 0;
  const auto exact = expected.to(torch::kDouble);
  const auto worst = (got.detach().to(torch::kDouble) - exact).abs().max().item<double>();
  return std::isfinite(worst) ? worst / std::max(1., exact.abs().max().item<double>()) : INFINITY;
}

TEST(DetectionParity, RegionsAndTheirGradientsAreThoseOfRoiAlign) {
  const Reference reference{"regions"};
  for (const auto& each : reference.cases()) {
    const std::string name = each.at("name");
    SCOPED_TRACE(name);
    const RoiAlignOptions options{.height = each.at("height"),
                                  .width = each.at("width"),
                                  .samples = each.at("samples"),
                                  .aligned = each.at("aligned")};
    for (const auto align : {roi_align, gathered_roi_align}) {
      const auto maps = reference[name + ".maps"].clone().requires_grad_();
      const double tolerance = maps.scalar_type() == torch::kDouble ? 1e-13 : 2e-6;
      const auto pooled = align(maps, reference[name + ".rois"], each.at("scale"), options);
      EXPECT_LT(error(pooled, reference[name + ".pooled"]), tolerance);
      pooled.backward(reference[name + ".given"]);
      EXPECT_LT(error(maps.grad(), reference[name + ".gradient"]), tolerance);
    }
  }
}

TEST(DetectionParity, TheSameBoxesStayInTheSameOrder) {
  const Reference reference{"boxes"};
  for (const std::string name : reference.cases())
    for (const auto* threshold : {"0.0", "0.3", "0.5", "0.7", "1.0"}) {
      SCOPED_TRACE(name + " at " + threshold);
      const auto &boxes = reference[name + ".boxes"], &scores = reference[name + ".scores"];
      const auto limit = std::stod(threshold);
      EXPECT_TRUE(torch::equal(nms(boxes, scores, limit), reference[name + ".stay." + threshold]));
      EXPECT_TRUE(torch::equal(batched_nms(boxes, scores, reference[name + ".classes"], limit),
                               reference[name + ".stay_of_class." + threshold]));
    }
}

/// As write_detection.py makes its models.
MaskRcnn small_model(bool with_norms) {
  MaskRcnnOptions options;
  if (with_norms) options = MaskRcnnOptions::with_norms();
  options.width = 16;
  options.proposals.training = {.of_level = 60, .of_image = 50};
  options.proposals.evaluation = {.of_level = 40, .of_image = 30};
  options.proposals.sample.count = 64;
  options.heads.classes = 5;
  options.heads.boxes.layers = {24};
  if (with_norms)
    options.heads.boxes.convolutions = {12, 8};
  else
    options.heads.boxes.layers = {24, 24};
  options.heads.boxes.sample.count = 40;
  options.heads.boxes.least_score = 0.1;
  options.heads.boxes.detections = 12;
  options.heads.masks.convolutions = {12, 8};
  options.heads.masks.hidden = 10;
  return MaskRcnn{
      options,
      std::make_shared<ResNetImpl>(ResNetOptions{
          .layers = {1, 1, 1, 1}, .width_per_group = 8, .has_head = false, .frozen_norms = !with_norms})};
}

class SmallMaskRcnn : public testing::TestWithParam<std::tuple<bool, torch::Dtype>> {
 protected:
  SmallMaskRcnn() {
    load_state(*model_, reference_.all("sd."));
    model_->to(type_);
    for (int i = 0; i < 2; ++i) {
      const auto target = "target." + std::to_string(i);
      targets_.push_back({.boxes = reference_[target + ".boxes"].to(type_),
                          .labels = reference_[target + ".labels"],
                          .masks = reference_[target + ".masks"]});
    }
  }
  /// Everything is computed in float64 there. What of it float32 may not decide otherwise, it has within
  /// 1e-4.
  double tolerance() const { return type_ == torch::kDouble ? 1e-5 : 1e-4; }

  const bool with_norms_ = std::get<0>(GetParam());
  const torch::Dtype type_ = std::get<1>(GetParam());
  const Reference reference_{with_norms_ ? "with_norms" : "plain"};
  MaskRcnn model_ = small_model(with_norms_);
  const ImageBatch batch_{.images = reference_["images"].to(type_), .sizes = {{96, 128}, {90, 72}}};
  std::vector<Instances> targets_;
};

TEST_P(SmallMaskRcnn, HasTorchvisionsLossesAndGradients) {
  const Choose choose = [](std::size_t, std::int64_t count, std::int64_t chosen) {
    return (torch::arange(count) * 7919 % std::max<std::int64_t>(count, 1)).narrow(0, 0, chosen);
  };
  model_->train();
  const auto losses = model_->losses(batch_, targets_, choose);
  EXPECT_LT(error(losses.classes.reshape(1), reference_["loss.loss_classifier"]), tolerance());
  EXPECT_LT(error(losses.boxes.reshape(1), reference_["loss.loss_box_reg"]), tolerance());
  EXPECT_LT(error(losses.masks.reshape(1), reference_["loss.loss_mask"]), tolerance());
  // torchvision sums it in the type of its labels, float32
  EXPECT_LT(error(losses.objectness.reshape(1), reference_["loss.loss_objectness"]),
            std::max(1e-6, tolerance()));
  EXPECT_LT(error(losses.proposals.reshape(1), reference_["loss.loss_rpn_box_reg"]), tolerance());

  // with few places in a batch float32 decides a ReLU otherwise now and then, in torchvision as well
  if (with_norms_ && type_ == torch::kFloat) return;
  losses.sum().backward();
  const auto expected = reference_.all("grad.");
  std::size_t with_gradient = 0;
  for (const auto& parameter : model_->named_parameters()) {
    ASSERT_TRUE(expected.contains(parameter.key())) << parameter.key();
    const auto& gradient = expected.at(parameter.key());
    const auto scale = gradient.abs().max();  // each is compared by its own size
    EXPECT_LT(error(parameter.value().grad() / scale, gradient / scale), tolerance()) << parameter.key();
    ++with_gradient;
  }
  EXPECT_EQ(with_gradient, expected.size());
  const auto state = state_of(*model_);
  for (const auto& [name, statistic] : reference_.all("train."))
    EXPECT_LT(error(state.at(name), statistic), tolerance()) << name;
}

TEST_P(SmallMaskRcnn, FindsWhatTorchvisionFinds) {
  const torch::NoGradGuard no_grad;
  model_->eval();
  const auto found = model_->detect(batch_);
  ASSERT_EQ(found.size(), 2u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto expected = "found." + std::to_string(i);
    const auto& [boxes, labels, scores, masks] = found[i];
    EXPECT_TRUE(torch::equal(labels, reference_[expected + ".labels"]));
    EXPECT_LT(error(boxes, reference_[expected + ".boxes"]), tolerance());
    EXPECT_LT(error(scores, reference_[expected + ".scores"]), tolerance());
    EXPECT_LT(error(masks.unsqueeze(1), reference_[expected + ".small_masks"]), tolerance());

    // pasted from the same masks and boxes: to whole pixels, which rounding may shift
    const auto& size = batch_.sizes[i];
    const auto exact_masks = reference_[expected + ".small_masks"].squeeze(1);
    const auto &exact_boxes = reference_[expected + ".boxes"], &pasted = reference_[expected + ".masks"];
    EXPECT_LT(error(pasted_masks(exact_masks, exact_boxes, size).unsqueeze(1), pasted), 1e-12);
    EXPECT_TRUE(torch::equal(pasted_masks(exact_masks, exact_boxes, size, 0.5).unsqueeze(1), pasted >= 0.5));
  }
}

TEST_P(SmallMaskRcnn, ProposesWhatTorchvisionProposes) {
  const torch::NoGradGuard no_grad;
  auto* const rpn = model_->named_modules()["rpn"]->as<RpnImpl>();
  auto* const fpn = model_->named_modules()["backbone.fpn"]->as<FpnImpl>();
  auto* const body = dynamic_cast<FeatureMaps*>(model_->named_modules()["backbone.body"].get());
  for (const std::string mode : {"training", "evaluation"}) {
    model_->train(mode == "training");
    const auto proposals = rpn->forward(fpn->forward(body->maps(batch_.images)), batch_).proposals;
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_LT(error(proposals[i], reference_[mode + ".proposals." + std::to_string(i)]), tolerance())
          << mode;
    load_state(*model_, reference_.all("sd."));  // training has followed the statistics
  }
}

INSTANTIATE_TEST_SUITE_P(DetectionParity, SmallMaskRcnn,
                         testing::Combine(testing::Bool(), testing::Values(torch::kDouble, torch::kFloat)),
                         [](const auto& given) {
                           return std::string{std::get<0>(given.param) ? "WithNorms" : "Plain"} +
                                  (std::get<1>(given.param) == torch::kDouble ? "InFloat64" : "InFloat32");
                         });

/// Of the usual size: names and shapes, on the meta device.
TEST(DetectionParity, AStateIsNamedAsTorchvisionsIs) {
  std::ifstream text{kFolder / "names.json"};
  const auto names = nlohmann::json::parse(text);
  for (const bool with_norms : {false, true}) {
    auto options = with_norms ? MaskRcnnOptions::with_norms() : MaskRcnnOptions{};
    options.heads.classes = 90;
    const MaskRcnn model{
        options, std::make_shared<ResNetImpl>(ResNetOptions{.has_head = false}, torch::kMeta), torch::kMeta};
    const auto& expected = names.at(with_norms ? "with_norms" : "plain");
    nlohmann::json own;
    for (const auto& [name, tensor] : state_of(*model)) own[name] = tensor.sizes().vec();
    EXPECT_EQ(own, expected);
  }
}

}  // namespace
}  // namespace abl::models
