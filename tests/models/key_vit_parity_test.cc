// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "models/backbones/key_vit.h"
#include "tests/models/parity_case.h"

namespace abl::models {
namespace {

using Json = nlohmann::json;

const std::map<std::string, KeyMethod> kMethods{
    {"spatialk", KeyMethod::kSpatialK}, {"spatial", KeyMethod::kSpatialK},
    {"kua", KeyMethod::kKua},           {"simplek", KeyMethod::kSimpleK},
    {"simple", KeyMethod::kSimpleK},    {"vanillak", KeyMethod::kVanillaK},
    {"vanilla", KeyMethod::kVanillaK},  {"vanilla_nocb", KeyMethod::kVanillaK}};
const std::map<std::string, Broadcasting> kBroadcastings{
    {"none", Broadcasting::kNone}, {"all", Broadcasting::kOverAll}, {"charts", Broadcasting::kOverCharts}};

std::optional<KeyChoice> key_vit_choice_of(const Json& layer) {
  if (layer.is_null()) return {};
  return KeyChoice{
      .method = kMethods.at(layer.at("method")),
      .charts = layer.at("charts"),
      .broadcasting = kBroadcastings.at(layer.at("broadcasting")),
      .order = layer.at("order") == "plain" ? ChartOrder::kPlainReshape : ChartOrder::kChartMajor};
}

/// `kind` is the reference's word for one key in every layer.
std::optional<KeyChoice> choice_of_kind(const std::string& kind, std::int64_t charts) {
  if (kind == "none") return {};
  KeyChoice choice{.method = kMethods.at(kind), .charts = charts};
  if (kind == "vanilla_nocb") choice.broadcasting = Broadcasting::kNone;
  return choice;
}

KeyVitOptions key_vit_options_of(const Json& config) {
  KeyVitOptions options{.image_size = config.at("image"),
                        .patch = config.at("patch"),
                        .classes = config.at("classes"),
                        .dim = config.at("dim"),
                        .heads = config.at("heads")};
  options.mlp_dim = config.value("mlp", 4 * options.dim);
  if (config.contains("keys"))
    for (const auto& layer : config.at("keys")) options.keys.push_back(key_vit_choice_of(layer));
  else
    options.keys.assign(config.at("depth"), choice_of_kind(config.at("kind"), config.at("charts")));
  return options;
}

class KeyVitParity : public ::testing::TestWithParam<std::string> {};

TEST_P(KeyVitParity, IsTheReference) {
  const ParityCase reference{GetParam()};
  KeyVitImpl model{key_vit_options_of(reference.config())};
  expect_parity(model, reference);
}

INSTANTIATE_TEST_SUITE_P(KeyVit, KeyVitParity,
                         ::testing::Values("ref_keyvit_none", "ref_keyvit_spatial", "ref_keyvit_kua",
                                           "ref_keyvit_simple", "ref_keyvit_vanilla",
                                           "ref_keyvit_vanilla_nocb", "ref_keyvit_spatialk_plain",
                                           "ref_keyvit_kua_plain", "ref_keyvit_simplek_plain",
                                           "ref_keyvit_vanillak_plain", "ref_keyvit_vanillak_plain_charts",
                                           "ref_keyvit_kua_plain_charts", "ref_keyvit_kua_over_charts",
                                           "ref_keyvit_vanillak_over_charts", "ref_keyvit_one_chart",
                                           "ref_keyvit_three_charts", "ref_keyvit_placement"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace abl::models
