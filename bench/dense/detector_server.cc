// SPDX-License-Identifier: Apache-2.0
// The C++ side of bench/dense/detection.py.
//   detector_server FILE THREADS    of a file with the state of a Mask R-CNN, images and targets; reads
//                                   "TASK TYPE REPEATS" from stdin, does the task so often, and answers with
//                                   the seconds it took; "memory": with the most bytes that were held since
//                                   it began, beside what is held before the first task
//   TASK  step, evaluate, roi-align, nms, batched-nms
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "bench/dense/served.h"
#include "models/backbones/resnet.h"
#include "models/dense/mask_rcnn/mask_rcnn.h"
#include "models/dense/nms.h"
#include "models/dense/roi_align.h"
#include "models/weights/safetensors.h"
#include "models/weights/state.h"

namespace {

using namespace abl::models;
using abl::bench::serve, abl::bench::under_autocast;

class Detector {
 public:
  explicit Detector(const TensorFile& file) : tensors_{file.tensors} {
    std::map<std::string, torch::Tensor> state;
    for (const auto& [name, tensor] : tensors_)
      if (name.starts_with("sd.")) state.emplace(name.substr(3), tensor);
    load_state(*model_, state);
    for (auto& parameter : model_->named_parameters()) {
      const auto is_of = [&](const char* part) { return parameter.key().starts_with(part); };
      parameter.value().set_requires_grad(!is_of("backbone.body.conv1") && !is_of("backbone.body.layer1"));
    }
    std::vector<torch::Tensor> trained;
    for (const auto& parameter : model_->parameters())
      if (parameter.requires_grad()) trained.push_back(parameter);
    optimiser_ = std::make_unique<torch::optim::SGD>(trained, torch::optim::SGDOptions{1e-6}.momentum(0.9));
    batch_.images = at("images").clone();
    for (std::int64_t i = 0; i < batch_.images.size(0); ++i) {
      batch_.sizes.push_back({batch_.images.size(2), batch_.images.size(3)});
      const auto target = "target." + std::to_string(i);
      targets_.push_back({at(target + ".boxes"), at(target + ".labels"), at(target + ".masks")});
    }
    rois_ = at("rois").clone();
    maps_ = at("maps").clone().requires_grad_();
    boxes_ = at("boxes").clone();
    scores_ = at("scores").clone();
    classes_ = at("classes").clone();
    tensors_.clear();
  }

  void step(bool lowered) {
    model_->train();
    const auto loss =
        under_autocast(lowered, [&] { return model_->losses(batch_, targets_, choose_).sum(); });
    optimiser_->zero_grad();
    loss.backward();
    optimiser_->step();
  }
  void evaluate(bool lowered) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    const auto found = under_autocast(lowered, [&] { return model_->detect(batch_); });
    for (std::size_t i = 0; i < found.size(); ++i)
      pasted_masks(found[i].masks, found[i].boxes, batch_.sizes[i], /*threshold=*/0.5);
  }
  void align(bool lowered) {
    const auto maps = lowered ? maps_.to(torch::kBFloat16) : maps_;
    roi_align(maps, rois_, 0.25, {}).sum().backward();
  }
  void suppress() { nms(boxes_, scores_, 0.7); }
  void suppress_by_class() { batched_nms(boxes_, scores_, classes_, 0.5); }

 private:
  const torch::Tensor& at(const std::string& name) const { return tensors_.at(name); }

  static MaskRcnn made() {
    MaskRcnnOptions options;
    options.heads.classes = 90;
    return MaskRcnn{options,
                    std::make_shared<ResNetImpl>(ResNetOptions{.has_head = false, .frozen_norms = true})};
  }

  std::map<std::string, torch::Tensor> tensors_;
  MaskRcnn model_ = made();
  std::unique_ptr<torch::optim::SGD> optimiser_;
  ImageBatch batch_;
  std::vector<Instances> targets_;
  const Choose choose_ = choose_by(at::detail::createCPUGenerator(1));
  torch::Tensor rois_, maps_, boxes_, scores_, classes_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "detector_server FILE THREADS\n";
    return 2;
  }
  torch::set_num_threads(std::stoi(argv[2]));
  Detector detector{read_safetensors(argv[1])};
  return serve("detector_server", {{"step", [&](bool lowered) { detector.step(lowered); }},
                                   {"evaluate", [&](bool lowered) { detector.evaluate(lowered); }},
                                   {"roi-align", [&](bool lowered) { detector.align(lowered); }},
                                   {"nms", [&](bool) { detector.suppress(); }},
                                   {"batched-nms", [&](bool) { detector.suppress_by_class(); }}});
}
