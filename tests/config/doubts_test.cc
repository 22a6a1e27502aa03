// SPDX-License-Identifier: Apache-2.0
#include "config/doubts.h"

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
  EXPECT_THAT(doubts(own, Json::object()), IsEmpty()) << "train_images above the folder's are all of them";
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
}

}  // namespace
}  // namespace abl::config
