// SPDX-License-Identifier: Apache-2.0
#include "config/document/doubts.h"

#include "config/model/family.h"
#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> doubts(const Json& data, const Json& recipe) {
  Json trial = document_of({{"preset", "simple-vit-nano"}});
  trial["data"] = data;
  trial["recipe"] = {{"use", "cifar-lite"}};
  trial["recipe"].update(recipe);
  return texts(doubts_of(read_trial_or_throw(trial)));
}

TEST(DoubtsTest, ABatchOfMoreImagesThanThereAre) {
  const Json cifar{{"name", "cifar10"}};
  EXPECT_THAT(doubts(cifar, {{"batch", 50'000}}), IsEmpty());
  EXPECT_THAT(doubts(cifar, {{"batch", 50'001}}),
              ElementsAre(HasSubstr("recipe.batch: a batch of 50001 of 50000 training images")));
  EXPECT_THAT(doubts({{"name", "cifar10"}, {"train_images", 500}}, {{"batch", 512}}),
              ElementsAre(HasSubstr("512 of 500")));
  EXPECT_THAT(doubts({{"name", "shapes"}}, {{"batch", 100'000}}), ElementsAre(HasSubstr("of 40000")));
  const Json own{{"name", "own"}, {"classes", 3}, {"image_size", 32}, {"train_images", 1'000'000}};
  EXPECT_THAT(doubts(own, Json::object()), IsEmpty()) << "nobody knows how many it has";
}

TEST(DoubtsTest, LessThanAStep) {
  EXPECT_THAT(doubts({{"name", "cifar10"}}, {{"epochs", 1e-7}}),
              ElementsAre(HasSubstr("1e-7 epochs of 50000 images in batches of 128 are less than a step")));
  EXPECT_THAT(doubts({{"name", "cifar10"}}, {{"epochs", 0.01}}), IsEmpty());
}

TEST(DoubtsTest, AKnownDataSetHasItsClasses) {
  Json trial = document();
  trial["data"] = {{"name", "cifar10"}, {"classes", 7}};
  trial["model"] = {{"preset", "simple-vit-nano"}};
  EXPECT_THAT(problems_of(trial),
              ElementsAre("data.classes: 7 of cifar10, which has 10; another data set needs another name"));
  trial["data"]["classes"] = 10;
  EXPECT_THAT(problems_of(trial), IsEmpty());
  Json stored = canonical_document(read_trial_or_throw(trial));
  stored["data"]["classes"] = 7;
  EXPECT_EQ(canonical_document(read_trial_or_throw(stored)), stored) << "what was stored before can be read";
}

TEST(DoubtsTest, AKnownDataSetHasItsImages) {
  Json trial = document();
  trial["model"] = {{"preset", "simple-vit-nano"}};
  trial["data"] = {{"name", "cifar10"}, {"train_images", 50'001}};
  EXPECT_THAT(
      problems_of(trial),
      ElementsAre(
          "data.train_images: 50001 is more than the 50000 training images of cifar10; expected at most "
          "50000, or 0 for all"));
  trial["data"]["train_images"] = 50'000;
  EXPECT_THAT(problems_of(trial), IsEmpty());
  Json stored = canonical_document(read_trial_or_throw(trial));
  stored["data"]["train_images"] = 60'000;
  EXPECT_EQ(canonical_document(read_trial_or_throw(stored)), stored) << "what was stored before can be read";
  trial["data"] = {{"name", "cifar10"}, {"held_out", 49'995}};
  EXPECT_THAT(problems_of(trial),
              ElementsAre("data.held_out: 49995 of 50000 images to train on leave less than one for "
                          "each class; expected at most 49990"));
  for (const Json& wrong : {Json(1), Json(1.5), Json(2.5)}) {
    trial["data"]["held_out"] = wrong;
    EXPECT_THAT(problems_of(trial),
                ElementsAre(testing::HasSubstr("expected a part of the training images below 1")));
  }
  for (const Json& right : {Json(0), Json(0.1), Json(5000)}) {
    trial["data"]["held_out"] = right;
    EXPECT_THAT(problems_of(trial), ElementsAre()) << right;
  }
  trial["data"] = {{"name", "shapes"}, {"train_images", 60'000}};
  EXPECT_THAT(problems_of(trial), IsEmpty()) << "they are drawn";
}

/// What is doubted of a SwinV2 that starts from weights.
std::vector<std::string> doubts_of_windows(const Json& model, const Json& recipe = {{"start_weights", "w"}}) {
  Json trial = document_of(model);
  trial["recipe"].update(recipe);
  trial["data"]["image_size"] = 256;
  return texts(doubts_of(read_trial_or_throw(trial)));
}

TEST(DoubtsTest, TheWindowsOfWeightsAreThoseOfThePresetWhereNobodySaysThem) {
  Json model{{"preset", "swinv2_tiny_window8_256"}};
  EXPECT_THAT(doubts_of_windows(model), IsEmpty()) << "as they were trained";
  model["window"] = 16;
  EXPECT_THAT(doubts_of_windows(model, Json::object()), IsEmpty()) << "from scratch";
  EXPECT_THAT(
      doubts_of_windows(model),
      ElementsAre("model.pretrained_window: [8,8,8,8] is assumed, the windows of "
                  "swinv2_tiny_window8_256; set model.pretrained_window if 'w' was trained with others"));
  model["pretrained_window"] = {16, 16, 16, 8};
  EXPECT_THAT(doubts_of_windows(model), IsEmpty());
  Json own = canonical_model(model_of(*find_preset("swinv2_tiny_window8_256")));
  EXPECT_THAT(doubts_of_windows(own),
              ElementsAre(HasSubstr("the windows of 'w' are taken to be those of this "
                                    "model, [8,8,8,8]; set model.pretrained_window if they are others")));
}

TEST(DoubtsTest, ChangedWindowsKeepTheScaleOfTheWeightsInEveryTrialThatHasSome) {
  const auto pretrained = [](const Json& model, const Json& recipe, int image_size = 256) {
    Json trial = document_of(model);
    trial["recipe"].update(recipe);
    trial["data"]["image_size"] = image_size;
    return read_trial_or_throw(trial).model.pretrained_window;
  };
  const Json tiny{{"preset", "swinv2_tiny_window8_256"}}, start{{"start_weights", "w"}};
  const Json wide{{"preset", "swinv2_tiny_window8_256"}, {"window", 16}};
  EXPECT_THAT(pretrained(wide, start), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(pretrained(tiny, start, 128), ElementsAre(8, 8, 8, 8)) << "the last map is 4 x 4";
  EXPECT_THAT(pretrained(tiny, start), IsEmpty());
  EXPECT_THAT(pretrained(wide, Json::object()), IsEmpty());
  Json said = wide;
  said["pretrained_window"] = {16, 16, 16, 8};
  EXPECT_THAT(pretrained(said, start), ElementsAre(16, 16, 16, 8)) << "as it is written";
  EXPECT_THAT(pretrained({{"preset", "swinv2_base_window12to16_192to256"}}, start),
              ElementsAre(12, 12, 12, 6));
}

}  // namespace
}  // namespace abl::config
