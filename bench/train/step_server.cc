// SPDX-License-Identifier: Apache-2.0
// Takes training steps on random images for bench.py: a JSON object a line in, seconds a line out.
//   {"trial": {…}, "repeats": n}                        steps as ablate-trainer takes them
//   {"trial": {…}, "repeats": n, "optimiser": "ours"}   steps of its optimiser alone; "torch": of
//   torch::optim::AdamW
//   {…, "memory": true}                                 bytes in place of seconds: the peak so far
// step_server THREADS [cpu|cuda [graph]]
#include <torch/cuda.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "config/document/trial_document.h"
#include "models/backbones/model_options.h"
#include "worker/trainer/device/device_queue.h"
#include "worker/trainer/device/gpu.h"
#include "worker/trainer/tasks/classify/loss.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/training/learner.h"

namespace {

using namespace abl;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Place {
  torch::Device device = torch::kCPU;
  bool graph = false;
};

/// A learner on one batch, over and over.
class Steps {
 public:
  Steps(const config::Json& document, const Place& place)
      : trial_{config::read_trial_or_throw(document)}, device_{place.device} {
    torch::manual_seed(0);
    model_ = models::build(tasks::training_options(trial_));
    model_->to(device_);
    learner_ = std::make_unique<training::Learner>(
        model_, nullptr, trial_.recipe, device_, std::make_shared<ranks::RankGroup>(),
        place.graph ? training::make_step_graph(device_) : nullptr);
    const auto batch = trial_.recipe.batch, size = trial_.data.image_size;
    images_ = torch::randn({batch, 3, size, size}).to(device_);
    targets_ = {.labels = torch::randint(trial_.data.classes, {batch}).to(device_),
                .other_labels = {},
                .shares = {},
                .teacher = {}};
  }
  double take(int repeats) {
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i)
      learner_->step(tasks::work_of(*model_, images_, targets_, trial_.recipe), 1e-4);
    if (device_.is_cuda()) torch::cuda::synchronize();
    return since(start);
  }

 private:
  const config::TrialConfig trial_;
  const torch::Device device_;
  std::shared_ptr<models::Classifier> model_;
  std::unique_ptr<training::Learner> learner_;
  torch::Tensor images_;
  tasks::Targets targets_;
};

/// Only what comes after the backward pass.
class OptimiserSteps {
 public:
  OptimiserSteps(const config::Json& document, bool is_ours) {
    const auto trial = config::read_trial_or_throw(document);
    model_ = models::build(tasks::model_options(trial.model, trial.data));
    for (const auto& parameter : model_->named_parameters()) {
      weights_.emplace_back(parameter.key(), parameter.value());
      gradients_.push_back(torch::randn_like(parameter.value()));
    }
    if (is_ours)
      ours_ = training::make_optimiser(*model_, weights_, trial.recipe);
    else
      torchs_ = std::make_unique<torch::optim::AdamW>(model_->parameters(), torch::optim::AdamWOptions{1e-4});
  }
  double take(int repeats) {
    double seconds = 0;
    for (int i = 0; i < repeats; ++i) {
      for (std::size_t j = 0; j < weights_.size(); ++j) weights_[j].second.mutable_grad() = gradients_[j];
      const auto start = Clock::now();
      if (ours_)
        ours_->step(1e-4);
      else
        torchs_->step();
      seconds += since(start);
    }
    return seconds;
  }

 private:
  std::shared_ptr<models::Classifier> model_;
  training::NamedTensors weights_;
  std::vector<torch::Tensor> gradients_;
  std::unique_ptr<training::Optimiser> ours_;
  std::unique_ptr<torch::optim::AdamW> torchs_;
};

template <class Subject, class... More>
double measure(std::map<std::string, std::unique_ptr<Subject>>& known, const std::string& key,
               const config::Json& request, More... more) {
  auto& subject = known[key];
  if (!subject) subject = std::make_unique<Subject>(request.at("trial"), more...);
  return subject->take(request.at("repeats").get<int>());
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(argc > 1 ? std::stoi(argv[1]) : 1);
  const Place place{.device = torch::Device{std::string{argc > 2 ? argv[2] : "cpu"}}, .graph = argc > 3};
  const device::DeviceQueue queue{place.device};
  std::map<std::string, std::unique_ptr<Steps>> steps;
  std::map<std::string, std::unique_ptr<OptimiserSteps>> optimisers;
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = config::Json::parse(line);
    const auto key = request.at("trial").dump();
    if (request.value("memory", false))
      std::cout << device::peak_memory_bytes(place.device) << std::endl;
    else if (const auto kind = request.value("optimiser", std::string{}); !kind.empty())
      std::cout << measure(optimisers, key + kind, request, kind == "ours") << std::endl;
    else
      std::cout << measure(steps, key, request, place) << std::endl;
  }
}
