// SPDX-License-Identifier: Apache-2.0
// The schemas that editors read, against the declarations that the parser reads by. The schemas as such, on
// all files of the tree and many wrong ones: tests/schema/editor.
#include <gmock/gmock.h>

#include "config/data/data_sets.h"
#include "config/document/reference.h"
#include "config/model/layer_sections.h"
#include "config/model/model_section.h"
#include "config/recipe/recipes.h"
#include "sweeps/attributes.h"
#include "sweeps/form.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;

const json& definitions() {
  static const json kDefinitions = sweep_schema()["definitions"];
  return kDefinitions;
}

TEST(SweepSchemaTest, EveryPartOfAFileIsInASchemaWithAllItsKeys) {
  const json sweep = sweep_schema(), scales = scales_schema();
  for (const Part part : values_of<Part>()) {
    const std::string name{name_of(part)};
    const json& schema = part == Part::kSweep    ? sweep
                         : part == Part::kScales ? scales
                                                 : sweep["definitions"][name];
    ASSERT_TRUE(schema.is_object()) << name << ": a form that no other leads to";
    EXPECT_EQ(schema["additionalProperties"], false) << name;
    for (const std::string_view key : form_of(part).names())
      EXPECT_TRUE(schema["properties"].contains(std::string{key})) << name << "." << key;
  }
}

TEST(SweepSchemaTest, EveryKeySaysWhatItIs) {
  for (const Part part : values_of<Part>())
    for (const Key& key : form_of(part).keys)
      EXPECT_NE(key.schema.value("description", ""), "") << name_of(part) << "." << key.name;
}

TEST(SweepSchemaTest, EveryAttributeOfATableAndAColumnIsAKey) {
  for (const auto& attribute : table_attributes())
    EXPECT_TRUE(definitions()["table"]["properties"].contains(attribute.key)) << attribute.key;
  for (const auto& attribute : column_attributes())
    EXPECT_TRUE(definitions()["column"]["properties"].contains(attribute.key)) << attribute.key;
}

TEST(SweepSchemaTest, EveryKeyOfATrialIsASettingAndAFactor) {
  std::vector<std::string> keys{"model", "data", "recipe"};
  const auto add = [&](const std::string& section, const auto& fields) {
    for (const auto& field : fields) keys.push_back(section + "." + std::string{field.name});
  };
  add("model", config::model_fields());
  add("data", config::data_fields());
  add("recipe", config::recipe_fields());
  config::for_each_layer_section([&](const auto& section) {
    const std::string path = "model." + std::string{section.name};
    add(path, section.fields());
    add(path + ".elsewhere", section.fields());
    keys.push_back(path + ".layers");
  });
  EXPECT_GT(keys.size(), 100u);
  for (const std::string& key : keys) {
    EXPECT_TRUE(definitions()["settings"]["properties"].contains(key)) << key;
    EXPECT_TRUE(definitions()["factors"]["properties"].contains(key)) << key;
  }
}

TEST(SweepSchemaTest, EveryReferenceLeadsToADefinition) {
  for (const json& schema : {sweep_schema(), scales_schema()}) {
    const auto visit = [&](const auto& self, const json& at) -> void {
      if (at.is_object() && at.contains("$ref") && at["$ref"].is_string()) {
        const std::string name = at["$ref"].get<std::string>().substr(sizeof("#/definitions/") - 1);
        EXPECT_TRUE(schema["definitions"].contains(name)) << name;
      }
      if (at.is_structured())
        for (const json& each : at) self(self, each);
    };
    visit(visit, schema);
  }
}

TEST(SweepSchemaTest, ThatOfATrialIsOfTheSameDraft) {
  EXPECT_EQ(config::json_schema()["$schema"], sweep_schema()["$schema"]);
}

}  // namespace
}  // namespace abl::sweeps
