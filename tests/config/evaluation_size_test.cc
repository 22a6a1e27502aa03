// SPDX-License-Identifier: Apache-2.0
#include "config/recipe/evaluation_size.h"

#include <cmath>

#include "config/json.h"
#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EvaluationSizeTest, IsTheImageSizeByTheRatioRoundedDown) {
  for (const auto& [image_size, side] : {std::pair{32, 36}, {64, 73}, {224, 256}, {256, 292}, {384, 438}}) {
    EXPECT_EQ(evaluation_side(image_size, 0.875), side);
    EXPECT_EQ(evaluation_side(image_size, 1), image_size);
  }
}

TEST(EvaluationSizeTest, OfEverySideThereIsARatioOfFewDigits) {
  EXPECT_EQ(crop_ratio_of(224, 256), 0.875);
  EXPECT_EQ(crop_ratio_of(224, 224), 1);
  EXPECT_EQ(crop_ratio_of(224, 0), 1) << "0 was the image size";
  EXPECT_EQ(crop_ratio_of(32, 36), 0.88);
  EXPECT_EQ(crop_ratio_of(224, 400), 0.559) << "0.56 gives 399: 224 / 0.56 is just below 400 in a double";
  for (const int image_size : {1, 32, 224, 384, 65536})
    for (int side = image_size; side < 2 * image_size + 300; side += 1 + side / 700)
      ASSERT_EQ(evaluation_side(image_size, crop_ratio_of(image_size, side)), side) << image_size;
  // the ratios that give a side are an interval, in which there are two of so many digits; the upper end may
  // be rounded away
  for (const int image_size : {32, 224, 384})
    for (int side = image_size; side < 2 * image_size; ++side) {
      const double ratio = crop_ratio_of(image_size, side);
      const double width = 1.0 * image_size / (1.0 * (side + 1) * (side + 1));
      const auto digits = static_cast<std::size_t>(std::ceil(-std::log10(width / 2)));
      EXPECT_LE(canonical_number(ratio).size(), 2 + digits) << image_size << " " << side << " " << ratio;
    }
}

TEST(EvaluationSizeTest, PixelsInAFileAreRefusedWithTheRatioThatTheyAre) {
  Json trial = document();
  trial["recipe"]["eval_resize"] = 256;
  EXPECT_THAT(problems_of(trial), ElementsAre(HasSubstr("write eval_crop_ratio: 0.875")));
  trial["data"]["image_size"] = 32;
  EXPECT_THAT(problems_of(trial),
              ElementsAre(HasSubstr("at 32 pixels 256 leave 0.125 of the side to see; write "
                                    "eval_crop_ratio: 0.875, as msf-imagenet has it")));
  trial["recipe"] = {{"epochs", 1}, {"batch", 8}, {"lr", 0.1}, {"eval_resize", 256}};
  EXPECT_THAT(problems_of(trial), ElementsAre(HasSubstr("write eval_crop_ratio: 1, as by default")));
  EXPECT_THROW(read_trial_or_throw(trial), std::exception) << "by the trainer too";
}

TEST(EvaluationSizeTest, EveryRecipeSaysThePapersRatio) {
  const auto ratio = [](const char* recipe) {
    Json trial = document_of({{"preset", "simple-vit-s"}});
    trial["recipe"] = {{"use", recipe}};
    return read_trial_or_throw(trial).recipe.eval_crop_ratio;
  };
  for (const char* recipe : {"msf-imagenet", "msf-inat", "mk-imagenet"})
    EXPECT_EQ(ratio(recipe), 0.875) << recipe;
  for (const char* recipe : {"xcit-imagenet", "xcit-imagenet-distill", "xcit-finetune-384", "sne-imagenet",
                             "sne-imagenet-distill", "sne-transfer"})
    EXPECT_EQ(ratio(recipe), 1) << recipe;
}

TEST(EvaluationSizeTest, StoredPixelsAreReadWhateverRatioTheyAre) {
  Json stored = canonical_document(read_trial_or_throw(document()));
  stored["data"]["image_size"] = 24, stored["model"]["patch"] = 8;
  stored["recipe"]["eval_resize"] = 256;
  EXPECT_EQ(canonical_document(read_trial_or_throw(stored)), stored);
}

}  // namespace
}  // namespace abl::config
