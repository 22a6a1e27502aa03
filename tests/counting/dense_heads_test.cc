// SPDX-License-Identifier: Apache-2.0
#include "models/counting/dense_heads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "config/document/trial_document.h"
#include "models/backbones/model_options.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::models {
namespace {

/// A row of XCiT's Tables 5 and 6, as printed.
struct Row {
  const char *name, *preset;
  const char *mask_rcnn, *semantic_fpn, *uper_net;
};

constexpr Row kRows[] = {
    {"XCiT-T12/16", "xcit_tiny_12_p16_224", "26.1", "8.4", "33.7"},
    {"XCiT-T12/8", "xcit_tiny_12_p8_224", "25.8", "8.4", "33.7"},
    {"XCiT-S12/16", "xcit_small_12_p16_224", "44.3", "30.4", "52.4"},
    {"XCiT-S12/8", "xcit_small_12_p8_224", "43.1", "30.4", "52.3"},
    {"XCiT-S24/16", "xcit_small_24_p16_224", "65.8", "51.8", "73.8"},
    {"XCiT-S24/8", "xcit_small_24_p8_224", "64.5", "51.8", "73.8"},
    {"XCiT-M24/16", "xcit_medium_24_p16_224", "101.1", "90.8", "109.0"},
    {"XCiT-M24/8", "xcit_medium_24_p8_224", "98.9", "90.8", "108.9"},
};

/// Millions, cut after one decimal: these two tables do not round.
std::string printed(const Row& row, const std::string& mode) {
  const auto trial = config::read_model_or_throw(
      {{"model", {{"preset", row.preset}}}, {"data", {{"image_size", 224}, {"classes", 1000}}}});
  const auto options = tasks::model_options(trial.model, trial.data);
  const auto counts = head_counts(options, count_parts(*build(options, torch::kMeta), image_size(options)));
  for (const HeadCount& count : counts)
    if (count.mode == mode)
      return fmt::format("{}.{}", count.params / 1'000'000, count.params / 100'000 % 10);
  return "none";
}

TEST(DenseHeads, PrintTheParametersOfMaskRcnnInTable5) {
  for (const auto& row : kRows) EXPECT_EQ(printed(row, "params.all@mask-rcnn"), row.mask_rcnn) << row.name;
}

TEST(DenseHeads, PrintTheParametersOfSemanticFpnInTable6) {
  for (const auto& row : kRows)
    EXPECT_EQ(printed(row, "params.all@semantic-fpn"), row.semantic_fpn) << row.name;
}

TEST(DenseHeads, PrintTheParametersOfUperNetInTable6) {
  for (const auto& row : kRows) EXPECT_EQ(printed(row, "params.all@uper-net"), row.uper_net) << row.name;
}

}  // namespace
}  // namespace abl::models
