// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/error.h"
#include "images/timm_rand_augment.h"

namespace abl::images {
namespace {

TEST(ParseRandAugmentTest, ReadsTheUsualRecipe) {
  const auto options = parse_rand_augment("rand-m9-mstd0.5-inc1");
  EXPECT_EQ(options.magnitude, 9);
  EXPECT_EQ(options.magnitude_std, 0.5);
  EXPECT_EQ(options.magnitude_max, 10);
  EXPECT_EQ(options.operations, 2);
  EXPECT_EQ(options.probability, 0.5);
  EXPECT_TRUE(options.increasing);
  EXPECT_FALSE(options.interpolation) << "bilinear or bicubic by chance";
}

TEST(ParseRandAugmentTest, HasTimmsDefaults) {
  const auto options = parse_rand_augment("rand");
  EXPECT_EQ(options.magnitude, 10);
  EXPECT_EQ(options.magnitude_std, 0);
  EXPECT_FALSE(options.increasing);
}

TEST(ParseRandAugmentTest, ReadsEveryPartInAnyOrder) {
  const auto options = parse_rand_augment("rand-n3-p0.75-inc0-mmax30-mstd101-m15");
  EXPECT_EQ(options.operations, 3);
  EXPECT_EQ(options.probability, 0.75);
  EXPECT_EQ(options.magnitude_max, 30);
  EXPECT_TRUE(std::isinf(options.magnitude_std)) << "above 100: uniform";
  EXPECT_EQ(options.magnitude, 15);
}

struct Refusal {
  const char* text;
  const char* part_of_message;
};

TEST(ParseRandAugmentTest, SaysOnOneLineWhatIsWrongAndWhatWasExpected) {
  for (const auto& [text, part] : {Refusal{"", "must begin with rand"},
                                   {"augmix-m3", "must begin with rand"},
                                   {"rand-m9-", "unknown part ''"},
                                   {"rand-x3", "unknown part 'x3'"},
                                   {"rand-foo", "unknown part 'foo'"},
                                   {"rand-m9-m8", "duplicate 'm'"},
                                   {"rand-m", "\"m\" must be a whole number from 0 to 1000"},
                                   {"rand-m9.5", "\"m9.5\" must be a whole number from 0 to 1000"},
                                   {"rand-n0", "\"n0\" must be a whole number from 1 to 100"},
                                   {"rand-p1.5", "\"p1.5\" must be a number from 0 to 1"},
                                   {"rand-inc2", "\"inc2\" must be a whole number from 0 to 1"},
                                   {"rand-mstd0.5x", "\"mstd0.5x\" must be a number from 0 to"}}) {
    try {
      parse_rand_augment(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.code(), Code::kInvalidArgument) << message;
      EXPECT_NE(message.find(part), std::string::npos) << message;
      EXPECT_NE(message.find("expected rand and any of"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(ParseRandAugmentTest, DoesNotDoOtherSetsOfOperations) {
  try {
    parse_rand_augment("rand-m9-tweights");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnimplemented);
    EXPECT_NE(std::string{error.what()}.find("tweights"), std::string::npos);
  }
}

}  // namespace
}  // namespace abl::images
