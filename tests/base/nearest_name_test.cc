// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <gmock/gmock.h>

namespace abl {
namespace {

TEST(NearestNameTest, AForgottenDoubledSwappedOrWrongLetterIsForgiven) {
  const std::vector<std::string> kernels{"dot", "gaussian", "none"};
  EXPECT_EQ(nearest_name("gausian", kernels), "gaussian");
  EXPECT_EQ(nearest_name("gaussiann", kernels), "gaussian");
  EXPECT_EQ(nearest_name("guassian", kernels), "gaussian");
  EXPECT_EQ(nearest_name("noen", kernels), "none");
  EXPECT_EQ(nearest_name("DOT", kernels), "dot");
}

TEST(NearestNameTest, AHalfRememberedLongNameIsFound) {
  EXPECT_EQ(nearest_name("smoothing", {"label_smoothing", "lr", "batch"}), "label_smoothing");
}

TEST(NearestNameTest, AForgottenSeparatorIsLessThanALetter) {
  EXPECT_EQ(nearest_name("fsne", {"sne", "p-sne", "f-sne"}), "f-sne");
  EXPECT_EQ(nearest_name("simple_vit_s", {"simple-vit-ss", "simple-vit-s"}), "simple-vit-s");
}

TEST(NearestNameTest, NothingIsGuessedWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("swin", {"dot", "gaussian", "none"}), "");
  EXPECT_EQ(nearest_name("a", {"b", "c"}), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), {"x"}), "");
}

TEST(AnyOfTest, ChoicesReadAsASentence) {
  EXPECT_EQ(any_of({"dot", "gaussian", "none"}), "dot, gaussian or none");
  EXPECT_EQ(any_of({"dot"}), "dot");
}

}  // namespace
}  // namespace abl
