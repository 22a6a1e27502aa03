// SPDX-License-Identifier: Apache-2.0
#include "config/reference.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "base/file.h"

namespace abl::config {
namespace {

TEST(ReferenceTest, ThePageInTheDocsIsTheOneTheFieldTablesWrite) {
  const std::string page = std::string{ABLATE_SOURCE_DIR} + "/docs/config-reference.md";
  if (std::getenv("ABLATE_UPDATE_FIXTURES")) write_file_atomically(page, reference_markdown());
  EXPECT_EQ(read_file(page), reference_markdown())
      << "write it anew: ABLATE_UPDATE_FIXTURES=1 config_reference_test";
}

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

}  // namespace
}  // namespace abl::config
