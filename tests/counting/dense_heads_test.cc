// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/module.h>

#include "tests/counting/dense_heads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "models/counting/parameters.h"

namespace abl::models {
namespace {

/// A row of XCiT's Tables 5 and 6, as printed.
struct Row {
  const char* name;
  DenseBackbone backbone;
  const char *mask_rcnn, *semantic_fpn, *uper_net;
};

constexpr Row kRows[] = {
    {"XCiT-T12/16", {192, 12, 4, 16}, "26.1", "8.4", "33.7"},
    {"XCiT-T12/8", {192, 12, 4, 8}, "25.8", "8.4", "33.7"},
    {"XCiT-S12/16", {384, 12, 8, 16}, "44.3", "30.4", "52.4"},
    {"XCiT-S12/8", {384, 12, 8, 8}, "43.1", "30.4", "52.3"},
    {"XCiT-S24/16", {384, 24, 8, 16}, "65.8", "51.8", "73.8"},
    {"XCiT-S24/8", {384, 24, 8, 8}, "64.5", "51.8", "73.8"},
    {"XCiT-M24/16", {512, 24, 8, 16}, "101.1", "90.8", "109.0"},
    {"XCiT-M24/8", {512, 24, 8, 8}, "98.9", "90.8", "108.9"},
};

/// Millions, cut after one decimal: these two tables do not round.
std::string printed(const torch::nn::Module& model) {
  std::int64_t elements = 0;
  for (const auto& entry : list_parameters(model)) elements += entry.elements;
  const auto tenths = elements / 100'000;
  return fmt::format("{}.{}", tenths / 10, tenths % 10);
}

TEST(DenseHeads, PrintTheParametersOfMaskRcnnInTable5) {
  for (const auto& row : kRows) EXPECT_EQ(printed(*mask_rcnn(row.backbone)), row.mask_rcnn) << row.name;
}

TEST(DenseHeads, PrintTheParametersOfSemanticFpnInTable6) {
  for (const auto& row : kRows) EXPECT_EQ(printed(*semantic_fpn(row.backbone)), row.semantic_fpn) << row.name;
}

TEST(DenseHeads, PrintTheParametersOfUperNetInTable6) {
  for (const auto& row : kRows) EXPECT_EQ(printed(*uper_net(row.backbone)), row.uper_net) << row.name;
}

}  // namespace
}  // namespace abl::models
