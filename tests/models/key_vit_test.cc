// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/backbones/key_vit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/counting/parameters.h"
#include "models/weights/state.h"
#include "tests/models/bfloat16.h"
#include "tests/models/refusal.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

using Keys = std::vector<std::optional<KeyChoice>>;

const SmallModel kSmallKeyVit{
    "key-vit", KeyVitOptions{.image_size = 64,
                             .patch = 8,
                             .classes = 10,
                             .dim = 96,
                             .heads = 3,
                             .mlp_dim = 384,
                             .keys = {KeyChoice{.method = KeyMethod::kSpatialK, .charts = 4}, std::nullopt}}};

KeyVitOptions key_vit_s(std::optional<KeyChoice> everywhere) { return {.keys = Keys(12, everywhere)}; }
KeyVitOptions key_vit_b(std::optional<KeyChoice> everywhere) {
  return {.dim = 768, .heads = 12, .mlp_dim = 3072, .keys = Keys(12, everywhere)};
}

std::int64_t key_vit_parameters(const KeyVitOptions& options) {
  std::int64_t sum = 0;
  const KeyVit model{options, torch::kMeta};
  for (const auto& entry : list_parameters(*model)) sum += entry.elements;
  return sum;
}

std::int64_t millions_of(const KeyVitOptions& options) {
  return (key_vit_parameters(options) + 500'000) / 1'000'000;
}

constexpr KeyChoice kSpatialK{.method = KeyMethod::kSpatialK}, kKua{.method = KeyMethod::kKua},
    kSimpleK{.method = KeyMethod::kSimpleK}, kVanillaK{.method = KeyMethod::kVanillaK},
    kVanillaKWithoutBroadcasting{.method = KeyMethod::kVanillaK, .broadcasting = Broadcasting::kNone};

TEST(KeyVitCounts, PrintTable1OfThePaper) {
  EXPECT_EQ(key_vit_parameters(key_vit_s({})) / 1000, 22'039);
  EXPECT_EQ(key_vit_parameters(key_vit_b({})) / 1000, 86'543);
  EXPECT_EQ(millions_of(key_vit_s({})), 22);
  EXPECT_EQ(millions_of(key_vit_s(kSpatialK)), 52);
  EXPECT_EQ(millions_of(key_vit_s(kKua)), 52);
  EXPECT_EQ(millions_of(key_vit_s(kSimpleK)), 38);
  EXPECT_EQ(millions_of(key_vit_s(kVanillaK)), 38);
  EXPECT_EQ(millions_of(key_vit_b({})), 87);
  EXPECT_EQ(millions_of(key_vit_b(kSpatialK)), 197);
  EXPECT_EQ(millions_of(key_vit_b(kKua)), 197);
  EXPECT_EQ(millions_of(key_vit_b(kSimpleK)), 140);
  EXPECT_EQ(millions_of(key_vit_b(kVanillaK)), 140);
}

TEST(KeyVitCounts, PrintTable2OfThePaper) {
  auto four = kVanillaKWithoutBroadcasting;
  four.charts = 4;
  EXPECT_EQ(millions_of(key_vit_b(four)), 110);
  EXPECT_EQ(millions_of(key_vit_b(kVanillaKWithoutBroadcasting)), 140);
}

TEST(KeyVitCounts, GrowByTheMatricesOfTheKeyInEachLayer) {
  const std::int64_t d = 384, H = 8, N = 197, base = key_vit_parameters(key_vit_s({}));
  const auto expanded = (H - 1) * d * d + H * d, mixed = H * N * N;
  EXPECT_EQ(key_vit_parameters(key_vit_s(kSpatialK)) - base, 12 * (expanded + mixed + H * d * d));
  EXPECT_EQ(key_vit_parameters(key_vit_s(kKua)) - base, 12 * (expanded + mixed + H * d * d + d));
  EXPECT_EQ(key_vit_parameters(key_vit_s(kSimpleK)) - base, 12 * (expanded + mixed));
  EXPECT_EQ(key_vit_parameters(key_vit_s(kVanillaK)) - base, 12 * (expanded + mixed + d));
  EXPECT_EQ(key_vit_parameters(key_vit_s(kVanillaKWithoutBroadcasting)) - base, 12 * (expanded + mixed));
}

KeyVitOptions small_key_vit(Keys keys) {
  return {.image_size = 16,
          .patch = 4,
          .classes = 5,
          .dim = 16,
          .heads = 2,
          .mlp_dim = 32,
          .keys = std::move(keys)};
}

KeyChoice few(KeyChoice choice) {
  choice.charts = 3;
  return choice;
}

/// The largest gradient of a parameter, by name.
std::map<std::string, double> gradients_of(Classifier& model) {
  torch::cross_entropy_loss(model.forward(torch::randn({3, 3, 16, 16})), torch::tensor({0, 1, 2})).backward();
  std::map<std::string, double> largest;
  for (const auto& parameter : model.named_parameters())
    largest[parameter.key()] = parameter.value().grad().abs().max().item<double>();
  return largest;
}

TEST(KeyVit, TrainsEveryParameterButTheFactorOfBroadcastingOverAll) {
  torch::manual_seed(1);
  auto over_charts = few(kVanillaK);
  over_charts.broadcasting = Broadcasting::kOverCharts;
  KeyVitImpl model{small_key_vit({few(kKua), few(kSimpleK), std::nullopt, few(kVanillaK), over_charts})};
  const auto gradients = gradients_of(model);
  EXPECT_GT(gradients.at("attn.4.key.gamma_cb"), 1e-5);
  for (const auto& [name, largest] : gradients) {
    const bool has_none = name == "attn.0.key.gamma_cb" || name == "attn.3.key.gamma_cb";
    EXPECT_TRUE(has_none || largest > 1e-6) << name << ": " << largest;
  }
  for (const char* layer : {"attn.0.key.", "attn.3.key."})  // all that is left is rounding
    EXPECT_LT(gradients.at(std::string{layer} + "gamma_cb"),
              1e-4 * gradients.at(std::string{layer} + "gamma"))
        << layer;
}

ManifoldKeyOptions key_of(const KeyChoice& choice) { return {.dim = 8, .tokens = 5, .choice = few(choice)}; }

TEST(ManifoldKey, WithBroadcastingOverAllIsHalfTheKeyUpToAConstant) {
  torch::manual_seed(2);
  for (const auto order : {ChartOrder::kChartMajor, ChartOrder::kPlainReshape})
    for (auto choice : {kKua, kVanillaK}) {
      choice.order = order;
      ManifoldKey with{key_of(choice)};
      choice.broadcasting = Broadcasting::kNone;
      ManifoldKey without{key_of(choice)};
      auto state = state_of(*with);
      state.erase("gamma_cb");
      load_state(*without, state);
      const auto x = torch::randn({2, 5, 8});
      const auto rest = with(x) - 0.5 * without(x);
      EXPECT_GT(rest.abs().max().item<double>(), 1e-3);
      EXPECT_LT((rest - rest.mean(1, /*keepdim=*/true)).abs().max().item<double>(), 1e-6)
          << "the same for every token, so softmax over the keys does not see it";
    }
}

TEST(ManifoldKey, WithOneChartDoesNotDependOnTheOrder) {
  torch::manual_seed(3);
  for (auto choice : {kSpatialK, kKua, kSimpleK, kVanillaK}) {
    choice.charts = 1;
    ManifoldKey major{ManifoldKeyOptions{.dim = 8, .tokens = 5, .choice = choice}};
    choice.order = ChartOrder::kPlainReshape;
    ManifoldKey plain{ManifoldKeyOptions{.dim = 8, .tokens = 5, .choice = choice}};
    load_state(*plain, state_of(*major));
    const auto x = torch::randn({2, 5, 8});
    EXPECT_TRUE(torch::allclose(major(x), plain(x), 1e-5, 1e-6));
  }
}

TEST(ManifoldKey, StartsItsFactorsAsChosen) {
  auto choice = kKua;
  choice.gamma = 0.5;
  choice.gamma_cb = 0.25;
  ManifoldKey key{key_of(choice)};
  const auto state = state_of(*key);
  EXPECT_TRUE(torch::equal(state.at("gamma"), torch::full({24}, 0.5)));
  EXPECT_TRUE(torch::equal(state.at("gamma_cb"), torch::full({8}, 0.25)));
}

TEST(ManifoldKey, OfKuaWithoutBroadcastingHasTheParametersOfSpatialK) {
  auto choice = kKua;
  choice.broadcasting = Broadcasting::kNone;
  EXPECT_EQ(key_vit_parameters(key_vit_s(choice)), key_vit_parameters(key_vit_s(kSpatialK)));
}

TEST(KeyVit, TrainsInBfloat16UnderAutocast) {
  torch::manual_seed(4);
  KeyVitImpl model{small_key_vit({few(kKua), few(kSimpleK), few(kVanillaK), std::nullopt})};
  const auto images = torch::randn({2, 3, 16, 16});
  expect_close_in_bfloat16(model, images);
}

std::string key_vit_refusal_of(void (*change)(KeyVitOptions&)) {
  auto options = small_key_vit({kSpatialK, std::nullopt});
  change(options);
  return refusal<KeyVitImpl>(options);
}

TEST(KeyVit, RefusesInOneLineOptionsThatDoNotFitTogether) {
  using ::testing::HasSubstr;
  EXPECT_EQ(key_vit_refusal_of([](auto& options) { options.image_size = 30; }),
            "images of 30 pixels cannot be cut into patches of 4");
  EXPECT_EQ(key_vit_refusal_of([](auto& options) { options.heads = 3; }),
            "3 heads do not divide the width 16");
  EXPECT_THAT(key_vit_refusal_of([](auto& options) { options.classes = 0; }), HasSubstr("with 0 classes"));
  EXPECT_THAT(key_vit_refusal_of([](auto& options) { options.mlp_dim = 0; }), HasSubstr("MLP of width 0"));
  EXPECT_EQ(key_vit_refusal_of([](auto& options) { options.keys[0]->charts = 0; }),
            "charts is 0; at least one chart is expected");
  EXPECT_EQ(key_vit_refusal_of([](auto& options) {
              options.keys[1] =
                  KeyChoice{.method = KeyMethod::kSimpleK, .broadcasting = Broadcasting::kOverAll};
            }),
            "broadcasting is chosen for SimpleK, whose convolution leaves no charts; none is expected");
}

TEST(ManifoldKey, RefusesAnotherNumberOfTokens) {
  ManifoldKey key{key_of(kVanillaK)};
  EXPECT_THROW(key(torch::zeros({1, 6, 8})), c10::ValueError);
}

}  // namespace
}  // namespace abl::models
