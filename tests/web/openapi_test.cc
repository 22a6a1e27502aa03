// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "views/read.h"
#include "web/server/routes.h"

namespace abl::web {
namespace {

using Json = nlohmann::ordered_json;

/// "How many" -> "how many".
std::string lower(std::string phrase) {
  if (phrase.size() > 1 && !std::isupper(static_cast<unsigned char>(phrase[1])))
    phrase[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(phrase[0])));
  return phrase;
}

/// "`count`: how many rows (1000 at most, 200 unless said)".
std::string line_of(const Json& parameter) {
  const Json& schema =
      parameter.at("schema").contains("items") ? parameter.at("schema").at("items") : parameter.at("schema");
  std::vector<std::string> bounds;
  const bool needed = parameter.value("required", false);
  if (parameter.at("schema").contains("items"))
    bounds.emplace_back(needed ? "once or more" : "any number");
  else if (needed)
    bounds.emplace_back("needed");
  if (schema.contains("enum")) {
    std::string names;
    for (const auto& name : schema.at("enum"))
      names += (names.empty() ? "" : ", ") + std::string{"`"} + name.get<std::string>() + "`";
    bounds.push_back(names);
  }
  if (schema.value("maximum", std::uint64_t{0}) > 1 && schema.at("maximum") < views::kHighestId)
    bounds.push_back(schema.at("maximum").dump() + " at most");
  if (schema.value("default", 0) != 0) bounds.push_back(schema.at("default").dump() + " unless said");
  std::string line = "`" + parameter.at("name").get<std::string>() +
                     "`: " + lower(parameter.at("description").get<std::string>());
  for (std::size_t i = 0; i < bounds.size(); ++i) line += (i == 0 ? " (" : ", ") + bounds[i];
  return line + (bounds.empty() ? "" : ")");
}

/// The table of docs/http-api.md.
std::string table_of(const Json& document) {
  std::string table = "| Path | Answer | Parameters |\n|---|---|---|\n";
  const std::string below = "/api/v1/";
  for (const auto& [path, item] : document.at("paths").items()) {
    if (!path.starts_with(below) || !item.contains("get")) continue;
    const Json& get = item.at("get");
    const auto first = get.at("responses").at("200").at("content").begin();  // of its types
    const Json& content = first.value();
    std::string answer = "`" + first.key() + "`";
    if (content.at("schema").contains("$ref")) {
      answer = content.at("schema").at("$ref").get<std::string>();
      answer = "`" + answer.substr(answer.rfind('/') + 1) + "`";
    }
    std::string parameters;
    for (const Json& parameter : get.at("parameters"))
      if (parameter.at("in") == "query")
        parameters += (parameters.empty() ? "" : "<br>") + line_of(parameter);
    table += "| `" + path.substr(below.size()) + "` | " + answer + ": " +
             lower(get.at("summary").get<std::string>()) + " | " + parameters +
             (parameters.empty() ? "|\n" : " |\n");
  }
  return table + "\n";
}

TEST(OpenApi, TheTableInTheDocsIsTheOneThatTheReadsDeclare) {
  const std::string file = std::string{ABLATE_SOURCE_DIR} + "/docs/http-api.md";
  const std::string page = read_file(file), table = table_of(Json::parse(api_description()));
  const auto begin = page.find("| Path |"), end = page.find("\n\n", begin) + 2;
  ASSERT_NE(begin, std::string::npos);
  const std::string wanted = page.substr(0, begin) + table + page.substr(end);
  if (std::getenv("ABLATE_UPDATE_FIXTURES")) write_file_atomically(file, wanted);
  EXPECT_EQ(read_file(file), wanted)
      << "write it anew: ABLATE_UPDATE_FIXTURES=1 web_test --gtest_filter=OpenApi.*";
}

TEST(OpenApi, EveryReadSaysWhatItsPathIsOf) {
  for (const views::Read* read : views::all_reads()) {
    EXPECT_EQ(read->path.find('*') != std::string_view::npos, read->of != nullptr) << read->path;
    EXPECT_FALSE(read->about.empty()) << read->path;
    ASSERT_NE(read->message, nullptr) << read->path;
    for (const views::Parameter& parameter : read->parameters)
      EXPECT_FALSE(parameter.about.empty()) << read->path << ' ' << parameter.name;
  }
}

}  // namespace
}  // namespace abl::web
