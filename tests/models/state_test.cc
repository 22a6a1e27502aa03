// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/weights/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/error.h"
#include "models/backbones/vit.h"
#include "models/layers/mlp.h"

namespace abl::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(State, OfMissingSurplusAndMisshapenTensorsNamesThemAllAndChangesNothing) {
  torch::manual_seed(1);
  Vit model{VitOptions{.image_size = 16, .patch = 8, .classes = 3, .dim = 8, .depth = 1, .heads = 2}};
  std::map<std::string, torch::Tensor> state;
  for (const auto& [name, tensor] : state_of(*model)) state.emplace(name, torch::zeros_like(tensor));
  state.erase("cls_token");
  state.emplace("more", torch::zeros({1}));
  state.insert_or_assign("head.weight", torch::zeros({8, 3}));
  const auto before = state_of(*model).at("norm.weight").clone();
  try {
    load_state(*model, state);
    FAIL() << "was loaded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cls_token is missing"), HasSubstr("more is not a parameter"),
                                    HasSubstr("head.weight has shape [8, 3]"), Not(HasSubstr("norm"))));
  }
  EXPECT_TRUE(torch::equal(state_of(*model).at("norm.weight"), before));
}

}  // namespace
}  // namespace abl::models
