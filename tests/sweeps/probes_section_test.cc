// SPDX-License-Identifier: Apache-2.0
// `probes:` of a sweep file, and columns that take what they find.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "sweeps/extension.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string file_with(const std::string& probes, const std::string& column = "probe: feature-norms/last") {
  return R"(ablate: 1
name: small
base:
  model: {preset: simple-vit-ti}
  data: {name: cifar10}
  recipe: {use: cifar-lite}
rows: [{id: a}, {id: b, set: {recipe.lr: 0.01}}]
)" + probes +
         "table:\n  columns: [{name: acc, metric: val/top1}, {name: norm, " + column + "}]\n";
}

std::string problem_of_probes(const std::string& text) {
  try {
    parse_sweep(text, "sweep.yaml");
  } catch (const SweepFileError& error) {
    EXPECT_THAT(error.problems(), SizeIs(1)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was wrong with\n" << text;
  return {};
}

TEST(ProbesSection, NamesAndSettings) {
  const auto spec = parse_sweep(file_with("probes: [feature-norms, {name: attention, images: 8}]\n"), "f");
  ASSERT_THAT(spec.probes, SizeIs(2));
  EXPECT_EQ(spec.probes[0].number("images"), 64);
  EXPECT_EQ(spec.probes[1].number("images"), 8);
  EXPECT_EQ(spec.table.columns[1].source, "probe:feature-norms/last");
  EXPECT_EQ(spec.table.columns[1].kind, Column::Kind::kMetric);
  EXPECT_EQ(spec.table.columns[1].better, protocol::Better::kNone);
}

TEST(ProbesSection, LookIntoClassifiersAlone) {
  EXPECT_THAT(problem_of_probes(R"(ablate: 1
name: small
base:
  model: {preset: xcit_tiny_12_p16_224}
  data: {name: scenes}
  task: {kind: segment}
  recipe: {use: demo}
rows: [{id: a}]
probes: [feature-norms]
table: {columns: [{name: miou, metric: val/miou}]}
)"),
              HasSubstr("row a has task.kind segment; probes need a classifier"));
}

TEST(ProbesSection, AreNoPartOfATrial) {
  const std::string with = "probes: [feature-norms]\n", column = "metric: val/top5";
  const auto plain = parse_sweep(file_with("", column), "f"),
             probed = parse_sweep(file_with(with, column), "f");
  EXPECT_EQ(plain.rows[1].config_hash, probed.rows[1].config_hash);
  const auto grown = growth(probed, plain.canonical);
  EXPECT_THAT(grown.refused, IsEmpty());
  ASSERT_THAT(grown.changes, SizeIs(1));
  EXPECT_THAT(grown.changes[0], HasSubstr("'ablate probe small'"));
}

TEST(ProbesSection, SaysWhatIsWrongWhereItStands) {
  EXPECT_THAT(problem_of_probes(file_with("probes: [feature-norm]\n")),
              testing::AllOf(HasSubstr("sweep.yaml:8:10"), HasSubstr("did you mean 'feature-norms'?")));
  EXPECT_THAT(problem_of_probes(file_with("probes: [feature-norms, {name: attention, imags: 8}]\n")),
              HasSubstr("probes.2: attention: unknown setting 'imags'"));
  EXPECT_THAT(problem_of_probes(file_with("probes: [feature-norms, feature-norms]\n")),
              HasSubstr("listed twice"));
  EXPECT_THAT(
      problem_of_probes(file_with("")),
      HasSubstr("table.columns.norm.probe: the file lists no probes; expected probes: [feature-norms]"));
  EXPECT_THAT(problem_of_probes(file_with("probes: [code-norms]\n")),
              HasSubstr("probes does not list 'feature-norms'; expected code-norms"));
  EXPECT_THAT(problem_of_probes(file_with("probes: [feature-norms]\n", "probe: feature-norms")),
              HasSubstr("expected PROBE/VALUE, such as feature-norms/last"));
  EXPECT_THAT(
      problem_of_probes(file_with("probes: [feature-norms]\n", "probe: feature-norms/last, take: best")),
      HasSubstr("a probe result has one value; expected no take"));
}

TEST(ProbesSection, AColumnTakesAValueThatTheProbeFinds) {
  EXPECT_THAT(problem_of_probes(file_with("probes: [feature-norms]\n", "probe: feature-norms/lats")),
              testing::AllOf(
                  HasSubstr("probe feature-norms has no value 'lats'; expected embedding, last or largest"),
                  HasSubstr("did you mean 'last'?")));
  const auto file = [](const std::string& sizes, const std::string& value) {
    return file_with("probes: [{name: accuracy-by-resolution" + sizes + "}]\n",
                     "probe: accuracy-by-resolution/" + value);
  };
  EXPECT_THAT(problem_of_probes(file("", "top1")), HasSubstr("expected top1-SIZE, top5-SIZE or loss-SIZE"));
  EXPECT_THAT(problem_of_probes(file("", "top1-x")), HasSubstr("has no value 'top1-x'"));
  EXPECT_THAT(problem_of_probes(file(", sizes: [24, 32]", "top1-64")),
              HasSubstr("expected top1-24, top1-32, "));
  const auto accuracy = parse_sweep(file("", "top1-64"), "f").table.columns[1];
  EXPECT_EQ(accuracy.unit, protocol::Unit::kPercent);
  EXPECT_EQ(accuracy.better, protocol::Better::kHigher);
  EXPECT_EQ(parse_sweep(file(", sizes: [24]", "loss-24, better: none"), "f").table.columns[1].better,
            protocol::Better::kNone);
}

TEST(ProbesSection, OneProbeWithSeveralSettings) {
  const std::string probes = "probes: [attention, {name: attention, images: 8}]\n";
  const auto source = [&](const std::string& column) {
    return parse_sweep(file_with(probes, "probe: " + column), "f").table.columns[1].source;
  };
  EXPECT_EQ(source("attention/entropy"), "probe:attention/entropy");
  EXPECT_EQ(source("'attention(images=8)/entropy'"), "probe:attention(images=8)/entropy");
  const std::string both = "probes: [{name: attention, images: 2}, {name: attention, images: 8}]\n";
  EXPECT_THAT(
      problem_of_probes(file_with(both, "probe: attention/entropy")),
      HasSubstr("probes does not list 'attention'; expected attention(images=2) or attention(images=8)"));
}

TEST(ProbesSection, ACommandSaysWhatItFoundByItself) {
  const std::string command = R"(ablate: 1
name: mine
command: {argv: [python3, train.py]}
rows: [{id: a}]
)",
                    table = "table: {columns: [{name: x, probe: my-own/x}]}\n";
  EXPECT_EQ(parse_sweep(command + table, "f").table.columns[0].source, "probe:my-own/x");
  EXPECT_THAT(problem_of_probes(command + "probes: [attention]\n" + table),
              HasSubstr("which sends probe events itself"));
}

}  // namespace
}  // namespace abl::sweeps
