// SPDX-License-Identifier: Apache-2.0
// Segmentation as a trial asks for it, through the whole training.
#include "models/weights/state.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/tasks/new_task.h"
#include "worker/trainer/training/weight_files.h"

namespace abl::trainer {
namespace {

class SegmentationTraining : public SmallTraining {
 protected:
  training::TrainingOptions segmenting(const config::Json& changes = {}, const config::Json& model = {}) {
    auto document = config::Json::parse(R"({
      "model": {"family": "xcit", "dim": 16, "depth": 4, "heads": 2, "patch": 8},
      "data": {"name": "scenes", "train_images": 12, "val_images": 4, "image_size": 64},
      "task": {"kind": "segment", "width": 16},
      "recipe": {"use": "demo", "epochs": 3, "batch": 6, "eval_every": 1, "flip": 0.5, "scale_range": [0.75, 1.5],
                 "largest_class": 0.9, "distortion": true, "ema": 0.9, "clip_norm": 1, "accumulate": 2,
                 "drop_path": 0.1},
      "seed": 0})");
    if (!changes.is_null()) document.merge_patch(changes);  // of null, a patch leaves nothing
    if (!model.is_null()) document["model"] = model;
    training::TrainingOptions made;
    made.trial = config::read_trial_or_throw(document);
    made.config_hash = config::config_hash(config::canonical_text(made.trial));
    made.run_dir = new_folder();
    made.keep_best = "val/miou";
    return made;
  }
};

TEST_F(SegmentationTraining, SaysHowWellPixelsAreToldApart) {
  Recorder said;
  EXPECT_TRUE(training::Training(segmenting(), said).run(said.stop));
  for (const char* name : {"val/miou", "val/macc", "val/aacc", "val/loss", "val_ema/miou", "val_ema/loss"}) {
    ASSERT_EQ(said.points[name].size(), 3u) << name;
    for (const auto& [step, value] : said.points[name]) EXPECT_TRUE(value >= 0 && value <= 100) << name;
  }
  EXPECT_FALSE(said.points.contains("train/top1")) << "nothing is recognised as a whole";
  EXPECT_TRUE(std::filesystem::exists(said.newest.parent_path() / "best.safetensors"));
  EXPECT_NE(said.started.data_fingerprint.find("scenes"), std::string::npos);
}

TEST_F(SegmentationTraining, AStoppedRunGoesOnAsIfItHadNeverStopped) {
  for (const char* precision : {"fp32", "bf16"}) {
    SCOPED_TRACE(precision);
    Recorder whole;
    const auto options = segmenting({{"recipe", {{"precision", precision}}}});
    EXPECT_TRUE(training::Training(options, whole).run(whole.stop));
    for (const std::int64_t stop_at : {2, 3}) expect_goes_on_as(whole, options, stop_at);
  }
}

TEST_F(SegmentationTraining, EveryHeadTrains) {
  for (const char* head : {"semantic-fpn", "uper-net", "setr-naive", "setr-pup", "setr-mla"}) {
    SCOPED_TRACE(head);
    Recorder said;
    const auto options = segmenting(
        {{"task", {{"head", head}, {"inference", "slide"}}}, {"recipe", {{"epochs", 1}, {"ema", 0}}}});
    EXPECT_TRUE(training::Training(options, said).run(said.stop));
    EXPECT_EQ(said.points["val/miou"].size(), 1u);
  }
}

TEST_F(SegmentationTraining, EveryAttentionStandsUnderAHead) {
  for (
      const char* model :
      {R"({"family": "simple-vit", "dim": 16, "depth": 4, "heads": 2, "dim_head": 8, "patch": 8,
            "attention": {"kernel": "gaussian", "probe": "inside", "groups": 2}})",
       R"({"family": "key-vit", "dim": 16, "depth": 4, "heads": 2, "patch": 8, "key": {"method": "kua", "charts": 2}})",
       R"({"family": "vit", "dim": 16, "depth": 4, "heads": 2, "patch": 8})",
       R"({"family": "swin", "dim": 16, "stage_depths": [1, 1, 1, 1], "stage_heads": [1, 2, 4, 8], "patch": 4, "window": 2,
            "key": {"method": "spatialk", "charts": 2}})",
       R"({"family": "xcit", "dim": 16, "depth": 4, "heads": 2, "patch": 8, "embedding": {"kind": "f-sne", "width": 16, "code_size": 8}})",
       R"({"family": "xcit", "dim": 16, "depth": 4, "heads": 2, "patch": 8, "block": {"attention": "none"}})"}) {
    SCOPED_TRACE(model);
    Recorder said;
    const auto options = segmenting({{"recipe", {{"epochs", 1}, {"ema", 0}}}}, config::Json::parse(model));
    EXPECT_TRUE(training::Training(options, said).run(said.stop));
    EXPECT_EQ(said.points["val/miou"].size(), 1u);
  }
}

TEST_F(SegmentationTraining, ItsBackboneStartsFromAClassifier) {
  Recorder before;
  auto classifying = options();
  classifying.trial.model = segmenting().trial.model;
  classifying.trial.data.image_size = 32;
  classifying.trial.recipe.epochs = 1;
  EXPECT_TRUE(training::Training(classifying, before).run(before.stop));

  auto trial = segmenting({{"recipe", {{"start_weights", "classifier"}}}}).trial;
  const auto task = tasks::new_task(trial, {});
  const auto model = task->new_model();
  const auto text = training::start_from_weights(*model, trial, {{"classifier", before.newest}});
  EXPECT_NE(text.find("starts from the weights classifier"), std::string::npos) << text;
  const auto from = weights(before);
  int equal = 0;
  for (const auto& [name, tensor] : models::state_of(*model)) {
    constexpr std::string_view kTrunk = "backbone.trunk.";
    if (!name.starts_with(kTrunk)) continue;
    EXPECT_TRUE(torch::equal(tensor, from.at("model." + name.substr(kTrunk.size())))) << name;
    ++equal;
  }
  EXPECT_GT(equal, 40);

  trial.model.dim = 32;
  const auto other = tasks::new_task(trial, {});
  const auto wider = other->new_model();
  try {
    training::start_from_weights(*wider, trial, {{"classifier", before.newest}});
    FAIL() << "weights of another width were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string{error.what()}.find("does not fit the model"), std::string::npos) << error.what();
  }
}

/// Of a Swin that gives maps each stage has a norm of its own, of which a classifier's weights have none.
TEST_F(SegmentationTraining, ASwinUnderAHeadStartsFromAClassifierButForTheNormsOfItsStages) {
  const auto swin = config::Json::parse(
      R"({"family": "swin", "dim": 16, "stage_depths": [1, 1, 1, 1], "stage_heads": [1, 2, 4, 8], "patch": 4, "window": 2})");
  Recorder before;
  auto classifying = options();
  const auto trial = segmenting({{"recipe", {{"start_weights", "classifier"}}}}, swin).trial;
  classifying.trial.model = trial.model;
  classifying.trial.data.image_size = 64;
  classifying.trial.recipe.epochs = 1;
  EXPECT_TRUE(training::Training(classifying, before).run(before.stop));

  const auto model = tasks::new_task(trial, {})->new_model();
  const auto text = training::start_from_weights(*model, trial, {{"classifier", before.newest}});
  EXPECT_NE(text.find("as in a new model:"), std::string::npos) << text;
  const auto from = weights(before);
  int equal = 0, norms = 0;
  for (const auto& [name, tensor] : models::state_of(*model)) {
    constexpr std::string_view kTrunk = "backbone.trunk.";
    if (!name.starts_with(kTrunk)) continue;
    const std::string own = name.substr(kTrunk.size());
    if (const auto given = from.find("model." + own); given != from.end()) {
      EXPECT_TRUE(torch::equal(tensor, given->second)) << name;
      ++equal;
      continue;
    }
    ++norms;
    EXPECT_TRUE(own.starts_with("norm")) << name;
    EXPECT_TRUE(torch::all(tensor == (own.ends_with("weight") ? 1 : 0)).item<bool>()) << name;
    EXPECT_NE(text.find(own), std::string::npos) << own << " is not said: " << text;
  }
  EXPECT_EQ(norms, 8);
  EXPECT_GT(equal, 40);
}

}  // namespace
}  // namespace abl::trainer
