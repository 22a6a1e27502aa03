// SPDX-License-Identifier: Apache-2.0
// What a training on one GPU shows.
#include <gmock/gmock.h>
#include <torch/cuda.h>

#include "images/random.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/device/gpu.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/classify/loss.h"

namespace abl::trainer {
namespace {

class GpuTest : public SmallTraining {
 protected:
  // before the GPU is first used
  static void SetUpTestSuite() { device::compute_deterministically(); }
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU can be used here";
  }

  training::TrainingOptions full_on_gpu(const std::string& precision) {
    auto full = options();
    demand_all(full.trial.recipe);
    full.trial.recipe.precision = *value_named<config::Precision>(precision);
    full.device = kDevice;
    return full;
  }

  static void expect_near(const Recorder& one, const Recorder& other, double tolerance) {
    for (const auto& [name, steps] : one.points) {
      if (!name.ends_with("/loss")) continue;
      for (const auto& [step, value] : steps)
        EXPECT_NEAR(other.points.at(name).at(step), value, tolerance) << name << " at step " << step;
    }
  }

  /// That a training learns the same from a recorded step.
  void expect_recorded(training::TrainingOptions options, double tolerance) {
    SCOPED_TRACE(name_of(options.trial.recipe.precision));
    Recorder kernels, graph;
    EXPECT_TRUE(training::Training(options, kernels).run(kernels.stop));
    options.cuda_graph = true, options.run_dir = new_folder();
    EXPECT_TRUE(training::Training(options, graph).run(graph.stop));
    EXPECT_THAT(graph.logs, testing::IsEmpty());
    expect_near(kernels, graph, tolerance);
  }

  static constexpr const char* kDevice = "cuda:0";
};

TEST_F(GpuTest, ItTrainsAsTheProcessorDoes) {
  Recorder processor, gpu;
  training::Training(options(), processor).run(processor.stop);
  auto same = options();
  same.device = "cuda";
  EXPECT_TRUE(training::Training(same, gpu).run(gpu.stop));
  EXPECT_EQ(gpu.points.at("train/loss").size(), processor.points.at("train/loss").size());
  expect_near(processor, gpu, 1e-2);
  EXPECT_GT(device::peak_memory_bytes(torch::Device{kDevice}), 0);
}

TEST_F(GpuTest, AStoppedRunOfAFullRecipeGoesOnAsIfItHadNeverStopped) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    auto full = full_on_gpu(precision);
    SCOPED_TRACE(precision);
    Recorder whole;
    EXPECT_TRUE(training::Training(full, whole).run(whole.stop));
    expect_goes_on_as(whole, full, 13);
  }
}

TEST_F(GpuTest, BlocksThatAreComputedTwiceChangeNothing) {
  auto full = full_on_gpu("bf16");
  Recorder once, twice;
  EXPECT_TRUE(training::Training(full, once).run(once.stop));
  full.trial.recipe.checkpoint_blocks = 1, full.run_dir = new_folder();
  EXPECT_TRUE(training::Training(full, twice).run(twice.stop));
  expect_same_weights(once, twice);
}

TEST_F(GpuTest, ARecordedStepLearnsWhatItsKernelsLearn) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) expect_recorded(full_on_gpu(precision), 1e-3);
}

TEST_F(GpuTest, AModelWithConvolutionsAndBatchStatisticsIsRecordedToo) {
  auto full = full_on_gpu("fp32");
  full.trial.model = config::read_trial_or_throw(config::Json::parse(R"({
      "model": {"family": "xcit", "dim": 16, "depth": 1, "heads": 2, "patch": 8, "class_blocks": 1},
      "data": {"name": "shapes"}, "recipe": {"use": "demo"}})"))
                         .model;
  expect_recorded(full, 1e-2);
}

TEST_F(GpuTest, BatchesBecomeTheSameNumbersAsOnTheProcessor) {
  tasks::Batch batch{.images = torch::randint(0, 256, {4, 8, 8, 3}, torch::kByte),
                     .labels = torch::tensor({3, 1, 0, 2}),
                     .erased = {{.image = 2,
                                 .rectangle = {.left = 1, .top = 2, .width = 5, .height = 3},
                                 .noise = torch::randn({3, 3, 5})}}};
  const auto numbers = [&batch](torch::Device device) {
    const tasks::BatchInput input{device};
    auto images = input.images(batch);
    tasks::Targets targets{.labels = input.labels(batch), .other_labels = {}, .shares = {}, .teacher = {}};
    images::RandomStream random{0, images::Purpose::kMixing, {7}};
    config::RecipeConfig recipe;
    recipe.mixing = config::MixingKind::kMixUpOrCutMix, recipe.mixing_alpha = 0.8, recipe.cutmix_alpha = 1;
    tasks::mix_batch(tasks::draw_mix_of(recipe, 8, random), images, targets);
    return std::vector{images.cpu(), targets.labels.cpu(), targets.other_labels.cpu(), targets.shares.cpu()};
  };
  const auto expected = numbers(torch::kCPU);
  for (const bool pinned : {false, true}) {
    if (pinned) batch.images = batch.images.pin_memory(), batch.labels = batch.labels.pin_memory();
    const auto found = numbers(torch::Device{kDevice});
    for (std::size_t part = 0; part < expected.size(); ++part)
      EXPECT_TRUE(torch::allclose(found[part], expected[part], 1e-6, 1e-6)) << part << ", pinned " << pinned;
  }
}

}  // namespace
}  // namespace abl::trainer
