// SPDX-License-Identifier: Apache-2.0
#include "config/document/reference.h"

#include <gmock/gmock.h>

namespace abl::config {
namespace {

TEST(JsonSchemaTest, ChoicesRangesAndDefaultsComeFromTheFieldTables) {
  const Json schema = json_schema();
  const Json& model = schema["properties"]["model"]["properties"];
  EXPECT_EQ(model["dim"]["type"], "integer");
  EXPECT_EQ(model["patch"]["default"], 16);
  EXPECT_EQ(model["attention"]["oneOf"][0]["properties"]["kernel"]["enum"],
            Json::parse(R"(["dot", "gaussian", "none"])"));
  EXPECT_EQ(schema["properties"]["recipe"]["properties"]["epochs"]["exclusiveMinimum"], 0);
  EXPECT_EQ(schema["properties"]["recipe"]["additionalProperties"], false);
}

TEST(JsonSchemaTest, TruthValuesListsAndFamiliesAreSaid) {
  const Json model = json_schema()["properties"]["model"]["properties"];
  EXPECT_EQ(model["tokens_norm"]["type"], "boolean");
  EXPECT_EQ(model["tokens_norm"]["default"], true);
  EXPECT_EQ(model["stage_heads"]["items"],
            Json::parse(R"({"type": "integer", "minimum": 1, "maximum": 1024})"));
  EXPECT_EQ(model["window"]["description"], "Side of a window, tokens. (swin and swin-v2)");
  EXPECT_EQ(model["window"]["x-families"], Json::parse(R"(["swin", "swin-v2"])"));
  EXPECT_EQ(model["block"]["x-families"], Json::parse(R"(["xcit"])"));
  EXPECT_FALSE(model["family"].contains("x-families")) << "all have it";
}

TEST(JsonSchemaTest, EveryLayerSectionIsAMappingOrAList) {
  const Json model = json_schema()["properties"]["model"]["properties"];
  for (const char* section : {"attention", "key", "embedding", "block"}) {
    const Json& forms = model[section]["oneOf"];
    EXPECT_TRUE(forms[0]["properties"].contains("elsewhere")) << section;
    EXPECT_EQ(forms[1]["type"], "array") << section;
  }
}

}  // namespace
}  // namespace abl::config
