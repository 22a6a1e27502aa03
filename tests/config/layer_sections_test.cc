// SPDX-License-Identifier: Apache-2.0
#include "config/model/layer_sections.h"

#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

/// Reads a section of a small model of the family that has it.
template <class Layer>
std::vector<Layer> read(const LayerSection<Layer>& section, const char* text,
                        std::vector<Problem>& problems) {
  const ModelConfig model{.dim = 384, .depth = 4, .heads = 6};
  return read_layers(section, Json::parse(text), model, problems);
}

std::vector<models::AttentionChoice> attention(const char* text) {
  std::vector<Problem> problems;
  auto layers = read(attention_section(), text, problems);
  EXPECT_THAT(texts(problems), testing::IsEmpty()) << text;
  return layers;
}

std::string problem(const char* text) {
  std::vector<Problem> problems;
  read(attention_section(), text, problems);
  EXPECT_THAT(problems, SizeIs(1)) << text;
  return problems.empty() ? "" : texts(problems).front();
}

TEST(LayerSectionsTest, OneMappingHoldsInAllLayers) {
  const auto layers = attention(R"({"groups": 2})");
  ASSERT_THAT(layers, SizeIs(4));
  for (const models::AttentionChoice& layer : layers) EXPECT_EQ(layer.groups, 2);
}

TEST(LayerSectionsTest, PlacementGivesEachLayerItsAttention) {
  const auto layers = attention(
      R"({"kernel": "gaussian", "probe": "inside", "layers": "3-4", "elsewhere": {"kernel": "dot"}})");
  ASSERT_THAT(layers, SizeIs(4));
  EXPECT_EQ(layers[0], models::AttentionChoice{});
  EXPECT_EQ(layers[1], models::AttentionChoice{});
  EXPECT_EQ(layers[2].probe, models::Probe::kInside);
  EXPECT_EQ(layers[3], layers[2]);
}

TEST(LayerSectionsTest, AllLayersOrNoneAreThePlainConfigurations) {
  EXPECT_EQ(attention(R"({"kernel": "gaussian", "layers": "1-4", "elsewhere": {"groups": 2}})"),
            attention(R"({"kernel": "gaussian"})"));
  EXPECT_EQ(attention(R"({"kernel": "gaussian", "layers": "none"})"), attention("{}"));
}

TEST(LayerSectionsTest, AListGivesEachLayerItsOwn) {
  const auto layers = attention(R"([{}, {"groups": 2}, {"kernel": "none"}, {}])");
  EXPECT_EQ(layers[1].groups, 2);
  EXPECT_EQ(layers[2].kernel, models::Kernel::kNone);
  EXPECT_EQ(layers[3], layers[0]);
}

TEST(LayerSectionsTest, ProblemsNameTheirPlace) {
  EXPECT_EQ(problem(R"({"layers": 1, "elsewhere": {"groups": 5}})"),
            "model.attention.elsewhere.groups: 5 groups do not divide the embedding dimension 384");
  EXPECT_EQ(problem(R"({"elsewhere": {"groups": 2}})"),
            "model.attention.elsewhere: requires layers: the layers that the other keys apply to");
  EXPECT_EQ(problem(R"({"layers": true})"),
            "model.attention.layers: expected a text such as 1-4,9, or none; got true");
  EXPECT_EQ(problem(R"({"layers": "3-13"})"),
            "model.attention.layers: layers 3-13 out of range; the model has layers 1 to 4");
  EXPECT_EQ(problem(R"([{}, {}])"), "model.attention: 2 entries for 4 layers; expected one for each");
  EXPECT_EQ(problem(R"([{}, {"groups": 5}, {}, {}])"),
            "model.attention.2.groups: 5 groups do not divide the embedding dimension 384");
  EXPECT_EQ(problem(R"([{}, 7, {}, {}])"), "model.attention.2: expected a mapping; got 7");
}

TEST(LayerSectionsTest, AKeyHasOneProblemAtATime) {
  EXPECT_EQ(
      problem(R"({"probe": "inside", "share": "QKV"})"),
      "model.attention.share: invalid sharing 'QKV'; expected five capital letters for QUERY, KEY, VALUE, "
      "PROBE and WEIGHT, such as QKKKW, with - in the fourth place where there is no PROBE");
  EXPECT_THAT(
      only_problem(R"({"preset": "xcit_nano_12_p16_224", "embedding": {"kind": "sne", "widht": 64}})"),
      HasSubstr("model.embedding.widht: unknown key"));
}

TEST(LayerSectionsTest, EverySectionMayBePlaced) {
  const ModelConfig key = model_from(
      R"({"preset": "key-vit-s", "key": {"method": "kua", "layers": "7-12", "elsewhere": {"method": "simplek"}}})");
  ASSERT_THAT(key.key, SizeIs(12));
  EXPECT_EQ(key.key[5].method, models::KeyMethod::kSimpleK);
  EXPECT_EQ(key.key[6].broadcasting, models::Broadcasting::kOverAll);
  const ModelConfig xcit =
      model_from(R"({"preset": "xcit_tiny_24_p16_224", "block": {"lpi": false, "layers": 24},
      "embedding": {"kind": "sne", "width": 96, "layers": "1-2"}})");
  ASSERT_THAT(xcit.block, SizeIs(24));
  EXPECT_FALSE(xcit.block[23].local_patch_interaction);
  EXPECT_TRUE(xcit.block[22].local_patch_interaction);
}

TEST(LayerSectionsTest, LayersOfSwinCountThroughAllStages) {
  const ModelConfig model = model_from(
      R"({"preset": "swin_tiny_patch4_window7_224", "key": {"method": "vanillak", "layers": "11-12"}})");
  ASSERT_THAT(model.key, SizeIs(12));
  EXPECT_EQ(model.key[9].method, models::KeyMethod::kLinear);
  EXPECT_EQ(model.key[10].method, models::KeyMethod::kVanillaK);
  EXPECT_EQ(only_problem(R"({"preset": "swin_tiny_patch4_window7_224", "key": {"layers": 13}})"),
            "model.key.layers: layers 13 out of range; the model has layers 1 to 12");
}

TEST(LayerSectionsTest, OneMappingServesEqualLayersAndAListTheRest) {
  const auto canonical = [](const char* text) {
    return write_layers(attention_section(), attention(text), canonical_section);
  };
  EXPECT_EQ(canonical(R"({"layout": "block"})"), Json::object());
  EXPECT_EQ(canonical(R"({"groups": 2})"), Json::parse(R"({"groups": 2})"));
  EXPECT_EQ(canonical(R"({"kernel": "gaussian", "layers": "2"})"),
            Json::parse(R"([{}, {"kernel": "gaussian"}, {}, {}])"));
}

}  // namespace
}  // namespace abl::config
