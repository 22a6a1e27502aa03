// SPDX-License-Identifier: Apache-2.0
#include "config/model/plugin_section.h"

#include "base/named_path.h"
#include "config/recipe/recipes.h"
#include "tests/config/documents.h"

namespace abl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kDigest(64, 'a');

Json vit_with(const Json& plugin) { return {{"preset", "vit_tiny_patch16_224"}, {"plugin", plugin}}; }

TrialConfig trial_with(const Json& plugin) { return read_trial_or_throw(document_of(vit_with(plugin))); }

TEST(PluginSectionTest, ItsNameDigestAndOptionsAreTheTrials) {
  const auto plain = canonical_text(read_trial_or_throw(document_of({{"preset", "vit_tiny_patch16_224"}})));
  const auto trial =
      trial_with({{"name", "mine"}, {"sha256", kDigest}, {"options", {{"b", 2.0}, {"a", "x"}}}});
  EXPECT_THAT(
      canonical_text(trial),
      HasSubstr(R"("plugin":{"name":"mine","options":{"a":"x","b":2},"sha256":")" + kDigest + R"("})"));
  EXPECT_THAT(plain, testing::Not(HasSubstr("plugin")));
  EXPECT_EQ(canonical_text(read_trial_or_throw(Json::parse(canonical_text(trial)))), canonical_text(trial));
  EXPECT_NE(canonical_text(trial_with({{"name", "mine"}, {"sha256", std::string(64, 'b')}})),
            canonical_text(trial_with({{"name", "mine"}, {"sha256", kDigest}})));
  EXPECT_EQ(canonical_text(trial_with({{"name", "mine"}, {"sha256", kDigest}, {"options", Json::object()}})),
            canonical_text(trial_with({{"name", "mine"}, {"sha256", kDigest}})));
}

TEST(PluginSectionTest, ItsFileIsOneThatTheTrialTakesFromItsWorker) {
  auto document = document_of(vit_with({{"name", "mine"}, {"sha256", kDigest}}));
  document["recipe"]["start_weights"] = "mine";  // another file of that name
  const auto files = named_files(read_trial_or_throw(document));
  EXPECT_EQ(files, (std::map<std::string, std::string>{{"mine", ""}, {plugin_key("mine"), kDigest}}));
}

TEST(PluginSectionTest, AFamilyThatIsAPluginNeedsOne) {
  EXPECT_THAT(only_problem(R"({"family": "plugin"})"),
              HasSubstr("model.plugin: missing; expected {name: …, sha256: …}"));
  EXPECT_EQ(
      problems_of(document_of({{"family", "plugin"}, {"plugin", {{"name", "net"}, {"sha256", kDigest}}}}))
          .size(),
      0u);
  EXPECT_EQ(only_problem(R"({"preset": "resnet50", "plugin": {"name": "a"}})"),
            "model.plugin: plugin is a key of vit and plugin, not of resnet");
}

TEST(PluginSectionTest, WhatIsWrongIsNamedWithItsKey) {
  EXPECT_THAT(problems_of(document_of(vit_with({{"nam", "mine"}, {"sha256", "12"}}))),
              ElementsAre("model.plugin.nam: unknown key; expected name, sha256 or options (name)",
                          "model.plugin.sha256: expected a SHA-256 of 64 hexadecimal digits (0-9, a-f)"));
  EXPECT_THAT(problems_of(document_of(vit_with({{"name", "../x"}, {"sha256", ""}}))),
              ElementsAre(HasSubstr("model.plugin.name: invalid name '../x'"),
                          HasSubstr("model.plugin.sha256: expected a SHA-256")));
  EXPECT_THAT(
      problems_of(document_of(
          vit_with({{"name", "mine"},
                    {"sha256", kDigest},
                    {"options",
                     {{"list", {1, 2}}, {"Wide", 1}, {"long", std::string(300, 'x')}, {"none", nullptr}}}}))),
      ElementsAre(HasSubstr("model.plugin.options.Wide: expected a key of small letters"),
                  HasSubstr("model.plugin.options.list: expected a text of at most 256 bytes, a number"),
                  HasSubstr("model.plugin.options.long: "), HasSubstr("model.plugin.options.none: ")));
  EXPECT_THAT(problems_of(document_of(vit_with("mine"))),
              ElementsAre("model.plugin: expected a mapping; got \"mine\""));
}

}  // namespace
}  // namespace abl::config
