// SPDX-License-Identifier: Apache-2.0
// The C++ side of bench/dense/segmentation.py.
//   segmenter_server FILE THREADS   of a file with the state of a Semantic FPN on XCiT-T12/16, images and
//   labels;
//                                   reads "TASK TYPE REPEATS" from stdin, does the task so often, and answers
//                                   with the seconds it took; "memory": with the most bytes that were held
//                                   since it began, beside what is held before the first task
//   TASK  step, evaluate (to the class of every pixel), loss (alone, with its gradient)
#include <torch/optim/adamw.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "bench/dense/served.h"
#include "models/backbones/xcit.h"
#include "models/dense/segmentation/inference.h"
#include "models/dense/segmentation/segmenter.h"
#include "models/dense/trunk_maps.h"
#include "models/weights/safetensors.h"
#include "models/weights/state.h"

namespace {

using namespace abl::models;
using abl::bench::serve, abl::bench::under_autocast;

/// Dropout is off on both sides: its draws are no part of what is compared.
Segmenter made(std::int64_t side) {
  const XcitOptions backbone{
      .image_size = side, .dim = 192, .heads = 4, .blocks = std::vector<XcitChoice>(12)};
  return Segmenter{build_feature_maps(backbone), SegmenterOptions{.head = SemanticFpnOptions{.dropout = 0}}};
}

class Side {
 public:
  explicit Side(const TensorFile& file)
      : images_{file.tensors.at("images").clone()},
        labels_{file.tensors.at("labels").clone()},
        logits_{file.tensors.at("logits").clone().requires_grad_()},
        model_{made(images_.size(2))},
        optimiser_{model_->parameters(), torch::optim::AdamWOptions{1e-6}.weight_decay(0.01)} {
    std::map<std::string, torch::Tensor> state;
    for (const auto& [name, tensor] : file.tensors)
      if (name.starts_with("sd.")) state.emplace(name.substr(3), tensor);
    load_state(*model_, state);
  }

  void step(bool lowered) {
    model_->train();
    const auto loss =
        under_autocast(lowered, [&] { return segmentation_losses(model_->answer(images_), labels_).total; });
    optimiser_.zero_grad();
    loss.backward();
    optimiser_.step();
  }
  void evaluate(bool lowered) {
    const torch::NoGradGuard no_grad;
    model_->eval();
    const auto segment = [&](const torch::Tensor& images) { return model_(images); };
    under_autocast(lowered, [&] { return whole_logits(segment, images_).argmax(1); });
  }
  void loss(bool lowered) {
    const auto logits = lowered ? logits_.to(torch::kBFloat16) : logits_;
    under_autocast(lowered, [&] { return pixel_loss(logits, labels_); }).backward();
  }

 private:
  const torch::Tensor images_, labels_, logits_;
  Segmenter model_;
  torch::optim::AdamW optimiser_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "segmenter_server FILE THREADS\n";
    return 2;
  }
  torch::set_num_threads(std::stoi(argv[2]));
  auto side = std::make_unique<Side>(read_safetensors(argv[1]));
  return serve("segmenter_server", {{"step", [&](bool lowered) { side->step(lowered); }},
                                    {"evaluate", [&](bool lowered) { side->evaluate(lowered); }},
                                    {"loss", [&](bool lowered) { side->loss(lowered); }}});
}
