// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/detect/detection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "config/document/trial_document.h"
#include "data/annotated/scenes.h"
#include "images/joint.h"
#include "images/pillow_transform.h"
#include "tests/error_of.h"
#include "tests/ranks/threads_as_ranks.h"
#include "worker/trainer/tasks/detect/box_choice.h"
#include "worker/trainer/tasks/detect/detection_batch.h"
#include "worker/trainer/training/learner.h"

namespace abl::trainer {
namespace {

using Metrics = std::map<std::string, double>;

/// A plain transformer: nothing in it looks at several images together.
config::TrialConfig detection_trial(const std::string& precision = "fp32") {
  return config::read_trial_or_throw(
      {{"model", {{"family", "vit"}, {"dim", 32}, {"depth", 4}, {"heads", 2}, {"patch", 8}}},
       {"data", {{"name", "pictures"}, {"image_size", 64}, {"classes", 7}}},
       {"recipe", {{"use", "demo"}, {"batch", 4}, {"weight_decay", 0.01}, {"precision", precision}}},
       {"seed", 3}});
}

tasks::DetectionOptions small_detector() {
  models::MaskRcnnOptions detector{.width = 32};
  detector.proposals.anchors.sizes = {8, 16, 24, 32, 48};
  detector.proposals.training = {.of_level = 60, .of_image = 60};
  detector.proposals.evaluation = {.of_level = 60, .of_image = 40};
  detector.proposals.sample.count = 64;
  detector.heads.classes = 7;
  detector.heads.boxes.layers = {64};
  detector.heads.boxes.sample.count = 32;
  detector.heads.masks = {.convolutions = {32}, .hidden = 32};
  return {.detector = detector,
          .maps = {},
          .view = images::LargeScaleJitter{.width = 64, .height = 64, .low = 1, .high = 1, .flip = 0},
          .evaluation = {}};
}

/// Sides that are all no multiples of 32.
images::MultiScale several_sizes() { return {.sides = {50, 60, 70}, .longest = 100, .crop = 0}; }

/// Pictures that are held, and which of them were loaded.
class Given final : public data::AnnotatedSource {
 public:
  explicit Given(std::vector<images::Annotated> pictures) : pictures_{std::move(pictures)} {}

  std::uint32_t size() const override { return static_cast<std::uint32_t>(pictures_.size()); }
  std::string name(std::uint32_t index) const override { return "picture " + std::to_string(index); }
  Extent extent(std::uint32_t index) const override {
    return {pictures_[index].image.width, pictures_[index].image.height};
  }
  std::size_t instances(std::uint32_t index) const override { return pictures_[index].instances.size(); }
  images::Annotated read(std::uint32_t index) const override { return pictures_[index]; }
  std::optional<images::Annotated> load(std::uint32_t index) const override {
    const std::scoped_lock lock{mutex_};
    loaded_.push_back(index);
    return read(index);
  }
  std::vector<std::uint32_t> loaded() const { return loaded_; }

 private:
  const std::vector<images::Annotated> pictures_;
  mutable std::mutex mutex_;
  mutable std::vector<std::uint32_t> loaded_;
};

std::vector<images::Annotated> scenes(std::uint64_t count) {
  std::vector<images::Annotated> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(data::draw_scene(data::Split::kTrain, i, 64));
  return all;
}

std::vector<images::Annotated> without_things(std::vector<images::Annotated> pictures) {
  for (auto& picture : pictures) picture.instances.clear();
  return pictures;
}

data::AnnotatedSet set_of(const std::shared_ptr<const Given>& source) {
  auto set = data::drawn_scenes(1, 1, 64);
  set.train = set.val = source;
  return set;
}
data::AnnotatedSet set_of(std::vector<images::Annotated> pictures) {
  return set_of(std::make_shared<const Given>(std::move(pictures)));
}

class DetectionTask : public testing::Test {
 protected:
  tasks::Detection task(data::AnnotatedSet set, int threads = 2) const {
    return {trial_, options_, std::move(set), {.loader_threads = threads}};
  }
  static std::shared_ptr<torch::nn::Module> model_of(const tasks::Detection& task) {
    torch::manual_seed(1);
    return task.new_model();
  }
  static Metrics judged(tasks::Detection& task, torch::nn::Module& model) {
    const std::atomic<bool> never = false;
    return task.evaluate(model, "val", never, {}).value();
  }
  /// Of a step's whole batch.
  static double loss_of(const tasks::Work& work) { return work.loss({}, 0, work.images).mean.item<double>(); }

  config::TrialConfig trial_ = detection_trial();
  tasks::DetectionOptions options_ = small_detector();
};

TEST_F(DetectionTask, LearnsToFindThings) {
  auto task = this->task(set_of(scenes(4)));
  training::Learner learner{model_of(task), nullptr, trial_.recipe, torch::kCPU};
  const auto before = judged(task, learner.model());
  constexpr std::int64_t kSteps = 60;
  task.load({.first = 0, .last = kSteps, .of_an_epoch = 1});
  double first = 0, last = 0;
  for (std::int64_t step = 0; task.next(); ++step) {
    learner.loss_sum().zero_();
    learner.step(task.work(learner.model(), step, false), 2e-3);
    last = learner.loss_sum().item<double>() / 4;
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.5 * first);
  const auto after = judged(task, learner.model());
  EXPECT_GT(after.at("val/box_ap50"), before.at("val/box_ap50") + 30);
  EXPECT_GT(after.at("val/mask_ap50"), before.at("val/mask_ap50") + 20);
  EXPECT_GT(after.at("val/box_ap50"), after.at("val/box_ap"));
  EXPECT_FALSE(after.contains("val/box_ap_large")) << "nothing in a scene is so large";
}

TEST_F(DetectionTask, BatchesDependOnSeedAndStepAlone) {
  options_.view = several_sizes();
  std::vector<double> losses;
  for (const auto& [threads, from] : {std::pair{1, 0}, {4, 0}, {2, 3}}) {
    auto task = this->task(set_of(scenes(8)), threads);
    const auto model = model_of(task);
    task.load({.first = from, .last = 4, .of_an_epoch = 2});
    double last = 0;
    for (std::int64_t step = from; task.next(); ++step) last = loss_of(task.work(*model, step, false));
    losses.push_back(last);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]) << "also where a run goes on";
}

TEST_F(DetectionTask, AnotherStepCountsOtherBoxes) {
  auto task = this->task(set_of(scenes(4)));
  const auto model = model_of(task);
  task.load({.first = 0, .last = 1, .of_an_epoch = 1});
  ASSERT_TRUE(task.next());
  const auto loss = loss_of(task.work(*model, 0, false));
  EXPECT_EQ(loss_of(task.work(*model, 0, false)), loss);
  EXPECT_NE(loss_of(task.work(*model, 1, false)), loss);
}

/// 9 pictures lie and 7 stand: of one epoch's 4 batches 3 hold one kind.
TEST_F(DetectionTask, PicturesThatLieAndStandShareOneBatchAtMost) {
  auto pictures = scenes(16);
  for (std::size_t i = 0; i < pictures.size(); ++i)
    pictures[i] = images::cropped(pictures[i], {0, 0, i < 9 ? 64 : 48, i < 9 ? 48 : 64});
  options_.view = several_sizes();
  const auto source = std::make_shared<const Given>(pictures);
  auto task = this->task(set_of(source), /*threads=*/1);
  task.load({.first = 0, .last = 8, .of_an_epoch = 4});
  while (task.next()) {
  }
  const auto loaded = source->loaded();
  ASSERT_EQ(loaded.size(), 32);
  for (const std::size_t epoch : {0, 1}) {
    const std::vector<std::uint32_t> order(loaded.begin() + epoch * 16, loaded.begin() + (epoch + 1) * 16);
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), 16) << "each once";
    int mixed = 0;
    for (std::size_t first = 0; first < 16; first += 4) {
      const auto lie =
          std::count_if(&order[first], &order[first] + 4, [](auto picture) { return picture < 9; });
      mixed += lie > 0 && lie < 4;
    }
    EXPECT_EQ(mixed, 1);
  }
  EXPECT_FALSE(std::equal(loaded.begin(), loaded.begin() + 16, loaded.begin() + 16))
      << "of each epoch its own";
}

TEST(AspectOrder, IsTheEpochsOwnWhereAllPicturesAreOfAKind) {
  data::EpochOrder order{3, 10};
  tasks::AspectOrder grouped{3, std::vector<bool>(10), 4};
  for (const std::uint64_t epoch : {0, 1, 0}) EXPECT_EQ(grouped.of(epoch), *order.of(epoch));
}

TEST(BoxChoice, IsOfDifferentNumbersAnyAsLikely) {
  images::RandomStream random{1, images::Purpose::kBoxes};
  std::vector<int> times(7);
  constexpr int kDraws = 7000;
  for (int i = 0; i < kDraws; ++i) {
    const auto some = tasks::some_below(7, 3, random);
    ASSERT_EQ(std::set(some.begin(), some.end()).size(), 3);
    for (const auto number : some) ++times.at(static_cast<std::size_t>(number));
  }
  for (const auto count : times) EXPECT_NEAR(count, kDraws * 3. / 7, 150);  // more than 3 deviations
  EXPECT_THAT(tasks::some_below(3, 3, random), testing::UnorderedElementsAre(0, 1, 2));
  EXPECT_TRUE(tasks::some_below(3, 0, random).empty());
}

TEST(BoxChoice, BelongsToAnImagesPlaceInTheBatch) {
  const auto whole = tasks::choice_of(3, 5, {0, 1, 2, 3}), part = tasks::choice_of(3, 5, {2, 3});
  const auto of_the_third = whole(2, 1000, 10);
  EXPECT_TRUE(torch::equal(part(0, 1000, 10), of_the_third));
  EXPECT_FALSE(torch::equal(whole(3, 1000, 10), of_the_third));
  EXPECT_FALSE(torch::equal(whole(2, 1000, 10), of_the_third)) << "each draw is another";
  EXPECT_FALSE(torch::equal(tasks::choice_of(3, 6, {2})(0, 1000, 10), of_the_third));
  EXPECT_FALSE(torch::equal(tasks::choice_of(4, 5, {2})(0, 1000, 10), of_the_third));
}

/// Gradients of a batch's loss, computed in parts that weigh as many images as they have.
std::map<std::string, torch::Tensor> gradients(torch::nn::Module& model, const tasks::Work& work,
                                               std::int64_t parts) {
  model.zero_grad();
  const auto size = work.images / parts;
  for (std::int64_t first = 0; first < work.images; first += size)
    (work.loss({}, first, size).mean / parts).backward();
  std::map<std::string, torch::Tensor> all;
  for (const auto& parameter : model.named_parameters())
    all[parameter.key()] = parameter.value().grad().clone();
  return all;
}

double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / a.norm().clamp_min(1e-6)).item<double>();
}

TEST_F(DetectionTask, PartsAddUpToTheBatchWhereImagesCountAsManyBoxes) {
  options_.view = several_sizes();
  options_.detector.heads.boxes.sample = {.count = 8, .share_of_things = 0.25};  // a scene has 2 things
  auto task = this->task(set_of(scenes(4)));
  const auto model = model_of(task);
  task.load({.first = 0, .last = 1, .of_an_epoch = 1});
  ASSERT_TRUE(task.next());
  const auto work = task.work(*model, 0, false);
  const auto whole = gradients(*model, work, 1), halves = gradients(*model, work, 2);
  for (const auto& [name, gradient] : whole) EXPECT_LT(difference(gradient, halves.at(name)), 1e-3) << name;
}

TEST_F(DetectionTask, MasksOfPartsWeighByThePartsThings) {
  options_.detector.heads.boxes.sample = {.count = 40, .share_of_things = 1};
  auto pictures = scenes(2);
  pictures[0].instances.resize(1);
  auto task = this->task(set_of(pictures));
  const auto model = model_of(task);
  task.load({.first = 0, .last = 1, .of_an_epoch = 1});
  ASSERT_TRUE(task.next());
  const auto work = task.work(*model, 0, false);
  const auto whole = gradients(*model, work, 1), halves = gradients(*model, work, 2);
  for (const auto& [name, gradient] : whole) {
    const auto differs = difference(gradient, halves.at(name)) > 1e-3;
    const bool is_of_masks = name.starts_with("roi_heads.mask"), is_of_all = name.starts_with("backbone");
    EXPECT_TRUE(differs == is_of_masks || is_of_all) << name;
  }
}

TEST_F(DetectionTask, HalfOfABatchIsForMeasurements) {
  auto task = this->task(set_of(scenes(8)));
  training::Learner learner{model_of(task), nullptr, trial_.recipe, torch::kCPU};
  task.load({.first = 0, .last = 1, .of_an_epoch = 2});
  ASSERT_TRUE(task.next());
  const auto half = task.work(learner.model(), 0, true);
  EXPECT_EQ(half.images, 2);
  learner.step(half, 1e-3);
  EXPECT_TRUE(std::isfinite(learner.loss_sum().item<double>()));
  EXPECT_FALSE(task.next());
}

TEST_F(DetectionTask, PicturesWithoutThingsAreBackground) {
  auto task = this->task(set_of(without_things(scenes(4))));
  training::Learner learner{model_of(task), nullptr, trial_.recipe, torch::kCPU};
  task.load({.first = 0, .last = 2, .of_an_epoch = 1});
  std::vector<double> losses;
  for (std::int64_t step = 0; task.next(); ++step) {
    learner.loss_sum().zero_();
    learner.step(task.work(learner.model(), step, false), 1e-3);
    losses.push_back(learner.loss_sum().item<double>());
  }
  EXPECT_LT(losses.at(1), losses.at(0));
  EXPECT_EQ(judged(task, learner.model()), Metrics{}) << "there is nothing to find";
}

TEST_F(DetectionTask, LearnsInTheRecipesPrecision) {
  std::map<std::string, double> losses;
  for (const std::string precision : {"fp32", "bf16"}) {
    trial_ = detection_trial(precision);
    auto pictures = scenes(4);
    pictures[1].instances.clear();
    auto task = this->task(set_of(pictures));
    training::Learner learner{model_of(task), nullptr, trial_.recipe, torch::kCPU};
    task.load({.first = 0, .last = 2, .of_an_epoch = 1});
    for (std::int64_t step = 0; task.next(); ++step) {
      const auto work = task.work(learner.model(), step, false);
      EXPECT_EQ(work.loss({}, 0, 1).mean.scalar_type(), torch::kFloat);
      learner.step(work, 1e-3);
    }
    losses[precision] = learner.loss_sum().item<double>();
    EXPECT_GT(judged(task, learner.model()).size(), 0);
  }
  EXPECT_NEAR(losses["bf16"], losses["fp32"], 0.05 * losses["fp32"]);
}

TEST(DetectionBatch, HasThingsOfWhichThereIsSomethingAndNoCrowds) {
  images::Annotated picture{.image = images::black(20, 10), .instances = {}, .labels = {}};
  const auto thing = [](int category, images::Box box, images::Mask mask, bool crowd = false) {
    return images::Instance{
        .category = category, .box = box, .mask = std::move(mask), .area = 1, .crowd = crowd};
  };
  const auto some = images::filled_mask(20, 10, 2, 2, 6, 8), none = images::filled_mask(20, 10, 0, 0, 0, 0);
  picture.instances = {thing(4, {2, 2, 4, 6}, some),
                       thing(1, {3, 3, 0, 5}, some),
                       thing(2, {2, 2, 4, 6}, some, true),
                       thing(3, {2, 2, 4, 6}, none),
                       thing(5, {25, 2, 4, 6}, some),
                       thing(6, {-1, 2.5, 7, 20}, some),
                       thing(0, {0, 0, 3, 3}, {}, /*crowd=*/true)};
  const auto targets = tasks::targets_of(picture, torch::kCPU);
  EXPECT_TRUE(torch::equal(targets.labels, torch::tensor({5, 7}, torch::kLong)));
  EXPECT_TRUE(torch::equal(targets.boxes, torch::tensor({{2.f, 2.f, 6.f, 8.f}, {0.f, 2.5f, 6.f, 10.f}})));
  EXPECT_EQ(targets.masks.sizes(), torch::IntArrayRef({2, 10, 20}));
  EXPECT_EQ(targets.masks[0].sum().item<int>(), 24);
  EXPECT_EQ(targets.masks[0].slice(0, 2, 8).slice(1, 2, 6).sum().item<int>(), 24);
}

TEST(DetectionBatch, IsPaddedWithZerosToAMultipleOf32) {
  std::vector<images::Annotated> pictures(2);
  pictures[0].image = images::filled(40, 20, {255, 0, 0});
  pictures[1].image = images::black(10, 64);
  config::DataConfig data;
  data.mean = {0.5, 0.5, 0.5}, data.std = {0.25, 0.25, 0.25};
  const auto batch = tasks::padded_images(pictures, tasks::BatchInput{torch::kCPU, data}, torch::kCPU);
  ASSERT_EQ(batch.images.sizes(), torch::IntArrayRef({2, 3, 64, 64}));
  auto expected = torch::zeros({2, 3, 64, 64});
  expected[0].narrow(1, 0, 20).narrow(2, 0, 40).fill_(-2);
  expected[0][0].narrow(0, 0, 20).narrow(1, 0, 40).fill_(2);
  expected[1].narrow(2, 0, 10).fill_(-2);
  EXPECT_TRUE(torch::allclose(batch.images, expected));
  EXPECT_EQ(batch.sizes[0].height, 20);
  EXPECT_EQ(batch.sizes[0].width, 40);
  EXPECT_EQ(batch.sizes[1].height, 64);
}

TEST_F(DetectionTask, AStopEndsAnEvaluation) {
  auto task = this->task(set_of(scenes(4)));
  const auto model = model_of(task);
  std::atomic<bool> stop = false;
  int seen = 0;
  EXPECT_FALSE(task.evaluate(*model, "val", stop, [&](std::int64_t images) {
    seen += static_cast<int>(images);
    stop = seen == 2;
  }));
  EXPECT_EQ(seen, 2);
}

/// What the detector finds in a picture of 64 x 48 that is shown as one of 96 x 72.
std::vector<scoring::Detection> found_by_hand(models::MaskRcnnImpl& detector, const images::Image& image,
                                              const config::DataConfig& data) {
  const torch::NoGradGuard no_grad;
  detector.eval();
  const auto shown = images::resize(image, 96, 72, images::Interpolation::kBilinear);
  const auto pixels =
      torch::from_blob(const_cast<std::uint8_t*>(shown.pixels.data()), {72, 96, 3}, torch::kByte);
  const auto normalised =
      ((pixels.to(torch::kFloat) / 255 - torch::tensor(data.mean)) / torch::tensor(data.std))
          .to(torch::kFloat);
  const auto padded = torch::constant_pad_nd(normalised.permute({2, 0, 1}), {0, 0, 0, 24}).unsqueeze(0);
  const auto found = detector.detect({padded, {{.height = 72, .width = 96}}}).front();
  const auto boxes = found.boxes * (64. / 96);
  const auto masks = models::pasted_masks(found.masks, boxes, {.height = 48, .width = 64}, 0.5);
  std::vector<scoring::Detection> all;
  for (std::int64_t i = 0; i < boxes.size(0); ++i) {
    const auto side = [&](int corner) { return boxes[i][corner].item<double>(); };
    const auto bytes = masks[i].to(torch::kByte).contiguous();
    all.push_back({.category = static_cast<int>(found.labels[i].item<std::int64_t>()) - 1,
                   .score = found.scores[i].item<double>(),
                   .box = {side(0), side(1), side(2) - side(0), side(3) - side(1)},
                   .mask = images::mask_of_pixels({bytes.const_data_ptr<std::uint8_t>(), 64 * 48}, 64, 48)});
  }
  return all;
}

/// A picture of 64 x 48 in which some of what the detector finds is there, a pixel aside; one is a crowd.
images::Annotated partly_found(std::uint64_t scene, models::MaskRcnnImpl& detector,
                               const config::DataConfig& data) {
  auto picture = images::cropped(data::draw_scene(data::Split::kTrain, scene, 64), {0, 0, 64, 48});
  picture.instances.clear();
  const auto found = found_by_hand(detector, picture.image, data);
  for (const std::size_t i : {0, 3, 4, 9}) {
    auto box = found.at(i).box;
    box.left += 1;
    picture.instances.push_back({.category = found[i].category,
                                 .box = box,
                                 .mask = found[i].mask,
                                 .area = static_cast<double>(images::area(found[i].mask)) + 1,
                                 .crowd = i == 9});
  }
  return picture;
}

TEST_F(DetectionTask, AnEvaluationIsCocosOfWhatTheDetectorFinds) {
  options_.evaluation = {.shorter = 72, .longest = 100};
  const auto model = model_of(task(set_of(scenes(1))));
  auto& detector = dynamic_cast<models::MaskRcnnImpl&>(*model);
  const auto picture = partly_found(0, detector, trial_.data);
  const auto found = found_by_hand(detector, picture.image, trial_.data);
  const auto scores = [&](scoring::Regions regions) {
    const std::vector matches{scoring::match(picture.instances, found, regions)};
    return scoring::coco_scores(matches, 7).mean;
  };
  auto task = this->task(set_of({picture}));
  const auto metrics = judged(task, *model);
  const auto expect = [&](const std::string& regions, const scoring::Averages& averages) {
    const auto expect_one = [&](const std::string& name, double value) {
      const auto metric = "val/" + regions + name;
      ASSERT_EQ(metrics.contains(metric), !std::isnan(value)) << metric;
      if (!std::isnan(value)) {
        EXPECT_NEAR(metrics.at(metric), 100 * value, 1e-3) << metric;
      }
    };
    expect_one("_ap", averages.precision[0]);
    expect_one("_ap50", averages.precision_50);
    expect_one("_ap75", averages.precision_75);
    expect_one("_ap_small", averages.precision[1]);
    expect_one("_ap_medium", averages.precision[2]);
    expect_one("_ap_large", averages.precision[3]);
  };
  const auto boxes = scores(scoring::Regions::kBoxes), masks = scores(scoring::Regions::kMasks);
  EXPECT_GT(boxes.precision[0], 0.1);
  EXPECT_NE(boxes.precision[0], masks.precision[0]);
  expect("box", boxes);
  expect("mask", masks);
}

TEST_F(DetectionTask, AllRanksSayTheNumbersOfOneAlone) {
  options_.evaluation = {.shorter = 72, .longest = 100};
  const auto model = model_of(task(set_of(scenes(5))));
  std::vector<images::Annotated> pictures;
  for (const std::uint64_t scene : {0, 1, 2, 3, 4})
    pictures.push_back(partly_found(scene, dynamic_cast<models::MaskRcnnImpl&>(*model), trial_.data));
  pictures[2].instances.clear();
  auto alone = this->task(set_of(pictures));
  const auto expected = judged(alone, *model);
  ASSERT_GT(expected.at("val/box_ap"), 0);
  std::mutex mutex;
  std::vector<Metrics> said;
  ranks::as_ranks(2, [&](ranks::RankGroup& group) {
    tasks::Detection task{trial_,
                          options_,
                          set_of(pictures),
                          {.ranks = std::shared_ptr<ranks::RankGroup>{std::shared_ptr<void>{}, &group}}};
    const auto own = task.new_model();
    {
      const std::scoped_lock lock{mutex};  // parameters of one are read by both
      const torch::NoGradGuard no_grad;
      const auto from = model->named_parameters();
      for (auto& parameter : own->named_parameters()) parameter.value().copy_(from[parameter.key()]);
    }
    const auto metrics = judged(task, *own);
    const std::scoped_lock lock{mutex};
    said.push_back(metrics);
  });
  EXPECT_THAT(said, testing::ElementsAre(expected, expected));
}

/// Of pictures of one size, so that all are padded alike.
TEST_F(DetectionTask, RanksCountTheBoxesOfOneAlone) {
  const auto pictures = scenes(4);
  options_.detector.heads.boxes.sample = {.count = 8, .share_of_things = 0.25};
  torch::manual_seed(1);
  auto alone = this->task(set_of(pictures));
  const auto loss = [](tasks::Detection& task) {
    torch::manual_seed(1);
    const auto model = task.new_model();
    task.load({.first = 0, .last = 1, .of_an_epoch = 1});
    EXPECT_TRUE(task.next());
    return loss_of(task.work(*model, 0, false));
  };
  const auto expected = loss(alone);
  std::mutex mutex;
  double sum = 0;
  ranks::as_ranks(2, [&](ranks::RankGroup& group) {
    tasks::Detection task{trial_,
                          options_,
                          set_of(pictures),
                          {.ranks = std::shared_ptr<ranks::RankGroup>{std::shared_ptr<void>{}, &group}}};
    const std::scoped_lock lock{mutex};  // one process has one source of random numbers
    sum += loss(task);
  });
  EXPECT_NEAR(sum / 2, expected, 1e-5 * expected);
}

TEST_F(DetectionTask, SaysWhatDoesNotFit) {
  auto fewer = options_;
  fewer.detector.heads.classes = 6;
  EXPECT_THAT(error_of([&] { tasks::Detection(trial_, fewer, data::drawn_scenes(4, 1, 64), {}); }),
              testing::StrEq("a detector of 6 classes for data of 7 categories"));
  auto pictures = scenes(1);
  pictures[0].instances[0].mask = {};
  auto task = this->task(set_of(pictures));
  task.load({.first = 0, .last = 1, .of_an_epoch = 1});
  EXPECT_THAT(error_of([&] { task.next(); }), testing::StrEq("picture 0: a thing has no mask to learn"));
}

}  // namespace
}  // namespace abl::trainer
