// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "worker/trainer/commands/inference.h"

#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "config/document/trial_document.h"
#include "data/transform.h"
#include "images/jpeg.h"
#include "models/backbones/model_options.h"
#include "models/weights/safetensors.h"
#include "models/weights/state.h"
#include "tests/images/picture_files.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

config::TrialConfig trial_of(const char* model) {
  return config::read_trial_or_throw({{"model", config::Json::parse(model)},
                                      {"data", {{"name", "shapes"}, {"image_size", 32}, {"classes", 10}}},
                                      {"recipe", {{"use", "demo"}}},
                                      {"seed", 0}});
}

constexpr const char* kVit = R"({"family":"vit","dim":48,"depth":2,"heads":3,"patch":8})";
constexpr const char* kXcit =
    R"({"family":"xcit","dim":32,"depth":1,"heads":4,"patch":8,"embedding":{"kind":"f-sne","width":32,"code_size":8}})";

class InferTest : public testing::Test {
 protected:
  /// A model with random weights, and the files that a run of it wants.
  std::shared_ptr<models::Classifier> prepare(const config::TrialConfig& trial) {
    torch::manual_seed(5);
    auto model = models::build(tasks::model_options(trial.model, trial.data));
    models::write_safetensors(options.weights, {.tensors = models::state_of(*model), .metadata = {}});
    models::write_safetensors(options.input,
                              {.tensors = {{"input", input}, {"target", target}}, .metadata = {}});
    model->eval();
    return model;
  }
  std::string refusal(const config::TrialConfig& trial) {
    try {
      commands::infer(trial, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  TemporaryFolder folder;
  commands::InferOptions options{
      .weights = folder.path() / "w", .input = folder.path() / "i", .output = folder.path() / "o"};
  torch::Tensor input = torch::rand({2, 3, 32, 32}), target = torch::tensor({3, 7});
};

TEST_F(InferTest, GivesTheLogitsFeaturesLossAndGradientsOfTheModel) {
  const auto trial = trial_of(kVit);
  const auto model = prepare(trial);
  options.gradients = true;
  options.features = {"blocks.0", "norm"};
  commands::infer(trial, options);
  const auto output = models::read_safetensors(options.output).tensors;
  const auto logits = model->forward(input);
  EXPECT_TRUE(torch::allclose(output.at("logits"), logits, 1e-6, 1e-6));
  const auto loss = torch::cross_entropy_loss(logits, target);
  loss.backward();
  EXPECT_NEAR(output.at("loss").item<double>(), loss.item<double>(), 1e-6);
  for (const auto& parameter : model->named_parameters())
    EXPECT_TRUE(torch::allclose(output.at("grad." + parameter.key()), parameter.value().grad(), 1e-5, 1e-6))
        << parameter.key();
  EXPECT_THAT(output.at("feat.blocks.0").sizes(), ElementsAre(2, 17, 48));
  EXPECT_THAT(output.at("feat.norm").sizes(), ElementsAre(2, 17, 48));
}

TEST(BatchInputTest, NormalisesByTheMeanAndDeviationOfTheData) {
  const tasks::Batch batch{
      .images = torch::full({1, 2, 2, 3}, 51, torch::kUInt8), .labels = torch::tensor({0}), .erased = {}};
  const auto images =
      tasks::BatchInput{torch::kCPU, {.mean = {0.5, 0.1, 0}, .std = {0.5, 0.2, 2}}}.images(batch);
  const double expected[] = {-0.6, 0.5, 0.1};
  for (int channel = 0; channel < 3; ++channel)
    EXPECT_NEAR(images[0][channel][1][1].item<double>(), expected[channel], 1e-6) << channel;
}

TEST(RenormalisationTest, GivesTheSamePixelsAsAnotherModelExpectsThem) {
  const config::DataConfig student{.mean = {0.5, 0.1, 0}, .std = {0.5, 0.2, 2}}, teacher;
  const tasks::Batch batch{.images = torch::randint(256, {2, 4, 4, 3}, torch::kUInt8),
                           .labels = torch::tensor({0, 1}),
                           .erased = {}};
  const auto given = tasks::BatchInput{torch::kCPU, student}.images(batch);
  const auto seen = tasks::Renormalisation{student, teacher, torch::kCPU}(given);
  EXPECT_TRUE(torch::allclose(seen, tasks::BatchInput{torch::kCPU, teacher}.images(batch), 1e-5, 1e-5));
  EXPECT_EQ(seen.scalar_type(), torch::kFloat32);
  EXPECT_TRUE((tasks::Renormalisation{student, student, torch::kCPU}(given).is_same(given))) << "to the bit";
}

TEST_F(InferTest, InTrainingModeGivesTheBuffersAfterThePass) {
  const auto trial = trial_of(kXcit);
  const auto model = prepare(trial);
  options.train = true;
  commands::infer(trial, options);
  model->train();
  const auto logits = model->forward(input);
  const auto output = models::read_safetensors(options.output).tensors;
  EXPECT_TRUE(torch::allclose(output.at("logits"), logits, 1e-5, 1e-5));
  EXPECT_TRUE(torch::allclose(output.at("train.blocks.0.local_mp.bn.running_mean"),
                              models::state_of(*model).at("blocks.0.local_mp.bn.running_mean")));
}

TEST_F(InferTest, SaysWhatIsWrongWithItsFilesAndWritesNothing) {
  const auto trial = trial_of(kVit);
  prepare(trial);
  options.features = {"block.0"};
  EXPECT_THAT(refusal(trial), HasSubstr("blocks.0"));
  options.features = {};
  options.gradients = true;
  target = torch::tensor({3, 10});
  prepare(trial);
  EXPECT_THAT(refusal(trial), HasSubstr("'target' must hold 2 classes from 0 to 9"));
  input = torch::rand({2, 3, 32, 30});
  prepare(trial);
  EXPECT_THAT(refusal(trial), HasSubstr("'input' is [2, 3, 32, 30]; the model takes [B, 3, 32, 32]"));
  input = torch::full({2, 3, 32, 32}, NAN);
  prepare(trial);
  EXPECT_THAT(refusal(trial), HasSubstr("'input' has values that are not finite"));
  models::write_safetensors(options.input, {.tensors = {{"images", input}}, .metadata = {}});
  EXPECT_THAT(refusal(trial), HasSubstr("no tensor 'input'"));
  const auto other = refusal(trial_of(kXcit));
  EXPECT_THAT(other, HasSubstr("does not fit the model in 107 tensors"));
  EXPECT_THAT(other, HasSubstr("… and 104 more"));
  EXPECT_THAT(other, HasSubstr("(--fresh-head, --resize-positions and --other-patch take"));
  EXPECT_EQ(std::ranges::count(other, '\n'), 0) << "one line";
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST_F(InferTest, RefusesWeightsThatAreNotFinite) {
  const auto trial = trial_of(kVit);
  auto weights = models::state_of(*prepare(trial));
  weights.at("norm.bias")[3] = NAN;
  models::write_safetensors(options.weights, {.tensors = weights, .metadata = {}});
  EXPECT_THAT(refusal(trial), HasSubstr("w: 'norm.bias' has values that are not finite"));
}

/// A photograph that looks different everywhere.
images::Image noise(int width, int height) {
  images::Image image{width, height, {}};
  std::minstd_rand random;
  for (int i = 0; i < 3 * width * height; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(random() % 256));
  return image;
}

TEST_F(InferTest, ShowsAPhotographOfAnySizeAsAnEvaluationDoes) {
  auto trial = trial_of(kVit);
  const auto model = prepare(trial);
  for (const auto& [width, height, ratio, resize] :
       {std::tuple{90, 61, 0.8, 40}, {33, 120, 1.0, 32}, {20, 24, 0.875, 36}}) {
    trial.recipe.eval_crop_ratio = ratio;
    const auto jpeg = images::encode_jpeg(noise(width, height), 95, images::Chroma::kFull);
    images::write(options.input, jpeg);
    commands::infer(trial, options);
    const auto framing = data::frame_centre(width, height, resize, 32, images::Interpolation::kBilinear);
    const auto seen = framing.of({.image = images::decode_jpeg(jpeg),
                                  .region = {.width = width, .height = height},
                                  .width = static_cast<double>(width),
                                  .height = static_cast<double>(height)});
    const auto bytes = torch::tensor(std::vector<int>(seen.pixels.begin(), seen.pixels.end()));
    const auto logits = model->forward(tasks::BatchInput{torch::kCPU}.images(
        {.images = bytes.reshape({1, 32, 32, 3}), .labels = {}, .erased = {}}));
    EXPECT_TRUE(
        torch::allclose(models::read_safetensors(options.output).tensors.at("logits"), logits, 1e-5, 1e-5))
        << width << " × " << height;
  }
}

TEST_F(InferTest, SaysWhatIsWrongWithAPhotograph) {
  const auto trial = trial_of(kVit);
  prepare(trial);
  const auto jpeg = images::encode_jpeg(noise(64, 48), 95, images::Chroma::kFull);
  images::write(options.input, jpeg.substr(0, jpeg.size() / 2));
  const auto damaged = refusal(trial);
  EXPECT_THAT(damaged, testing::StartsWith(options.input.string() + ": "));
  EXPECT_EQ(std::ranges::count(damaged, '\n'), 0) << damaged;
  images::write(options.input, jpeg);
  options.gradients = true;
  EXPECT_THAT(refusal(trial), HasSubstr("no tensor 'target'"));
  options.input = folder.path() / "absent";
  EXPECT_THAT(refusal(trial), HasSubstr("absent: No such file"));
}

TEST_F(InferTest, StartsAFreshHeadFromTheSeed) {
  prepare(trial_of(kVit));
  const auto logits = [&](std::int64_t seed) {
    auto trial = trial_of(kVit);
    trial.data.classes = 3, trial.seed = seed;
    options.differ.fresh_head = true;
    commands::infer(trial, options);
    return models::read_safetensors(options.output).tensors.at("logits").clone();
  };
  const auto first = logits(1);
  EXPECT_TRUE(first.equal(logits(1)));
  EXPECT_FALSE(first.equal(logits(2)));
}

TEST_F(InferTest, ReplacesNothingButAFileThatItDoesNotRead) {
  const auto trial = trial_of(kVit);
  prepare(trial);
  options.output = options.input;
  EXPECT_THAT(refusal(trial), HasSubstr("it is the input"));
  EXPECT_TRUE(models::read_safetensors(options.input).tensors.contains("input"));
  options.output = options.input.parent_path();
  EXPECT_THAT(refusal(trial), HasSubstr("it exists and is not a regular file"));
}

}  // namespace
}  // namespace abl::trainer
