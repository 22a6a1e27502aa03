// SPDX-License-Identifier: Apache-2.0
#include "base/placeholders.h"

#include <gmock/gmock.h>

namespace abl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string filled(std::string_view text) {
  return fill_placeholders(text, [](const std::string& name) { return "<" + name + ">"; });
}

TEST(Placeholders, AreFilledInAndNothingElse) {
  EXPECT_EQ(filled("--lr={params.lr} {params.optimiser.name}"), "--lr=<params.lr> <params.optimiser.name>");
  EXPECT_EQ(filled("{seed}{run_dir}/x{data}{checkpoint}"), "<seed><run_dir>/x<data><checkpoint>");
  for (const char* literal : {"{lr}", "{}", "{", "}", "{seed", "{ seed }", "{Seed}", "{params}", "$HOME",
                              "${HOME}", "{\"a\":{\"seed\":1}}", "awk '{print $1}'", ""})
    EXPECT_EQ(filled(literal), literal);
}

TEST(Placeholders, TwoBracesAreOne) {
  EXPECT_EQ(filled("{{seed}"), "{seed}");
  EXPECT_EQ(filled("{{{seed}}"), "{<seed>}");
  EXPECT_EQ(filled("{{{{"), "{{");
}

TEST(Placeholders, OtherBracesAreNamedWhereTheyMightBeMeantAsPlaces) {
  EXPECT_THAT(other_braces("{sed} {seed} { seed } {params[k]} {{x} ${lr} {\"a\": {b}} {} {a:b} {c"),
              ElementsAre("sed", " seed ", "params[k]", "b"));
}

TEST(Placeholders, AValueIsNotLookedAtAgain) {
  EXPECT_EQ(fill_placeholders(
                "{params.a}{seed}",
                [](const std::string& name) { return name == "seed" ? "{{" : "{seed} $(rm -rf /) "; }),
            "{seed} $(rm -rf /) {{");
}

TEST(Placeholders, ShellVariablesStayAndAreNamed) {
  EXPECT_EQ(filled("${seed} ${params.lr} ${{seed}"), "${seed} ${params.lr} ${seed}");
  EXPECT_THAT(placeholders("${seed} {data}"), ElementsAre("data"));
  EXPECT_THAT(shell_variables("a ${lr} {lr} ${params.lr}${x:-1} ${"), ElementsAre("lr", "params.lr"));
  EXPECT_THAT(shell_variables("${{lr} $lr"), IsEmpty());
}

}  // namespace
}  // namespace abl
