// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/ranks/trainer_program.h"

namespace abl::ranks {

/// Trials of a few seconds, and folders for their runs.
class RanksTest : public testing::Test {
 protected:
  RanksTest() {
    std::string name = (std::filesystem::temp_directory_path() / "ablate-ranks-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~RanksTest() override { std::filesystem::remove_all(folder_); }

  static json small_vit() {
    return json::parse(R"({
      "family": "simple-vit", "dim": 16, "depth": 2, "heads": 2, "dim_head": 8, "patch": 8,
      "attention": {"kernel": "gaussian", "probe": "inside"}})");
  }
  static json small_xcit() {
    return json::parse(
        R"({"family": "xcit", "dim": 16, "depth": 1, "heads": 2, "patch": 8, "class_blocks": 1})");
  }
  /// A recipe with everything that is the same however many ranks there are.
  static json full_recipe() {
    return json::parse(R"({
      "use": "demo", "epochs": 2, "batch": 20, "eval_every": 1, "optimiser": "sgd", "lr": 0.05,
      "crop": "resized", "flip": 0.5, "randaugment": "rand-m9-mstd0.5-inc1", "random_erasing": 0.25,
      "repeated_augmentation": 3, "mixing": "mixup-or-cutmix", "mixing_alpha": 0.8, "cutmix_alpha": 1,
      "label_smoothing": 0.1, "ema": 0.9, "clip_norm": 1, "accumulate": 2})");
  }
  static json trial(const json& model, const json& recipe) {
    return {{"model", model},
            {"data", {{"name", "shapes"}, {"train_images", 120}, {"val_images", 33}}},
            {"recipe", recipe},
            {"seed", 0}};
  }

  /// Without labels, with a teacher that has statistics of its own, in parts.
  static json self_distillation() {
    return json::parse(R"({
      "model": {"family": "xcit", "dim": 16, "depth": 1, "heads": 2, "patch": 8, "class_blocks": 1},
      "data": {"name": "shapes", "train_images": 120, "val_images": 33},
      "task": {"kind": "dino", "prototypes": 32, "width": 32, "bottleneck": 16, "local_views": 2, "local_size": 16,
               "teacher_momentum": 0.9},
      "recipe": {"use": "demo", "epochs": 2, "batch": 20, "eval_every": 1, "optimiser": "sgd", "lr": 0.05,
                 "flip": 0.5, "clip_norm": 1, "clip_rule": "each-tensor", "accumulate": 2, "sync_batch_norm": true},
      "seed": 0})");
  }

  /// The command line of a run in a folder of its own.
  std::vector<std::string> arguments(const json& trial, int ranks,
                                     const std::vector<std::string>& more = {}) {
    const auto run = folder_ / std::to_string(runs_++);
    std::filesystem::create_directories(run);
    { std::ofstream{run / "config.json"} << trial; }
    std::vector<std::string> flags{"--config",  run / "config.json",   "--run-dir", run,
                                   "--threads", std::to_string(ranks), "--ranks",   std::to_string(ranks)};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  Said run(const json& trial, int ranks, const std::vector<std::string>& more = {}) {
    TrainerProgram program{arguments(trial, ranks, more)};
    return read_all(program);
  }

  /// That two runs learned the same, within what the order of additions changes.
  static void expect_same(const Said& one, const Said& several, double tolerance) {
    ASSERT_EQ(one.end.value("status", ""), "completed") << one.end;
    ASSERT_EQ(several.end.value("status", ""), "completed") << several.end;
    for (const auto& [name, steps] : one.points) {
      ASSERT_EQ(several.points.at(name).size(), steps.size()) << name;
      // one image more or less that is recognised is within float error, a loss that is another is not
      const double allowed = name.ends_with("/loss")          ? tolerance
                             : name.ends_with("/feature_std") ? 10 * tolerance
                                                              : 100.0 / 20;
      for (const auto& [step, value] : steps)
        EXPECT_NEAR(several.points.at(name).at(step), value, allowed) << name << " at step " << step;
    }
    const auto expected = one.state(), state = several.state();
    for (const auto& [name, tensor] : expected) {
      if (!name.starts_with("model.") && !name.starts_with("ema.")) continue;
      EXPECT_TRUE(torch::allclose(state.at(name), tensor, tolerance, tolerance))
          << name << " differs by " << (state.at(name) - tensor).abs().max().item<double>();
    }
  }

  std::filesystem::path folder_;
  int runs_ = 0;
};

}  // namespace abl::ranks
