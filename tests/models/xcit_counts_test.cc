// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/backbones/xcit.h"
#include "models/counting/conventions.h"
#include "models/counting/counter.h"
#include "models/counting/parameters.h"

namespace abl::models {
namespace {

/// A row of XCiT's Table 1, and what the release adds to it.
struct Size {
  const char* name;
  std::int64_t dim;
  std::size_t depth;
  std::int64_t heads;
  double eta;
  bool tokens_norm;
  std::int64_t elements_16, elements_8;  ///< parameters, with patches of 16 and of 8
  /// As the paper prints them: parameters with patches of 16, GFLOPs at 224/16 and at 384/8.
  const char *millions, *gflops_224_16, *gflops_384_8;
};

constexpr Size kNano{"N12", 128, 12, 4, 1.0, false, 3'053'224, 3'049'016, "3", "0.5", "6.4"};
constexpr Size kTiny{"T12", 192, 12, 4, 1.0, true, 6'716'272, 6'706'504, "7", "1.2", "14.3"};
constexpr Size kSizes[] = {
    kNano,
    kTiny,
    {"T24", 192, 24, 4, 1e-5, true, 12'116'896, 12'107'128, "12", "2.3", "27.3"},
    {"S12", 384, 12, 8, 1.0, true, 26'253'304, 26'213'032, "26", "4.8", "55.6"},
    {"S24", 384, 24, 8, 1e-5, true, 47'671'384, 47'631'112, "48", "9.1", "106.0"},
    {"M24", 512, 24, 8, 1e-5, true, 84'395'752, 84'323'624, "84", "16.2", "188.0"},
    {"L24", 768, 24, 16, 1e-5, true, 189'096'136, 188'932'648, "189", "36.1", "417.9"},
};

XcitOptions xcit(const Size& size, const XcitChoice& choice = {}, std::int64_t patch = 16) {
  return {.patch = patch,
          .dim = size.dim,
          .heads = size.heads,
          .eta = size.eta,
          .tokens_norm = size.tokens_norm,
          .blocks = std::vector<XcitChoice>(size.depth, choice)};
}

std::int64_t elements_of(const XcitOptions& options) {
  const Xcit model{options, torch::kMeta};
  std::int64_t sum = 0;
  for (const auto& entry : list_parameters(*model)) sum += entry.elements;
  return sum;
}

/// Rounded as the papers do, to as many decimals.
std::string millions(std::int64_t elements, int decimals = 0) {
  return fmt::format("{:.{}f}", static_cast<double>(elements) / 1e6, decimals);
}

TEST(XcitCounts, AreThoseOfTheReleaseAndPrintTable1) {
  for (const auto& size : kSizes) {
    const auto with_16 = elements_of(xcit(size)), with_8 = elements_of(xcit(size, {}, 8));
    EXPECT_EQ(with_16, size.elements_16) << size.name;
    EXPECT_EQ(with_8, size.elements_8) << size.name;
    EXPECT_EQ(millions(with_16), size.millions) << size.name;
  }
}

/// By the paper's convention.
double giga_flops(XcitOptions options, std::int64_t image_size) {
  options.image_size = image_size;
  Xcit model{options, torch::kMeta};
  auto parts = count_parts(*model, image_size);
  find_convention("xcit-2021")->apply(parts);
  return flops_fvcore(parts.front().work, /*batch_norm=*/5) / 1e9;
}

/// With one decimal, the others cut off.
std::string cut(double giga) { return fmt::format("{:.1f}", std::floor(10 * giga) / 10); }

TEST(XcitCounts, PrintTheWorkOfTable1) {
  for (const auto& size : kSizes) {
    EXPECT_EQ(cut(giga_flops(xcit(size), 224)), size.gflops_224_16) << size.name;
    EXPECT_EQ(fmt::format("{:.1f}", giga_flops(xcit(size, {}, 8), 384)), size.gflops_384_8) << size.name;
  }
}

TEST(XcitCounts, PrintTheWorkOfTable2) {
  const auto expect = [](const Size& size, const char* at_384_16, const char* at_384_8) {
    EXPECT_EQ(cut(giga_flops(xcit(size), 384)), at_384_16) << size.name;
    EXPECT_EQ(cut(giga_flops(xcit(size, {}, 8), 384)), at_384_8) << size.name;
  };
  expect(kSizes[3], "14.3", "55.6");
  expect(kSizes[4], "26.9", "105.9");
  expect(kSizes[5], "47.7", "187.9");
  expect(kSizes[6], "106.0", "417.8");
}

TEST(XcitCounts, OfTheAblationsOfTable4LackWhatIsLeftOut) {
  const Size& small = kSizes[3];
  const auto base = elements_of(xcit(small));
  const std::int64_t d = small.dim, blocks = 12, norm = 2 * d, scale = d;
  EXPECT_EQ(elements_of(xcit(small, {.local_patch_interaction = false})),
            base - blocks * (norm + scale + 2 * (9 + 1) * d + norm));
  EXPECT_EQ(elements_of(xcit(small, {.attention = XcitAttention::kNone})),
            base - blocks * (norm + scale + 4 * d * d + 4 * d + small.heads));
  EXPECT_EQ(elements_of(xcit(small, {.attention = XcitAttention::kTokens})), base - blocks * small.heads);
  EXPECT_EQ(elements_of(xcit(small, {.learned_temperature = false})), base - blocks * small.heads);
  EXPECT_EQ(elements_of(xcit(small, {.l2_norm = false})), base);
  auto linear = xcit(small);
  linear.patch_projection = PatchProjection::kLinear;
  const auto convolutions =
      9 * (3 * d / 8 + d * d / 32 + d * d / 8 + d * d / 2) + 2 * (d + d / 2 + d / 4 + d / 8);
  EXPECT_EQ(elements_of(linear), base - convolutions + 16 * 16 * 3 * d + d);
}

EmbeddingChoice sne(std::int64_t width) { return {.widths = {width}, .shared = {false, false}}; }
EmbeddingChoice p_sne(std::int64_t width) { return {.widths = {width}, .shared = {false, true}}; }
EmbeddingChoice f_sne(std::int64_t width, std::int64_t code_size) {
  return {.widths = {width}, .shared = {true, true}, .code_size = code_size};
}

/// In millions with one decimal.
std::string millions_of(const Size& size, const EmbeddingChoice& embedding) {
  return millions(elements_of(xcit(size, {.embedding = embedding})), 1);
}

/// Where another cell of the paper contradicts, the count that this one agrees with is expected and the
/// printed one is told.
TEST(XcitCounts, PrintTheEmbeddingsOfSneTable2) {
  EXPECT_EQ(millions(elements_of(xcit(kNano)), 1), "3.1");
  EXPECT_EQ(millions_of(kNano, sne(64)), "3.1");
  EXPECT_EQ(millions_of(kNano, p_sne(96)), "3.1");
  EXPECT_EQ(millions_of(kNano, f_sne(128, 8)), "2.9");
  EXPECT_EQ(millions_of(kNano, f_sne(186, 8)), "3.1");
  EXPECT_EQ(millions_of(kNano, f_sne(128, 16)), "2.9");
  EXPECT_EQ(millions_of(kNano, f_sne(182, 16)), "3.1");
  EXPECT_EQ(millions_of(kNano, f_sne(128, 32)), "2.9");
  EXPECT_EQ(millions_of(kNano, f_sne(128, 64)), "3.0") << "Tables 2 to 4 print 2.9";

  EXPECT_EQ(millions(elements_of(xcit(kTiny)), 1), "6.7");
  EXPECT_EQ(millions_of(kTiny, sne(96)), "6.7");
  EXPECT_EQ(millions_of(kTiny, p_sne(144)), "6.7");
  EXPECT_EQ(millions_of(kTiny, f_sne(192, 8)), "6.3");
  EXPECT_EQ(millions_of(kTiny, f_sne(282, 8)), "6.7");
  EXPECT_EQ(millions_of(kTiny, f_sne(192, 16)), "6.3");
  EXPECT_EQ(millions_of(kTiny, f_sne(276, 16)), "6.7") << "Table 4 prints 6.3";
  EXPECT_EQ(millions_of(kTiny, f_sne(192, 32)), "6.3");
  EXPECT_EQ(millions_of(kTiny, f_sne(192, 64)), "6.4") << "as Table 4; Table 2 prints 6.3";
}

TEST(XcitCounts, PrintTheUnsharedCodesOfSneTable5) {
  auto unshared = f_sne(186, 8);
  unshared.codes_over_blocks = false;
  const auto shared = elements_of(xcit(kNano, {.embedding = f_sne(186, 8)}));
  const auto elements = elements_of(xcit(kNano, {.embedding = unshared}));
  EXPECT_EQ(millions(elements, 2), "3.05");
  EXPECT_EQ(elements - shared, 11 * 3 * 8);
}

}  // namespace
}  // namespace abl::models
