// SPDX-License-Identifier: Apache-2.0
// Our models against the reference in Python (tests/parity), whose results lie in ABLATE_PARITY_DIR.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/registry.h"
#include "models/safetensors.h"
#include "models/state.h"

namespace abl::models {
namespace {

using Json = nlohmann::json;

template <class Enum>
Enum named(const Json& value, const std::vector<std::pair<std::string, Enum>>& names) {
  for (const auto& [name, enumerator] : names)
    if (value == name) return enumerator;
  throw std::invalid_argument{"the reference uses a word that the models do not know: " + value.dump()};
}

AttentionChoice choice_of(const Json& layer) {
  return {.kernel = named<Kernel>(
              layer.at("kernel"),
              {{"dot", Kernel::kDot}, {"gaussian", Kernel::kGaussian}, {"none", Kernel::kNone}}),
          .probe = named<Probe>(
              layer.at("probe"),
              {{"none", Probe::kNone}, {"inside", Probe::kInside}, {"outside", Probe::kOutside}}),
          .share = layer.at("share"),
          .groups = layer.at("groups"),
          .layout = named<Layout>(layer.at("layout"),
                                  {{"interleaved", Layout::kInterleaved}, {"block", Layout::kBlock}}),
          .tied_weight_scale = layer.at("tied_weight_scale")};
}

SimpleVitOptions options_of(const Json& config) {
  SimpleVitOptions options{.image_size = config.at("image_size"),
                           .patch = config.at("patch"),
                           .classes = config.at("classes"),
                           .dim = config.at("dim"),
                           .depth = config.at("depth"),
                           .heads = config.at("heads"),
                           .dim_head = config.at("dim_head"),
                           .mlp_dim = config.at("mlp_dim")};
  for (const auto& layer : config.at("attention")) options.attention.push_back(choice_of(layer));
  return options;
}

/// One file: what the reference was, what it was given, and what came out.
class Case {
 public:
  explicit Case(const std::string& name)
      : file_{read_safetensors(std::filesystem::path{ABLATE_PARITY_DIR} / (name + ".safetensors"))} {}

  SimpleVitOptions options() const {
    return options_of(Json::parse(file_.metadata.at("ablate")).at("config"));
  }
  const torch::Tensor& at(const std::string& name) const { return file_.tensors.at(name); }
  /// The tensors whose name begins so, without that beginning.
  std::map<std::string, torch::Tensor> all(const std::string& prefix) const {
    std::map<std::string, torch::Tensor> found;
    for (const auto& [name, tensor] : file_.tensors)
      if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), tensor);
    return found;
  }

 private:
  TensorFile file_;
};

/// Largest difference, relative to the largest value expected.
double relative_error(const torch::Tensor& got, const torch::Tensor& expected) {
  EXPECT_EQ(got.sizes(), expected.sizes());
  return ((got - expected).abs().max() / expected.abs().max()).item<double>();
}

const std::vector<std::string> kCases{"QKVPW",
                                      "QQQQQ",
                                      "QKKQQ",
                                      "QKKKQ",
                                      "QKKKW",
                                      "QKKPP",
                                      "QKVPP",
                                      "QKVPQ",
                                      "QQVVV",
                                      "QKV-W",
                                      "QKK-Q",
                                      "QQQ-Q",
                                      "QKV-V",
                                      "QKVPW_g2_interleave",
                                      "QKVPW_g2_block",
                                      "QKKKW_g2_interleave",
                                      "QKV-W_g2_interleave",
                                      "QKV-W_g2_block",
                                      "QKVPW_g3_interleave",
                                      "QKKPW_g4_block",
                                      "gauss_orig",
                                      "dot_probe",
                                      "residual",
                                      "residual_g2",
                                      "residual_QKKPQ",
                                      "tied_scale",
                                      "placement"};

class Parity : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    model_ = SimpleVit{case_.options()};
    load_state(*model_, case_.all("sd."));  // strict: no name may be missing or left over
  }
  const Case case_{"ref_msf_" + GetParam()};
  SimpleVit model_{nullptr};
};

TEST_P(Parity, LogitsAndLossAreThoseOfTheReference) {
  const torch::NoGradGuard no_grad;
  const auto logits = model_(case_.at("input"));
  EXPECT_LT(relative_error(logits, case_.at("logits")), 1e-5);
  EXPECT_LT(
      relative_error(torch::cross_entropy_loss(logits, case_.at("target")).reshape(1), case_.at("loss")),
      1e-5);
}

/// Some gradients are zero but for rounding: with one matrix in QUERY, KEY, VALUE and PROBE a shift of all
/// tokens has no effect. Below a thousandth of the model's largest gradient a tensor is therefore compared
/// absolutely.
TEST_P(Parity, EveryGradientIsThatOfTheReference) {
  torch::cross_entropy_loss(model_(case_.at("input")), case_.at("target")).backward();
  const auto expected = case_.all("grad.");
  const auto parameters = model_->named_parameters();
  ASSERT_EQ(expected.size(), parameters.size());
  double largest = 0;
  for (const auto& [name, gradient] : expected)
    largest = std::max(largest, gradient.abs().max().item<double>());
  for (const auto& parameter : parameters) {
    const auto& reference = expected.at(parameter.key());
    ASSERT_EQ(parameter.value().grad().sizes(), reference.sizes());
    const double scale = std::max(reference.abs().max().item<double>(), 1e-3 * largest);
    EXPECT_LT((parameter.value().grad() - reference).abs().max().item<double>(), 1e-4 * scale)
        << parameter.key();
  }
}

TEST_P(Parity, EveryBranchGivesWhatTheReferenceGives) {
  const torch::NoGradGuard no_grad;
  const auto expected = case_.all("feat.");
  std::size_t compared = 0;
  auto x = model_->embed_images(case_.at("input"));
  for (std::int64_t index = 0; index < model_->options().depth; ++index) {
    const auto number = std::to_string(index);
    auto after_attention = x;
    if (auto attention = model_->attention(index)) {
      const auto branch = attention(x);
      EXPECT_LT(relative_error(branch, expected.at("attn." + number)), 1e-5) << "layer " << index;
      after_attention = x + branch;
      ++compared;
    }
    EXPECT_LT(relative_error(model_->feed_forward(index)(after_attention), expected.at("ff." + number)), 1e-5)
        << "layer " << index;
    ++compared;
    x = model_->layer(index, x);
  }
  EXPECT_EQ(compared, expected.size());
}

/// A test's name may not hold a dash.
std::string name_of(const ::testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param;
  std::ranges::replace(name, '-', 'x');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Msf, Parity, ::testing::ValuesIn(kCases), name_of);

TEST(ParityFiles, AreAllCompared) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{ABLATE_PARITY_DIR})
    files += entry.path().extension() == ".safetensors";
  EXPECT_EQ(files, kCases.size()) << "the reference writes cases that no test compares, or old files lie in "
                                  << ABLATE_PARITY_DIR;
}

}  // namespace
}  // namespace abl::models
