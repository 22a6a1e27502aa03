// SPDX-License-Identifier: Apache-2.0
#include "models/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "models/feed_forward.h"

namespace abl::models {
namespace {

using ::testing::HasSubstr;

TEST(State, OfOneModelMakesAnotherEqual) {
  torch::manual_seed(1);
  FeedForward from{8, 16}, to{8, 16};
  const auto x = torch::randn({2, 3, 8});
  ASSERT_FALSE(torch::equal(from(x), to(x)));
  load_state(*to, state_of(*from));
  EXPECT_TRUE(torch::equal(from(x), to(x)));
}

TEST(State, NamesAllThatDoesNotFitAndLeavesTheModelAlone) {
  FeedForward model{8, 16};
  const auto before = model->fc1->weight.detach().clone();
  auto state = state_of(*FeedForward{8, 16});
  state.erase("fc2.bias");
  state["fc2.weight"] = torch::zeros({16, 8});
  state["fc3.weight"] = torch::zeros({1});
  try {
    load_state(*model, state);
    FAIL() << "loaded a state that does not fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("fc2.bias is missing; the model expects [8]"));
    EXPECT_THAT(error.what(), HasSubstr("fc2.weight has shape [16, 8]; the model expects [8, 16]"));
    EXPECT_THAT(error.what(), HasSubstr("fc3.weight is not a parameter of the model"));
  }
  EXPECT_TRUE(torch::equal(model->fc1->weight, before));
}

}  // namespace
}  // namespace abl::models
