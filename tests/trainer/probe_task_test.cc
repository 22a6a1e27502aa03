// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "config/document/trial_document.h"
#include "models/counting/memory.h"
#include "models/dino/dino.h"
#include "models/weights/state.h"
#include "models/weights/weights.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/new_task.h"

namespace abl::trainer {
namespace {

/// A trial whose weights are those of a self-distilled model, random here.
class ProbeTraining : public SmallTraining {
 protected:
  training::TrainingOptions probe(const char* family, const config::Json& task) {
    training::TrainingOptions options;
    config::Json recipe{{"batch", 20}, {"start_weights", "dino"}};
    if (task.at("kind") == "probe-linear") recipe.update({{"use", "demo"}, {"epochs", 3}, {"eval_every", 1}});
    options.trial = config::read_trial_or_throw(
        {{"model", {{"family", family}, {"dim", 32}, {"depth", 3}, {"heads", 2}, {"patch", 8}}},
         {"data", {{"name", "shapes"}, {"train_images", 80}, {"val_images", 30}}},
         {"task", task},
         {"recipe", recipe},
         {"seed", 2}});
    options.config_hash = config::config_hash(config::canonical_text(options.trial));
    options.run_dir = new_folder();
    torch::manual_seed(4);
    const models::DinoImpl dino{tasks::model_options(options.trial.model, options.trial.data),
                                {.prototypes = 8, .hidden = 8, .bottleneck = 8}};
    dino_ = models::state_of(dino);
    options.weights["dino"] = options.run_dir / "dino.safetensors";
    models::write_safetensors(options.weights["dino"], {.tensors = dino_, .metadata = {}});
    return options;
  }
  const torch::Tensor& of_the_teacher(const std::string& name) const {
    return dino_.at("teacher.backbone." + name);
  }

  std::map<std::string, torch::Tensor> dino_;
};

const config::Json kLinear{{"kind", "probe-linear"}}, kNeighbours{{"kind", "probe-knn"}};

TEST_F(ProbeTraining, ALinearLayerLearnsAndTheTrunkStaysToTheBit) {
  config::Json of_two_blocks = kLinear;
  of_two_blocks.update({{"blocks", 2}, {"patch_mean", true}});
  for (const auto& [family, task] : {std::pair{"vit", of_two_blocks}, {"xcit", kLinear}}) {
    SCOPED_TRACE(family);
    const auto options = probe(family, task);
    Recorder said;
    EXPECT_TRUE(training::Training(options, said).run(said.stop));
    EXPECT_EQ(said.points["val/top1"].size(), 3u);
    EXPECT_EQ(said.points["val/knn20"].size(), 3u);
    EXPECT_EQ(said.points["val/knn20"].begin()->second, said.points["val/knn20"].rbegin()->second);
    EXPECT_LT(said.points["train/loss"][12], said.points["train/loss"][1]);
    const auto state = weights(said);
    EXPECT_EQ(state.at("model.linear.weight").size(1), std::string{family} == "vit" ? 96 : 32);
    int of_the_trunk = 0;
    for (const auto& [name, tensor] : state) {
      if (!name.starts_with("model.trunk.")) continue;
      EXPECT_TRUE(tensor.equal(of_the_teacher(name.substr(12)))) << name << " also running statistics";
      EXPECT_FALSE(state.contains("adamw.first." + name.substr(6))) << name;
      ++of_the_trunk;
    }
    EXPECT_GT(of_the_trunk, 20);
    expect_goes_on_as(said, options, 5);
  }
}

TEST_F(ProbeTraining, ItsNeighboursAreThoseOfTheProbeByNeighbours) {
  Recorder linear, neighbours;
  const auto options = probe("vit", kLinear);
  training::Training(options, linear).run(linear.stop);
  auto other = probe("vit", kNeighbours);
  training::Training(other, neighbours).run(neighbours.stop);
  for (const char* metric : {"val/knn10", "val/knn20"})
    EXPECT_EQ(linear.points[metric].begin()->second, neighbours.points[metric].begin()->second) << metric;
}

TEST_F(ProbeTraining, WhatDoesNotLearnTakesNoMemoryForIt) {
  const auto trial = probe("vit", kLinear).trial;
  const auto step = models::predict_step_memory(tasks::network_of(trial),
                                                {.batch = 4, .image_size = 32, .optimiser_states = 2});
  EXPECT_EQ(step.gradients, (32 * 10 + 10) * 4);
  EXPECT_EQ(step.optimiser, 2 * step.gradients);
  EXPECT_GT(step.parameters, 100 * step.gradients);
  const auto lowered = models::predict_step_memory(
      tasks::network_of(trial),
      {.batch = 4, .image_size = 32, .precision = models::Precision::kBFloat16, .optimiser_states = 2});
  EXPECT_EQ(lowered.gradients, step.gradients);
  EXPECT_GT(lowered.parameters, step.parameters) << "32-bit copies of all that is lowered";
  EXPECT_GT(models::predict_step_memory(tasks::network_of(probe("xcit", kNeighbours).trial),
                                        {.batch = 4, .image_size = 32, .optimiser_states = 2})
                .peak,
            0);
}

TEST_F(ProbeTraining, WhereNothingLearnsATrainingIsItsEvaluation) {
  for (const char* family : {"vit", "xcit"}) {
    SCOPED_TRACE(family);
    const auto options = probe(family, kNeighbours);
    Recorder said;
    EXPECT_TRUE(training::Training(options, said).run(said.stop));
    EXPECT_EQ(said.started.total_steps, 1);
    EXPECT_THAT(said.points,
                testing::UnorderedElementsAre(testing::Key("val/knn10"), testing::Key("val/knn20"),
                                              testing::Key("val/feature_std")));
    EXPECT_TRUE(said.points["val/knn20"].contains(1));
    EXPECT_GT(said.points["val/knn20"][1], 0);
    EXPECT_EQ(said.newest_step, 1);
    for (const auto& [name, tensor] : weights(said))
      if (name.starts_with("model.")) {
        EXPECT_TRUE(tensor.equal(of_the_teacher(name.substr(6)))) << name;
      }

    auto ended = options;
    ended.resume = said.newest, ended.resume_sha256 = said.newest_sha256, ended.run_dir = new_folder();
    Recorder again;
    EXPECT_TRUE(training::Training(ended, again).run(again.stop)) << "it was at its end";
    EXPECT_TRUE(again.points.empty());
  }
}

TEST_F(ProbeTraining, NeighboursVoteAsTheyAreDefinedTo) {
  const auto options = probe("vit", kNeighbours);
  Recorder said;
  training::Training(options, said).run(said.stop);

  const auto& trial = options.trial;
  const auto trunk = models::build(models::without_classifier(tasks::model_options(trial.model, trial.data)));
  models::load_weights(*trunk, dino_);
  trunk->eval();
  const auto set = data::open_data(trial.data, "");
  const tasks::BatchInput input{torch::kCPU, trial.data};
  const auto described = [&](const data::ImageSource& images) {
    std::vector<std::uint32_t> all(images.size());
    std::iota(all.begin(), all.end(), 0U);
    const auto batch = tasks::collate(all, {.image_size = 32}, [&](std::uint32_t index, std::size_t) {
      return data::centre_of(images, index, trial.recipe, 32);
    });
    const torch::NoGradGuard no_grad;
    return std::pair{trunk->forward(input.images(batch)), batch.labels};
  };
  const auto [bank, bank_labels] = described(*set.train);
  const auto [features, labels] = described(*set.val);
  const auto unit = [](const torch::Tensor& x) { return x / x.norm(2, {1}, true); };
  const auto cosines = unit(features).matmul(unit(bank).t());
  for (const int k : {10, 20}) {
    int hits = 0;
    for (std::int64_t image = 0; image < labels.numel(); ++image) {
      const auto [nearest, places] = cosines[image].topk(k);
      const auto votes =
          torch::zeros({10}).index_add_(0, bank_labels.index_select(0, places), (nearest / 0.07).exp());
      hits += votes.argmax().item<std::int64_t>() == labels[image].item<std::int64_t>();
    }
    EXPECT_NEAR(said.points["val/knn" + std::to_string(k)][1], 100.0 * hits / 30, 1e-6);
  }
  EXPECT_NEAR(said.points["val/feature_std"][1],
              std::sqrt(32.0) * unit(features).std(0, /*unbiased=*/false).mean().item<double>(), 1e-4);
}

TEST_F(ProbeTraining, AStopInTheEvaluationIsGoneOnFrom) {
  const auto options = probe("vit", kNeighbours);
  Recorder stopped, second;
  stopped.stop = true;
  EXPECT_FALSE(training::Training(options, stopped).run(stopped.stop));
  auto resumed = options;
  resumed.resume = stopped.newest, resumed.resume_sha256 = stopped.newest_sha256,
  resumed.run_dir = new_folder();
  EXPECT_TRUE(training::Training(resumed, second).run(second.stop));
  EXPECT_EQ(second.points["val/knn10"].size(), 1u);
}

TEST_F(ProbeTraining, WhatIsTimedOfIt) {
  auto options = probe("vit", kNeighbours);
  options.only_timed = true;
  Recorder said;
  const auto pace = training::Training(options, said).measure(std::chrono::duration<double>{0.2}, true);
  EXPECT_EQ(pace.steps, std::vector<double>{0});
  EXPECT_GT(pace.image, 0);
}

}  // namespace
}  // namespace abl::trainer
