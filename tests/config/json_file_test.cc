// SPDX-License-Identifier: Apache-2.0
#include "config/json.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

namespace abl::config {
namespace {

class JsonFileTest : public testing::Test {
 protected:
  ~JsonFileTest() override { std::filesystem::remove(file_); }

  std::string refusal(const std::string& text) {
    write_file_atomically(file_, text);
    try {
      read_json(file_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return error.what();
    }
    return "";
  }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("json_file_test." + std::to_string(::getpid()));
};

TEST_F(JsonFileTest, AMistakeHasALineAndAColumn) {
  const auto prefix = file_.string();
  EXPECT_THAT(refusal("{\n  \"seed\": 0,\n  seed}"), testing::StartsWith(prefix + ":3:3: not JSON: "));
  EXPECT_THAT(refusal("no"), testing::StartsWith(prefix + ":1:2: not JSON: "));
  EXPECT_THAT(refusal(""), testing::StartsWith(prefix + ":1:1: not JSON: "));
  EXPECT_LT(refusal("{\"" + std::string(100000, 'x')).size(), 500u);
}

TEST_F(JsonFileTest, AKeyStandsOnceInAnObject) {
  EXPECT_THAT(refusal(R"({"seed": 0, "data": {"name": "shapes"}, "seed": 1})"),
              testing::HasSubstr("duplicate key 'seed'"));
  EXPECT_EQ(refusal(R"([{"a": {"a": 1}}, {"a": 2, "b": {"a": 3}}])"), "");
}

TEST_F(JsonFileTest, EndlessNestingIsRefusedBeforeTheStackEnds) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(refusal(deep), file_.string() + ": nested more than 100 levels deep");
  EXPECT_EQ(refusal(std::string(100, '[') + std::string(100, ']')), "");
}

}  // namespace
}  // namespace abl::config
