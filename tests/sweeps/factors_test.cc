// SPDX-License-Identifier: Apache-2.0
#include "sweeps/factors.h"

#include <gmock/gmock.h>

namespace abl::sweeps {
namespace {

using testing::ElementsAre;

constexpr const char* kFactorsBase = R"(ablate: 1
name: grid
base:
  model: {preset: simple-vit-ti, attention: {kernel: gaussian, probe: inside}}
  data: {name: cifar10, image_size: 32}
  recipe: {use: cifar-lite}
)";

SweepSpec parse_factors(const std::string& rest) { return parse_sweep(kFactorsBase + rest, "grid.yaml"); }

std::vector<std::string> ids(const SweepSpec& spec) {
  std::vector<std::string> all;
  for (const Row& row : spec.rows) all.push_back(row.id);
  return all;
}

TEST(FactorsTest, TheFirstFactorVariesSlowest) {
  const SweepSpec spec =
      parse_factors("factors:\n  model.attention.groups: [1, 2]\n  recipe.lr: [0.001, 0.01]\n");
  EXPECT_THAT(ids(spec),
              ElementsAre("groups=1,lr=0.001", "groups=1,lr=0.01", "groups=2,lr=0.001", "groups=2,lr=0.01"));
  EXPECT_EQ(spec.rows[2].label, "groups=2, lr=0.001");
  EXPECT_EQ(spec.rows[2].set.at("model.attention.groups"), "2");
  EXPECT_THAT(spec.rows[3].config, testing::HasSubstr(R"("lr":0.01)"));
}

TEST(FactorsTest, KeysOfOneLastNameAreWrittenInFull) {
  const SweepSpec spec = parse_factors(
      "factors:\n  model.dim: [64]\n  model.attention.groups: [1]\n  model.attention.elsewhere.groups: [2]\n"
      "  model.attention.layers: ['1']\n");
  EXPECT_THAT(ids(spec),
              ElementsAre("dim=64,model.attention.groups=1,model.attention.elsewhere.groups=2,layers=1"));
}

TEST(FactorsTest, ALevelMayHaveALabelAndSetSeveralKeys) {
  const SweepSpec spec = parse_factors(R"(factors:
  model.attention:
    - {label: MSF, value: {kernel: gaussian, probe: inside}}
    - {label: Orig. transformer, value: {kernel: dot, probe: none}}
)");
  EXPECT_THAT(ids(spec), ElementsAre("attention=MSF", "attention=Orig.-transformer"));
  EXPECT_EQ(spec.rows[1].label, "attention=Orig. transformer");
  EXPECT_EQ(spec.rows[1].set.at("model.attention.kernel"), "dot");
}

TEST(FactorsTest, ZippedFactorsVaryTogether) {
  const SweepSpec spec = parse_factors(R"(factors:
  model.dim: [64, 128]
  recipe.flip: [0, 0.5]
  model.heads: [2, 4]
zip: [[model.dim, model.heads]]
)");
  EXPECT_THAT(ids(spec), ElementsAre("dim=64,flip=0,heads=2", "dim=64,flip=0.5,heads=2",
                                     "dim=128,flip=0,heads=4", "dim=128,flip=0.5,heads=4"));
}

TEST(FactorsTest, OnlyIfLeavesAFactorAtTheBase) {
  const SweepSpec spec = parse_factors(R"(factors:
  model.attention.groups: [1, 2, 4]
  model.attention.layout: [interleaved, block]
only_if:
  model.attention.layout: {model.attention.groups: [2, 4]}
)");
  EXPECT_THAT(ids(spec), ElementsAre("groups=1", "groups=2,layout=interleaved", "groups=2,layout=block",
                                     "groups=4,layout=interleaved", "groups=4,layout=block"));
}

TEST(FactorsTest, AConditionOnAFactorThatDoesNotApplyFails) {
  const SweepSpec spec = parse_factors(R"(factors:
  recipe.flip: [0, 0.5]
  model.attention.layout: [block]
  model.attention.groups: [2]
only_if:
  recipe.flip: {model.attention.layout: block}
  model.attention.layout: {model.attention.groups: 2}
exclude:
  - {recipe.flip: 0.5}
)");
  EXPECT_THAT(ids(spec), ElementsAre("flip=0,layout=block,groups=2"));
}

TEST(FactorsTest, ExcludeTakesOutPartialAssignments) {
  const SweepSpec spec = parse_factors(R"(factors:
  model.attention.groups: [1, 2]
  model.attention.layout: [interleaved, block]
exclude:
  - {model.attention.groups: 1, model.attention.layout: block}
)");
  EXPECT_THAT(ids(spec), ElementsAre("groups=1,layout=interleaved", "groups=2,layout=interleaved",
                                     "groups=2,layout=block"));
}

TEST(FactorsTest, ARowOfTheProductCanBeTheBaseline) {
  const SweepSpec spec =
      parse_factors("factors: {model.attention.groups: [1, 2]}\ntable: {baseline: groups=1}\n");
  EXPECT_EQ(spec.table.baseline, "groups=1");
}

TEST(FactorsTest, AsManyCombinationsAsTrialsFitAreExpanded) {
  std::string levels;
  for (int i = 1; i <= 1000; ++i) levels += (i > 1 ? ", " : "") + std::to_string(i);
  const SweepSpec spec = parse_factors("factors:\n  recipe.epochs: [" + levels + "]\nseeds: 100\n");
  EXPECT_EQ(expand(spec).size(), 100'000u);
}

}  // namespace
}  // namespace abl::sweeps
