// SPDX-License-Identifier: Apache-2.0
#include "config/attention_section.h"

#include <gmock/gmock.h>

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ModelConfig small() { return {.dim = 384, .depth = 4, .heads = 6}; }

std::vector<AttentionConfig> read(const char* text, std::vector<Problem>& problems) {
  return read_attention(Json::parse(text), small(), problems);
}

std::vector<AttentionConfig> read_right(const char* text) {
  std::vector<Problem> problems;
  auto layers = read(text, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.path << ": " << problem.message;
  return layers;
}

/// "path: message" of the one problem that `text` must have.
std::string only_problem(const char* text) {
  std::vector<Problem> problems;
  read(text, problems);
  EXPECT_EQ(problems.size(), 1u) << text;
  return problems.empty() ? "" : problems.front().path + ": " + problems.front().message;
}

TEST(ShareTest, LettersAreThoseOfTheFirstRoleThatUsesTheMatrix) {
  EXPECT_EQ(canonical_share("AABBC"), "QQVVW");
  EXPECT_EQ(canonical_share("WVKPQ"), "QKVPW");
  EXPECT_EQ(canonical_share("QKK-Q"), "QKK-Q");
  EXPECT_EQ(canonical_share("QKKPP"), "QKKPP");
}

TEST(ShareTest, TheDefaultFollowsTheProbe) {
  EXPECT_EQ(read_right(R"({})").front().share, "QKV-W");
  EXPECT_EQ(read_right(R"({"probe": "inside"})").front().share, "QKVPW");
  EXPECT_EQ(read_right(R"({"probe": "outside"})").front().share, "QKVPW");
}

TEST(ShareTest, SharingMustAgreeWithTheProbe) {
  EXPECT_THAT(only_problem(R"({"probe": "inside", "share": "QKV-W"})"),
              HasSubstr("model.attention.share: QKV-W has no PROBE"));
  EXPECT_THAT(only_problem(R"({"share": "QKVPW"})"),
              HasSubstr("model.attention.share: QKVPW has a PROBE but probe is none"));
  EXPECT_THAT(only_problem(R"({"probe": "outside", "share": "QKVVW"})"), HasSubstr("QKVVW shares the PROBE"));
}

TEST(ShareTest, WhatIsNoSharingIsRefused) {
  for (const char* text :
       {R"({"share": "QKV"})", R"({"share": "qkv-w"})", R"({"share": "QK-VW"})", R"({"share": "QKVPWW"})"}) {
    EXPECT_THAT(only_problem(text), HasSubstr("is no sharing; expected five capital letters")) << text;
  }
}

TEST(GroupsTest, GroupsMustDivideBothSidesOfTheProjection) {
  EXPECT_EQ(only_problem(R"({"groups": 5})"),
            "model.attention.groups: 5 groups do not divide the embedding dimension 384");
  std::vector<Problem> problems;
  read_attention(Json::parse(R"({"groups": 3})"),
                 ModelConfig{.dim = 384, .depth = 1, .heads = 4, .dim_head = 32}, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.front().message, "3 groups do not divide the width of all heads, 4 × 32");
}

TEST(GroupsTest, ASharedWeightCannotBeGrouped) {
  EXPECT_THAT(only_problem(R"({"share": "QKV-Q", "groups": 2})"),
              HasSubstr("2 groups with WEIGHT shared (QKV-Q) have no meaning"));
  EXPECT_EQ(read_right(R"({"share": "QKK-W", "groups": 2})").front().groups, 2);
}

TEST(InertTest, KeysWithoutEffectLeaveNoTrace) {
  EXPECT_EQ(read_right(R"({"layout": "block"})"), read_right("{}"));
  EXPECT_EQ(read_right(R"({"tied_weight_scale": 0.125})"), read_right("{}"));
  EXPECT_NE(read_right(R"({"share": "QKV-Q", "tied_weight_scale": 0.125})"),
            read_right(R"({"share": "QKV-Q"})"));
  EXPECT_NE(read_right(R"({"groups": 2, "layout": "block"})"), read_right(R"({"groups": 2})"));
  EXPECT_EQ(read_right(R"({"kernel": "none", "probe": "inside", "groups": 2})"),
            read_right(R"({"kernel": "none"})"));
}

TEST(LayersTest, RangesAndNumbersChooseLayersFromOne) {
  std::string message;
  EXPECT_THAT(*parse_layers("1-2,4", 5, message), ElementsAre(true, true, false, true, false));
  EXPECT_THAT(*parse_layers("5", 5, message), ElementsAre(false, false, false, false, true));
  EXPECT_THAT(*parse_layers("none", 2, message), ElementsAre(false, false));
}

TEST(LayersTest, WhatNamesNoLayersIsRefused) {
  for (const char* text : {"", "a", "1-", "-2", "3-1", "1,,2", "1-2-3"}) {
    std::string message;
    EXPECT_FALSE(parse_layers(text, 5, message)) << text;
    EXPECT_THAT(message, HasSubstr("names no layers")) << text;
  }
  std::string message;
  EXPECT_FALSE(parse_layers("3-13", 12, message));
  EXPECT_EQ(message, "layers 3-13 do not exist; the model has layers 1 to 12");
  EXPECT_FALSE(parse_layers("0", 12, message));
  EXPECT_FALSE(parse_layers("1-99999999999", 12, message));
}

TEST(LayersTest, PlacementGivesEachLayerItsAttention) {
  const auto layers = read_right(
      R"({"kernel": "gaussian", "probe": "inside", "layers": "3-4", "elsewhere": {"kernel": "dot"}})");
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[0], AttentionConfig{});
  EXPECT_EQ(layers[1], AttentionConfig{});
  EXPECT_EQ(layers[2].probe, "inside");
  EXPECT_EQ(layers[3], layers[2]);
}

TEST(LayersTest, AllLayersOrNoneAreThePlainConfigurations) {
  EXPECT_EQ(read_right(R"({"kernel": "gaussian", "layers": "1-4", "elsewhere": {"groups": 2}})"),
            read_right(R"({"kernel": "gaussian"})"));
  EXPECT_EQ(read_right(R"({"kernel": "gaussian", "layers": "none"})"), read_right("{}"));
}

TEST(LayersTest, ProblemsElsewhereNameTheirPlace) {
  EXPECT_THAT(only_problem(R"({"layers": 1, "elsewhere": {"groups": 5}})"),
              HasSubstr("model.attention.elsewhere.groups: 5 groups"));
  EXPECT_THAT(only_problem(R"({"elsewhere": {"groups": 2}})"),
              HasSubstr("model.attention.elsewhere: has no meaning without layers"));
  EXPECT_THAT(only_problem(R"({"layers": true})"),
              HasSubstr("model.attention.layers: expected a text such as 1-4,9"));
}

TEST(LayersTest, AListGivesEachLayerItsOwn) {
  const auto layers = read_right(R"([{}, {"groups": 2}, {"kernel": "none"}, {}])");
  EXPECT_EQ(layers[1].groups, 2);
  EXPECT_EQ(layers[2].kernel, "none");
  EXPECT_EQ(layers[3], layers[0]);
  EXPECT_EQ(only_problem(R"([{}, {}])"), "model.attention: 2 entries for 4 layers; expected one for each");
  EXPECT_THAT(only_problem(R"([{}, {"groups": 5}, {}, {}])"),
              HasSubstr("model.attention.2.groups: 5 groups do not divide"));
}

TEST(CanonicalAttentionTest, OneMappingServesEqualLayersAndAListTheRest) {
  EXPECT_EQ(canonical_attention(read_right(R"({"layout": "block"})")), Json::object());
  EXPECT_EQ(canonical_attention(read_right(R"({"kernel": "gaussian", "layers": "2"})")),
            Json::parse(R"([{}, {"kernel": "gaussian"}, {}, {}])"));
}

}  // namespace
}  // namespace abl::config
