// SPDX-License-Identifier: Apache-2.0
#include "models/counting/counter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/backbones/model_options.h"
#include "models/backbones/simple_vit.h"
#include "models/counting/parameters.h"

namespace abl::models {
namespace {

/// A simple ViT of MSF Table 5 on 224 x 224 ImageNet images.
SimpleVitOptions vit(std::int64_t dim, std::int64_t depth, std::vector<AttentionChoice> attention) {
  return {.image_size = 224,
          .classes = 1000,
          .dim = dim,
          .depth = depth,
          .heads = dim / 64,
          .mlp_dim = 4 * dim,
          .attention = std::move(attention)};
}

SimpleVitOptions vit(std::int64_t dim, std::int64_t depth, const AttentionChoice& everywhere) {
  return vit(dim, depth, std::vector<AttentionChoice>(static_cast<std::size_t>(depth), everywhere));
}

SimpleVitOptions vit_s(const AttentionChoice& everywhere) { return vit(384, 12, everywhere); }

AttentionChoice original(const std::string& share = "QKV-W", std::int64_t groups = 1) {
  return {.share = share, .groups = groups};
}

AttentionChoice mean_shift(const std::string& share = "QKVPW", std::int64_t groups = 1) {
  return {.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = share, .groups = groups};
}

PartCount count(const SimpleVitOptions& options) {
  return count_parts(*build(options, torch::kMeta), options.image_size).front();
}

/// As the tables print: two decimals, half-up from the exact integer.
std::string rounded(std::int64_t count, std::int64_t unit) {
  const auto hundredths = (count * 100 + unit / 2) / unit;
  return fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
}
std::string params(const SimpleVitOptions& options) {
  return rounded(count(options).params_weights, 1'000'000);
}
std::string flops(const SimpleVitOptions& options) {
  return rounded(static_cast<std::int64_t>(flops_msf(count(options).work)), 1'000'000'000);
}

TEST(Counting, PrintsTheParametersOfMsfTable1) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"QQQQQ", "16.60"}, {"QKKQQ", "18.37"}, {"QQVVV", "18.37"}, {"QQVVQ", "18.37"}, {"QQQPP", "18.37"},
      {"QKKKQ", "18.37"}, {"QKKQK", "18.37"}, {"QKKKW", "20.14"}, {"QKKQW", "20.14"}, {"QKKPP", "20.14"},
      {"QKKPQ", "20.14"}, {"QQVPW", "21.91"}, {"QKKPW", "21.91"}, {"QKVVW", "21.91"}, {"QKVPP", "21.91"},
      {"QKVQW", "21.91"}, {"QKVPQ", "21.91"}, {"QKVPW", "23.68"}};
  ASSERT_EQ(rows.size(), 18U);
  for (const auto& [share, printed] : rows) EXPECT_EQ(params(vit_s(mean_shift(share))), printed) << share;
}

TEST(Counting, PrintsTheParametersOfMsfTable2) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"QQQ-Q", "16.60"}, {"QKK-Q", "18.37"}, {"QQQ-W", "18.37"}, {"QQV-Q", "18.37"}, {"QQV-V", "18.37"},
      {"QQV-W", "20.14"}, {"QKK-W", "20.14"}, {"QKV-V", "20.14"}, {"QKV-W", "21.91"}};
  ASSERT_EQ(rows.size(), 9U);
  for (const auto& [share, printed] : rows) EXPECT_EQ(params(vit_s(original(share))), printed) << share;
}

TEST(Counting, GivesTheParametersOfMsfTable3) {
  EXPECT_EQ(params(vit_s(mean_shift())), "23.68");
  EXPECT_EQ(params(vit_s({.kernel = Kernel::kGaussian, .probe = Probe::kOutside, .share = "QKVPW"})),
            "23.68");
  EXPECT_EQ(params(vit_s({.kernel = Kernel::kGaussian})), "21.91");
}

TEST(Counting, PrintsTheParametersOfMsfTable4InBothLayouts) {
  for (const auto layout : {Layout::kInterleaved, Layout::kBlock}) {
    const auto in_layout = [layout](AttentionChoice choice) {
      choice.layout = layout;
      return vit_s(choice);
    };
    EXPECT_EQ(params(in_layout(mean_shift("QKVPW", 1))), "23.68");
    EXPECT_EQ(params(in_layout(mean_shift("QKVPW", 2))), "20.14");
    EXPECT_EQ(params(in_layout(mean_shift("QKKKW", 1))), "20.14");
    EXPECT_EQ(params(in_layout(mean_shift("QKKKW", 2))), "18.37");
    EXPECT_EQ(params(in_layout(original("QKV-W", 1))), "21.91");
    EXPECT_EQ(params(in_layout(original("QKV-W", 2))), "19.26");
  }
}

TEST(Counting, AddsOneMatrixForEachMeanShiftLayerOfSupplementTableC) {
  for (std::size_t layers = 0; layers <= 12; layers += 2) {
    std::vector<AttentionChoice> attention(12, original());
    std::fill_n(attention.begin(), layers, mean_shift());
    const auto counts = count(vit(384, 12, attention));
    EXPECT_EQ(counts.params_weights, 21'912'576 + static_cast<std::int64_t>(layers) * 147'456);
  }
}

TEST(Counting, PrintsTheViTRowsOfMsfTable6) {
  struct Row {
    std::int64_t dim, depth;
    AttentionChoice attention;
    std::string params, flops;
  };
  const std::vector<Row> rows{
      {192, 12, original(), "5.65", "2.50"},
      {192, 12, mean_shift(), "6.09", "2.67"},
      {384, 6, original(), "11.30", "4.64"},
      {384, 6, mean_shift(), "12.18", "4.98"},
      {384, 12, original(), "21.91", "9.16"},
      {384, 12, mean_shift(), "23.68", "9.85"},
      {768, 12, original(), "86.29", "34.96"},
      {768, 12, mean_shift(), "93.37", "37.73"},
      {192, 12, mean_shift("QKVPW", 2), "5.21", "2.32"},  // the paper prints 5.20, rounded twice from 5.2055
      {384, 6, mean_shift("QKVPW", 2), "10.41", "4.29"},
      {384, 12, mean_shift("QKVPW", 2), "20.14", "8.46"},
      {768, 12, mean_shift("QKVPW", 2), "79.21", "32.18"}};
  for (const auto& row : rows) {
    const auto options = vit(row.dim, row.depth, row.attention);
    EXPECT_EQ(params(options), row.params) << row.dim << ' ' << row.depth << ' ' << row.attention.groups;
    EXPECT_EQ(flops(options), row.flops) << row.dim << ' ' << row.depth << ' ' << row.attention.groups;
  }
}

TEST(Counting, CountsTheMultiplyAddsOfALayerWithoutAttentionAndOfAProbeOutside) {
  const std::int64_t n = 196, d = 384;
  const auto of = [](const AttentionChoice& choice) { return count(vit(384, 1, choice)); };
  const auto none = of({.kernel = Kernel::kNone}), orig = of(original()), inside = of(mean_shift());
  const auto outside =
      of({.kernel = Kernel::kGaussian, .probe = Probe::kOutside, .share = "QKVPW", .groups = 2});
  const auto grouped = of(original("QKV-W", 2));
  EXPECT_EQ(none.work.macs, n * 768 * d + n * 8 * d * d + d * 1000);
  EXPECT_EQ(flops_msf(none.work), static_cast<double>(2 * none.work.macs + n * d));
  EXPECT_EQ(orig.work.macs - none.work.macs, 4 * n * d * d + 2 * n * n * d);
  EXPECT_EQ(inside.work.macs - orig.work.macs, n * d * d);
  EXPECT_EQ(outside.work.macs - grouped.work.macs, n * d * d) << "a PROBE outside is never grouped";
  EXPECT_EQ(of(mean_shift("QQQQQ")).work.macs, inside.work.macs) << "sharing saves parameters";
  EXPECT_EQ(orig.params_weights - none.params_weights, 4 * d * d);
  EXPECT_EQ(orig.params_all - none.params_all, 4 * d * d + 2 * d)
      << "the norm in front goes with the attention";
}

TEST(Counting, ListsEveryParameterOnceAndTellsWeightsFromTheRest) {
  const auto options = vit(192, 2, mean_shift("QKKKW"));
  const auto model = build(options, torch::kMeta);
  const auto entries = list_parameters(*model);
  std::int64_t all = 0, weights = 0;
  for (const auto& entry : entries) {
    all += entry.elements;
    weights += entry.is_weight ? entry.elements : 0;
    const bool is_matrix = entry.shape.size() == 2;
    EXPECT_EQ(entry.is_weight, is_matrix) << entry.name;
  }
  EXPECT_EQ(entries.size(), model->parameters().size());
  EXPECT_EQ(all, count(options).params_all);
  EXPECT_EQ(weights, count(options).params_weights);
  EXPECT_EQ(weights, 768 * 192 + 2 * (3 + 8) * 192 * 192 + 192 * 1000);
}

}  // namespace
}  // namespace abl::models
