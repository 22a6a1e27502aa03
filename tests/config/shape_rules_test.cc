// SPDX-License-Identifier: Apache-2.0
#include "config/model/shape_rules.h"

#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ShapeRulesTest, PatchesDivideTheImage) {
  EXPECT_EQ(only_problem(R"({"preset": "simple-vit-s", "patch": 15})"),
            "model.patch: patches of 15 do not divide the image size 224");
  EXPECT_THAT(problems_of_model(R"({"preset": "resnet50"})"), IsEmpty()) << "it has no patches";
}

TEST(ShapeRulesTest, OnlyFixedPositionsNeedAMultipleOfFour) {
  EXPECT_EQ(only_problem(R"({"preset": "simple-vit-s", "dim": 130})"),
            "model.dim: 130 is not a multiple of 4, which sine and cosine positions need");
  EXPECT_THAT(problems_of_model(R"({"preset": "vit_small_patch16_224", "dim": 390})"), IsEmpty());
}

TEST(ShapeRulesTest, HeadsDivideTheWidth) {
  for (const char* preset : {"vit_small_patch16_224", "key-vit-s", "xcit_small_12_p16_224"}) {
    EXPECT_EQ(only_problem(fmt::format(R"({{"preset": "{}", "heads": 5}})", preset).c_str()),
              "model.heads: 5 heads do not divide the width 384");
  }
  EXPECT_THAT(problems_of_model(R"({"preset": "simple-vit-s", "heads": 5})"), IsEmpty()) << "it has dim_head";
}

TEST(ShapeRulesTest, HeadsOfSwinDivideTheWidthOfTheirStage) {
  EXPECT_EQ(only_problem(R"({"preset": "swin_tiny_patch4_window7_224", "stage_heads": [3, 5, 12, 24]})"),
            "model.stage_heads.2: 5 heads do not divide the width 192 of stage 2");
  EXPECT_THAT(
      problems_of_model(R"({"preset": "swin_tiny_patch4_window7_224", "stage_heads": [3, 64, 128, 24]})"),
      IsEmpty());
}

TEST(ShapeRulesTest, ListsOfStagesHaveOneLength) {
  EXPECT_EQ(only_problem(R"({"preset": "swinv2_tiny_window8_256", "patch": 4, "stage_heads": [3, 6]})"),
            "model.stage_heads: 2 entries for 4 stages (stage_depths); expected one for each");
  EXPECT_EQ(only_problem(R"({"preset": "regnety_160", "stage_depths": [2, 4]})"),
            "model.stage_widths: 4 entries for 2 stages (stage_depths); expected one for each");
  EXPECT_EQ(only_problem(R"({"preset": "swinv2_tiny_window8_256", "patch": 4, "pretrained_window": [8]})"),
            "model.pretrained_window: 1 entry for 4 stages (stage_depths); expected one for each");
}

TEST(ShapeRulesTest, GroupsDivideTheWidthsOfTheStages) {
  EXPECT_THAT(problems_of_model(
                  R"({"preset": "regnety_160", "group_width": 56, "stage_widths": [224, 450, 56, 60]})"),
              ElementsAre("model.stage_widths.2: groups of 56 do not divide the width 450 of stage 2",
                          "model.stage_widths.4: groups of 56 do not divide the width 60 of stage 4"));
}

TEST(ShapeRulesTest, ARegnetSaysItsWidthsAndAResnetMay) {
  EXPECT_EQ(only_problem(R"({"family": "regnet", "stage_depths": [1, 1], "group_width": 8})"),
            "model.stage_widths: 0 entries for 2 stages (stage_depths); expected one for each");
  EXPECT_EQ(only_problem(R"({"preset": "regnety_160", "group_width": 1, "stage_widths": [8, 2, 8, 8]})"),
            "model.stage_widths.2: 2 channels leave none for squeeze and excitation, which takes a quarter");
  EXPECT_THAT(problems_of_model(R"({"preset": "resnet50", "stage_widths": [32, 64, 128, 256]})"), IsEmpty());
  EXPECT_EQ(only_problem(R"({"preset": "resnet50", "stage_depths": [3, 4]})"),
            "model.stage_depths: 2 stages; a resnet has 4");
  EXPECT_EQ(only_problem(R"({"preset": "resnext50_32x4d", "stage_widths": [64, 8, 128, 256]})"),
            "model.stage_widths.2: no channel is left of 8 × base_width 4 / 64 in stage 2");
}

TEST(ShapeRulesTest, ConvolutionsMakePatchesThatArePowersOfTwo) {
  EXPECT_EQ(only_problem(R"({"preset": "xcit_nano_12_p16_224", "patch": 14})"),
            "model.patch: 14 is not a power of two above 1, which convolutions of stride 2 need");
  EXPECT_THAT(problems_of_model(R"({"preset": "xcit_nano_12_p16_224", "patch": 14, "patches": "linear"})"),
              IsEmpty());
  EXPECT_EQ(only_problem(R"({"preset": "xcit_nano_12_p16_224", "dim": 132})"),
            "model.dim: 132 is not a multiple of 8, which the convolutions of patches of 16 need");
}

}  // namespace
}  // namespace abl::config
