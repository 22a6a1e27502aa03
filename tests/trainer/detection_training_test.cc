// SPDX-License-Identifier: Apache-2.0
// Detection as a trial asks for it, through the whole training.
#include "models/counting/counter.h"
#include "models/counting/memory.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/tasks/new_task.h"

namespace abl::trainer {
namespace {

class DetectionTraining : public SmallTraining {
 protected:
  static config::Json document() {
    return config::Json::parse(R"({
      "model": {"family": "xcit", "dim": 16, "depth": 4, "heads": 2, "patch": 8},
      "data": {"name": "scenes", "train_images": 8, "val_images": 3, "image_size": 64},
      "task": {"kind": "detect", "width": 16, "anchors": [8, 16, 32, 64, 128], "proposals": 40, "sampled": 16,
               "box_width": 16, "mask_width": 16},
      "recipe": {"use": "demo", "epochs": 3, "batch": 4, "eval_every": 1, "flip": 0.5, "scale_range": [0.75, 1.5],
                 "clip_norm": 1, "accumulate": 2},
      "seed": 0})");
  }
  training::TrainingOptions detecting(const config::Json& changes = config::Json::object()) {
    auto changed = document();
    changed.merge_patch(changes);
    training::TrainingOptions made;
    made.trial = config::read_trial_or_throw(changed);
    made.config_hash = config::config_hash(config::canonical_text(made.trial));
    made.run_dir = new_folder();
    made.keep_best = "val/box_ap";
    return made;
  }
};

TEST_F(DetectionTraining, SaysHowWellThingsAreFound) {
  Recorder said;
  EXPECT_TRUE(training::Training(detecting(), said).run(said.stop));
  for (const char* name : {"val/box_ap", "val/box_ap50", "val/mask_ap", "val/mask_ap75"}) {
    ASSERT_EQ(said.points[name].size(), 3u) << name;
    for (const auto& [step, value] : said.points[name]) EXPECT_TRUE(value >= 0 && value <= 100) << name;
  }
  EXPECT_FALSE(said.points.contains("val/box_ap_large")) << "no thing of 64 pixels is larger than 96 by 96";
  EXPECT_LT(said.points["train/loss"].rbegin()->second, said.points["train/loss"].begin()->second);
}

TEST_F(DetectionTraining, AStoppedRunGoesOnAsIfItHadNeverStopped) {
  for (const char* precision : {"fp32", "bf16"}) {
    SCOPED_TRACE(precision);
    Recorder whole;
    const auto options = detecting({{"recipe", {{"precision", precision}}}});
    EXPECT_TRUE(training::Training(options, whole).run(whole.stop));
    expect_goes_on_as(whole, options, 3);
  }
}

TEST_F(DetectionTraining, PicturesOfSeveralSidesTrain) {
  Recorder said;
  const auto options = detecting(
      {{"recipe",
        {{"epochs", 1}, {"scale_range", nullptr}, {"side_range", {64, 128}}, {"longest_side", 200}}}});
  EXPECT_TRUE(training::Training(options, said).run(said.stop));
  EXPECT_EQ(said.points["val/box_ap"].size(), 1u);
}

TEST_F(DetectionTraining, IsCountedAsTheNetworkThatIsTrained) {
  const auto trial = config::read_trial_or_throw(document());
  const auto network = tasks::network_of(trial);
  const auto parts = models::count_parts(network, 64);
  const auto model = tasks::new_task(trial, {})->new_model();
  std::int64_t parameters = 0;
  for (const auto& parameter : model->parameters()) parameters += parameter.numel();
  EXPECT_EQ(parts.front().params_all, parameters);
  EXPECT_GT(parts.front().work.macs, 1'000'000);
  const auto heads = std::ranges::find(parts, "roi_heads.box_head", &models::PartCount::name);
  ASSERT_NE(heads, parts.end());
  EXPECT_EQ(heads->work.macs, 20 * (16 * 7 * 7 * 16 + 16 * 16)) << "of the 20 proposals of an evaluation";
  const auto step = models::predict_step_memory(network, {.batch = 2, .image_size = 64});
  EXPECT_GT(step.activations, 0);
  EXPECT_GT(step.peak, step.parameters + step.optimiser);
}

}  // namespace
}  // namespace abl::trainer
