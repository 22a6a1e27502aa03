// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/document/trial_document.h"
#include "models/weights/safetensors.h"
#include "tests/images/picture_files.h"
#include "worker/trainer/training/training.h"

namespace abl::trainer {

/// Keeps what was said; raises a stop when a step is reached.
class Recorder final : public protocol::Events {
 public:
  void start(const Start& start) override { started = start; }
  void metric(std::int64_t step, const std::map<std::string, double>& values) override {
    for (const auto& [name, value] : values)
      if (name.starts_with("train/") || name.starts_with("val") || name == "lr") points[name][step] = value;
    if (step >= stop_at) stop = true;
  }
  void log(LogLevel, const std::string& text) override { logs.push_back(text); }
  void checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256) override {
    newest = path, newest_step = step, newest_sha256 = sha256;
  }
  void end(Status, const std::string&, bool) override {}

  Start started;
  std::map<std::string, std::map<std::int64_t, double>> points;
  std::vector<std::string> logs;
  std::filesystem::path newest;
  std::int64_t newest_step = 0, stop_at = 1'000'000;
  std::string newest_sha256;
  std::atomic<bool> stop = false;
};

/// A recipe with everything that has random numbers or a state.
inline void demand_all(config::RecipeConfig& recipe) {
  recipe.crop = config::Crop::kResized, recipe.interpolation = config::Resampling::kBicubic,
  recipe.randaugment = "rand-m9-mstd0.5-inc1";
  recipe.random_erasing = 0.25, recipe.repeated_augmentation = 3, recipe.drop_path = 0.1;
  recipe.drop_path_rule = models::DropPathRule::kConstant, recipe.mixing = config::MixingKind::kMixUpOrCutMix,
  recipe.mixing_alpha = 0.8;
  recipe.cutmix_alpha = 1, recipe.ema = 0.9, recipe.accumulate = 2, recipe.clip_norm = 1;
  recipe.label_smoothing = 0.1;
  recipe.dropout = 0.1, recipe.position_dropout = 0.1, recipe.layer_decay = 0.8;
  recipe.loss = config::Loss::kBinaryCrossEntropy, recipe.target_threshold = 0.2;
}

/// Thirty steps of a small model on drawn shapes.
class SmallTraining : public testing::Test {
 protected:
  training::TrainingOptions options(std::int64_t seed = 0) {
    training::TrainingOptions options;
    options.trial = config::read_trial_or_throw(config::Json::parse(R"({
      "model": {"family": "simple-vit", "dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "patch": 8,
                "attention": {"kernel": "gaussian", "probe": "inside"}},
      "data": {"name": "shapes", "train_images": 200, "val_images": 50},
      "recipe": {"use": "demo", "epochs": 3, "batch": 20, "eval_every": 1, "crop": "pad", "flip": 0.5}, "seed": 0})"));
    options.trial.seed = seed;
    options.config_hash = config::config_hash(config::canonical_text(options.trial));
    options.run_dir = new_folder();
    return options;
  }
  /// Each run has one of its own: another's checkpoints would be overwritten, and equal to themselves.
  std::filesystem::path new_folder() {
    const auto folder = folder_.path() / std::to_string(runs_++);
    std::filesystem::create_directories(folder);
    return folder;
  }
  static std::map<std::string, torch::Tensor> weights(const Recorder& run) {
    return models::read_safetensors(run.newest).tensors;
  }
  static void expect_same_weights(const Recorder& one, const Recorder& other) {
    ASSERT_NE(one.newest, other.newest);
    const auto a = weights(one), b = weights(other);
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [name, tensor] : a) EXPECT_TRUE(torch::equal(tensor, b.at(name))) << name;
  }

  /// Stops a training at a step and goes on: both parts together must learn and say what the whole did.
  void expect_goes_on_as(const Recorder& whole, training::TrainingOptions options, std::int64_t stop_at) {
    SCOPED_TRACE("stopped at " + std::to_string(stop_at));
    Recorder first, second;
    first.stop_at = stop_at;
    options.run_dir = new_folder();
    EXPECT_FALSE(training::Training(options, first).run(first.stop));
    EXPECT_EQ(first.newest_step, stop_at);
    options.resume = first.newest, options.resume_sha256 = first.newest_sha256;
    options.run_dir = new_folder();
    EXPECT_TRUE(training::Training(options, second).run(second.stop));
    EXPECT_EQ(second.started.resumed_step, stop_at);
    EXPECT_TRUE(second.started.bit_exact);
    expect_same_weights(whole, second);
    auto points = first.points;
    for (auto& [name, steps] : second.points) points[name].insert(steps.begin(), steps.end());
    EXPECT_EQ(points, whole.points);
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

}  // namespace abl::trainer
