// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "config/document/trial_document.h"
#include "protocol/checkpoint_files.h"
#include "sweeps/other_sweeps.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A sweep of small models on CIFAR-10 with these rows.
std::string chained_sweep(const std::string& rows, const std::string& seeds = "[0, 1]") {
  return fmt::format(R"(ablate: 1
name: chained
base:
  model: {{preset: simple-vit-nano}}
  data: {{name: cifar10}}
  recipe: {{use: cifar-lite}}
rows:
{}
seeds: {}
)",
                     rows, seeds);
}
constexpr const char* kTwoRows = R"(  - {id: a}
  - {id: b, set: {data.image_size: 48, recipe.lr: 1e-4}, from: {row: a}})";

SweepSpec parsed(const std::string& text) { return parse_sweep(text, "sweep.yaml"); }

const TrialSpec& trial_of(const std::vector<TrialSpec>& trials, int row, std::int64_t seed) {
  for (const TrialSpec& trial : trials)
    if (trial.row == row && trial.seed == seed) return trial;
  throw std::logic_error{"no such trial"};
}

std::string problem_with(const std::string& text) {
  try {
    parsed(text);
  } catch (const SweepFileError& error) {
    EXPECT_EQ(error.problems().size(), 1u) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was wrong with\n" << text;
  return {};
}

TEST(ChainsTest, ATrialNamesTheVeryTrialOfItsSeedWhoseWeightsItTakes) {
  const auto trials = expand(parsed(chained_sweep(kTwoRows)));
  ASSERT_EQ(trials.size(), 4u);
  for (const std::int64_t seed : {0, 1}) {
    const TrialSpec &a = trial_of(trials, 0, seed), &b = trial_of(trials, 1, seed);
    EXPECT_TRUE(a.sources.empty());
    ASSERT_EQ(b.sources.size(), 1u);
    EXPECT_EQ(&trials[b.sources[0].trial], &a);
    EXPECT_EQ(b.sources[0].name, "best-of-" + a.config_hash);
    EXPECT_EQ(nlohmann::json::parse(b.config).at("recipe").at("start_weights"), b.sources[0].name);
    EXPECT_EQ(b.config_hash, config::config_hash(b.config));
    EXPECT_TRUE(protocol::names_trial(b.sources[0].name));
  }
}

TEST(ChainsTest, WhatItStartsFromIsPartOfATrialsIdentityThroughTheWholeChain) {
  constexpr const char* kThree = R"(  - {{id: a, set: {{recipe.lr: {}}}}}
  - {{id: b, set: {{recipe.lr: 1e-4}}, from: {{row: a}}}}
  - {{id: c, set: {{recipe.lr: 1e-5}}, from: {{row: b, take: {}}}}})";
  const auto hash = [&](const std::string& lr, const std::string& take) {
    return trial_of(expand(parsed(chained_sweep(fmt::format(kThree, lr, take)))), 2, 0).config_hash;
  };
  EXPECT_EQ(hash("1e-3", "best"), hash("0.001", "best"));
  EXPECT_NE(hash("1e-3", "best"), hash("2e-3", "best")) << "of two rows before";
  EXPECT_NE(hash("1e-3", "best"), hash("1e-3", "last"));
}

TEST(ChainsTest, EqualChainsOfOtherSweepsAreTheSameTrialsWhateverTheirRowsAreCalled) {
  const auto here = expand(parsed(chained_sweep(kTwoRows)));
  const auto there = expand(parsed(chained_sweep(
      R"(  - {id: fine, set: {recipe.lr: 1e-4, data.image_size: 48}, from: {row: pre, take: best}}
  - {id: pre})",
      "[1]")));
  EXPECT_EQ(trial_of(here, 1, 1).config_hash, trial_of(there, 0, 1).config_hash);
}

TEST(ChainsTest, ARowWithoutASourceKeepsTheIdentityThatItHad) {
  const auto chained = expand(parsed(chained_sweep(kTwoRows)));
  const auto alone = expand(parsed(chained_sweep("  - {id: a}")));
  EXPECT_EQ(trial_of(chained, 0, 0).config_hash, trial_of(alone, 0, 0).config_hash);
}

TEST(ChainsTest, ASeedOfTheSourceMayBeFixed) {
  const SweepSpec spec = parsed(chained_sweep("  - {id: a}\n  - {id: b, from: {row: a, seed: 1}}"));
  const auto trials = expand(spec);
  EXPECT_EQ(trial_of(trials, 1, 0).sources[0].name, trial_of(trials, 1, 1).sources[0].name);
  EXPECT_EQ(trial_of(trials, 1, 0).sources[0].name, "best-of-" + trial_of(trials, 0, 1).config_hash);
  EXPECT_NE(trial_of(trials, 1, 0).config_hash, trial_of(trials, 1, 1).config_hash);
  EXPECT_NE(spec.canonical, parsed(chained_sweep("  - {id: a}\n  - {id: b, from: {row: a}}")).canonical);
  EXPECT_NE(spec.canonical,
            parsed(chained_sweep("  - {id: a}\n  - {id: b, from: {row: a, seed: 0}}")).canonical);
}

TEST(ChainsTest, ACorrectionThatTouchesASourceTouchesWhatStartsFromIt) {
  // result version 8: parts of a batch in bf16
  const SweepSpec spec =
      parsed(chained_sweep(R"(  - {id: a, set: {recipe.precision: bf16, recipe.accumulate: 2}}
  - {id: b, from: {row: a}}
  - {id: c, from: {row: b}}
  - {id: d})"));
  EXPECT_GT(spec.rows[0].result_version, spec.rows[3].result_version);
  EXPECT_EQ(spec.rows[1].result_version, spec.rows[0].result_version);
  EXPECT_EQ(spec.rows[2].result_version, spec.rows[0].result_version);
}

TEST(ChainsTest, RowsOfFactorsFollowTheRowOfTheirLevels) {
  const SweepSpec spec = parsed(chained_sweep(R"(  - {id: a}
  - {id: b, set: {recipe.epochs: 2}, from: {row: a}}
factors:
  recipe.lr: [0.001, 0.002])"));
  ASSERT_EQ(spec.rows.size(), 4u);
  for (const Row& row : spec.rows)
    for (const RowSource& source : row.sources)
      EXPECT_EQ(row.id.substr(1), spec.rows[static_cast<std::size_t>(source.row)].id.substr(1));
}

TEST(ChainsTest, ARowFromWhichOthersStartMayHaveDataOfItsOwn) {
  const SweepSpec spec = parsed(chained_sweep(R"(  - {id: a, set: {data.name: cifar100}}
  - {id: b, from: {row: a}})"));
  EXPECT_EQ(spec.data, "cifar10");
  EXPECT_EQ(spec.rows[0].data, "cifar100");
  EXPECT_THAT(problem_with(chained_sweep("  - {id: a, set: {data.name: cifar100}}\n  - {id: b}")),
              HasSubstr("a table has one data set"));
}

TEST(ChainsTest, RowsMayHaveDataOfTheirOwnWhereAColumnShowsIt) {
  const SweepSpec spec =
      parsed(chained_sweep("  - {id: a, set: {data.name: cifar100}}\n  - {id: b}") +
             "table: {columns: [{name: acc, metric: val/top1}, {name: data, setting: data.name}]}\n");
  EXPECT_EQ(spec.data, "");
  EXPECT_EQ(spec.rows[0].data, "cifar100");
  EXPECT_EQ(spec.rows[1].data, "cifar10");
}

TEST(ChainsTest, ATeacherIsTheModelOfItsRowOnTheImagesOfTheOther) {
  const SweepSpec spec = parsed(chained_sweep(R"(  - {id: t, set: {model.depth: 3}}
  - {id: s, set: {data.image_size: 48, recipe.distillation: hard}, teacher: {row: t, take: last}})"));
  ASSERT_EQ(spec.rows[1].sources.size(), 1u);
  EXPECT_EQ(spec.rows[1].sources[0].role, RowSource::Role::kTeacher);
  const auto trials = expand(spec);
  const auto recipe = nlohmann::json::parse(trial_of(trials, 1, 0).config).at("recipe");
  EXPECT_EQ(recipe.at("teacher"), "trial");
  EXPECT_EQ(recipe.at("teacher_weights"), "last-of-" + trial_of(trials, 0, 0).config_hash);
  EXPECT_TRUE(spec.rows[1].weights.empty()) << "no worker needs to have them";
  const auto teacher = nlohmann::json::parse(spec.rows[1].teacher);
  EXPECT_EQ(teacher.at("model").at("depth"), 3);
  EXPECT_EQ(teacher.at("data").at("image_size"), 48) << "what a plan counts";
  EXPECT_THAT(problem_with(chained_sweep("  - {id: t}\n  - {id: s, teacher: {row: t}}")),
              HasSubstr("recipe.distillation is none"));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: t, set: {data: {name: cifar100}}}\n  - {id: s, set: "
                                         "{recipe.distillation: hard}, teacher: {row: t}}")),
              HasSubstr("rows.s.teacher.row: row t: it has 100 classes and this row 10"));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: t}\n  - {id: s, set: {recipe.distillation: hard, "
                                         "recipe.teacher: simple-vit-ti}, teacher: {row: t}}")),
              HasSubstr("recipe.teacher names a teacher too"));
  EXPECT_THAT(
      problem_with(chained_sweep("  - {id: s, set: {recipe.distillation: hard, recipe.teacher: trial, "
                                 "recipe.teacher_weights: w}}")),
      HasSubstr("expected a preset, or teacher: {row: ID}"));
}

TEST(ChainsTest, WhatCannotBeAChainIsAProblemWithItsPlace) {
  EXPECT_THAT(
      problem_with(chained_sweep("  - {id: alpha}\n  - {id: b, from: {row: alpah}}")),
      AllOf(HasSubstr("sweep.yaml:9:25: rows.b.from.row: unknown row 'alpah'"), HasSubstr("'alpha'")));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: a, from: {row: b}}\n  - {id: b, from: {row: a}}")),
              AllOf(HasSubstr("rows.b.from.row: rows that wait for each other: b ← a ← b")));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: a, from: {row: a}}")),
              HasSubstr("rows that wait for each other: a ← a"));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: a}\n  - {id: b, from: {row: a, take: worst}}")),
              AllOf(HasSubstr("rows.b.from.take"), HasSubstr("best")));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: a}\n  - {id: b, from: {row: a, seed: 7}}")),
              HasSubstr("rows.b.from.seed: 7 is not one of the sweep's seeds; expected 0, 1"));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: a}\n  - {id: b, from: {take: best}}")),
              HasSubstr("rows.b.from.row: missing"));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: a, set: {model.depth: 3}}\n  - {id: b, from: {row: a}}")),
              AllOf(HasSubstr("rows.b.from.row: row a: model.depth is 3 there"), HasSubstr("here")));
  EXPECT_THAT(problem_with(chained_sweep("  - {id: a, not_trained: {kind: cited, why: of another paper}}\n"
                                         "  - {id: b, from: {row: a}}")),
              HasSubstr("rows.b.from.row: row a is not trained"));
  EXPECT_THAT(
      problem_with(chained_sweep("  - {id: a}\n  - {id: b, set: {recipe.start_weights: w}, from: {row: a}}")),
      HasSubstr("recipe.start_weights names weights too"));
  EXPECT_THAT(problem_with(chained_sweep(fmt::format(
                  "  - {{id: a, set: {{recipe.start_weights: best-of-{}}}}}", std::string(64, 'a')))),
              HasSubstr("stands for a trial's weights"));
  EXPECT_THAT(
      problem_with("ablate: 1\nname: c\ncommand: {argv: [x]}\nrows:\n  - {id: a}\n"
                   "  - {id: b, from: {row: a}}\ntable: {columns: [{name: m, metric: m, better: higher}]}\n"),
      HasSubstr("a command takes no weights"));
}

TEST(ChainsTest, ALongChainIsRefusedAndNotFollowedWithoutEnd) {
  std::string rows = "  - {id: r0}";
  for (int i = 1; i < 3000; ++i) rows += fmt::format("\n  - {{id: r{}, from: {{row: r{}}}}}", i, i - 1);
  EXPECT_THROW(parsed(chained_sweep(rows, "1")), SweepFileError);
}

/// A file of `files`, with the others that it names.
std::string whole(const std::map<std::string, std::string>& files, const std::string& name) {
  return with_sources(files.at(name), name, [&](const std::string& key, bool) {
    if (!files.contains(key)) throw Error{Code::kNotFound, "unknown sweep file '" + key + "'"};
    return files.at(key);
  });
}

std::string problem_of(const std::map<std::string, std::string>& files) {
  try {
    parse_sweep(whole(files, "top.yaml"), "top.yaml");
  } catch (const SweepFileError& error) {
    EXPECT_EQ(error.problems().size(), 1u) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was wrong";
  return {};
}

const std::string kPretrain = chained_sweep(R"(  - {id: t, set: {recipe.lr: 1e-3}}
  - {id: a, set: {recipe.lr: 2e-4}, from: {row: t, take: last}})");
std::string fine_tune(const std::string& from) {
  return chained_sweep("  - {id: b, set: {data.image_size: 48, recipe.lr: 1e-4}, from: " + from + "}");
}

TEST(OtherSweepsTest, ARowOfAnotherFileIsTheVeryTrialThatItsOwnSweepTrains) {
  const std::map<std::string, std::string> files{{"top.yaml", fine_tune("{sweep: pretrain.yaml, row: a}")},
                                                 {"pretrain.yaml", kPretrain}};
  const SweepSpec spec = parse_sweep(whole(files, "top.yaml"), "top.yaml");
  ASSERT_EQ(spec.rows.size(), 3u);
  EXPECT_EQ(spec.rows[0].id, "b");
  EXPECT_EQ(spec.rows[1].id, "pretrain.yaml:a");
  EXPECT_EQ(spec.rows[2].id, "pretrain.yaml:t");
  EXPECT_EQ(spec.rows[2].sweep, "pretrain.yaml");
  const auto own = expand(parsed(kPretrain)), trials = expand(spec);
  ASSERT_EQ(trials.size(), 6u);
  for (const std::int64_t seed : {0, 1}) {
    const TrialSpec &b = trial_of(trials, 0, seed), &a = trials[b.sources.at(0).trial];
    EXPECT_EQ(a.config_hash, trial_of(own, 1, seed).config_hash);
    EXPECT_EQ(trials[a.sources.at(0).trial].config_hash, trial_of(own, 0, seed).config_hash);
    EXPECT_EQ(b.sources[0].name, "best-of-" + a.config_hash);
  }
  // as if all were rows of one file
  const auto one = expand(parsed(chained_sweep(R"(  - {id: t, set: {recipe.lr: 1e-3}}
  - {id: a, set: {recipe.lr: 2e-4}, from: {row: t, take: last}}
  - {id: b, set: {data.image_size: 48, recipe.lr: 1e-4}, from: {row: a}})")));
  EXPECT_EQ(trial_of(one, 2, 1).config_hash, trial_of(trials, 0, 1).config_hash);
}

TEST(OtherSweepsTest, WhatIsSubmittedSaysItselfWhatItStartsFromAndKeepsItsLines) {
  const std::string top = fine_tune("{sweep: pretrain.yaml, row: a}");
  const std::string text = whole({{"top.yaml", top}, {"pretrain.yaml", kPretrain}}, "top.yaml");
  EXPECT_TRUE(text.starts_with(top));
  EXPECT_EQ(whole({{"top.yaml", text}}, "top.yaml"), text) << "nothing is to be read for it any more";
  EXPECT_EQ(whole({{"top.yaml", kPretrain}}, "top.yaml"), kPretrain);
}

TEST(OtherSweepsTest, OnlyTheSeedsThatAreTakenAreTrainedOfAnotherSweepsRows) {
  const std::map<std::string, std::string> files{
      {"top.yaml", fine_tune("{sweep: pretrain.yaml, row: a, seed: 1}")}, {"pretrain.yaml", kPretrain}};
  const auto trials = expand(parse_sweep(whole(files, "top.yaml"), "top.yaml"));
  ASSERT_EQ(trials.size(), 4u);
  for (const TrialSpec& trial : trials) EXPECT_TRUE(trial.row == 0 || trial.seed == 1);
}

TEST(OtherSweepsTest, FilesMayNameEachOtherAsLongAsNoRowsWaitForEachOther) {
  const std::string other = chained_sweep(R"(  - {id: x, from: {sweep: top.yaml, row: first}}
  - {id: y, set: {recipe.lr: 2e-3}})");
  const auto top = [](const std::string& row) {
    return chained_sweep("  - {id: first, from: {sweep: other.yaml, row: " + row + "}}");
  };
  EXPECT_EQ(
      parse_sweep(whole({{"top.yaml", top("y")}, {"other.yaml", other}}, "top.yaml"), "top.yaml").rows.size(),
      2u);
  EXPECT_THAT(problem_of({{"top.yaml", top("x")}, {"other.yaml", other}}),
              AllOf(testing::StartsWith("top.yaml:8:"), HasSubstr("wait for each other"),
                    HasSubstr("top.yaml:first ← other.yaml:x ← top.yaml:first;")));
}

TEST(OtherSweepsTest, APathIsOneFromTheFolderOfTheFileThatNamesIt) {
  const std::map<std::string, std::string> files{
      {"top.yaml", fine_tune("{sweep: sub/middle.yaml, row: m}")},
      {"sub/middle.yaml",
       chained_sweep("  - {id: m, set: {recipe.lr: 3e-4}, from: {sweep: ../first.yaml, row: t}}")},
      {"first.yaml", kPretrain}};
  EXPECT_EQ(parse_sweep(whole(files, "top.yaml"), "top.yaml").rows.size(), 3u);
  EXPECT_EQ(key_of_sweep("sub/middle.yaml", "../first.yaml"), "first.yaml");
  EXPECT_EQ(key_of_sweep("sub/middle.yaml", "msf/table-1"), "msf/table-1");
}

TEST(OtherSweepsTest, WhatCannotBeTakenIsOneLineWithThePlaceInThisFile) {
  const auto said = [](const std::string& from, const std::string& other) {
    return problem_of({{"top.yaml", fine_tune(from)}, {"pretrain.yaml", other}});
  };
  EXPECT_THAT(said("{sweep: pretrain.yaml, row: aa}", kPretrain),
              AllOf(testing::StartsWith("top.yaml:8:"), HasSubstr("sweep pretrain.yaml has no row 'aa'"),
                    HasSubstr("did you mean 'a'?")));
  EXPECT_THAT(said("{sweep: pretrein.yaml, row: a}", kPretrain),
              AllOf(testing::StartsWith("top.yaml:8:"),
                    HasSubstr("rows.b.from.sweep: unknown sweep file 'pretrein.yaml'")));
  EXPECT_THAT(said("{sweep: pretrain.yaml, row: a}",
                   chained_sweep("  - {id: a, not_trained: {kind: task, why: detection}}")),
              AllOf(testing::StartsWith("top.yaml:8:"), HasSubstr("row pretrain.yaml:a is not trained")));
  EXPECT_THAT(
      said("{sweep: pretrain.yaml, row: a}", chained_sweep("  - {id: a, set: {recipe.lr: fast}}")),
      AllOf(testing::StartsWith("top.yaml:8:"), HasSubstr("pretrain.yaml:8:"), HasSubstr("recipe.lr")));
  EXPECT_THAT(said("{sweep: pretrain.yaml, row: a}", "ablate: [1"),
              AllOf(testing::StartsWith("top.yaml:8:"), HasSubstr("pretrain.yaml:1:")));
  EXPECT_THAT(said("{sweep: pretrain.yaml, row: a}", R"(ablate: 1
name: program
command: {argv: [./train], folder: /tmp, version: "1"}
rows:
  - {id: a}
table: {columns: [{name: acc, metric: acc}]}
)"),
              HasSubstr("is of a command"));
  EXPECT_THAT(said("{sweep: pretrain.yaml, row: a}",
                   chained_sweep("  - {id: a}") +
                       "tune: {recipe.lr: {min: 1e-4, max: 1e-2, log: true}, budget: 4, metric: val/loss}\n"),
              HasSubstr("has 'tune': what its rows train is not known before"));
  EXPECT_THAT(said("{sweep: pretrain.yaml, row: a}",
                   chained_sweep("  - {id: a, set: {model.preset: simple-vit-ti}}")),
              HasSubstr("model.dim"));
}

TEST(OtherSweepsTest, AScaleHasRowsStartFromOthersThanTheFileDoes) {
  const std::string scale = R"(scale:
  name: small
  says: it starts from what is trained for it
  rules:
    - {why: small ones, when: {data.image_size: 48}, from: {sweep: start.yaml, row: x}}
    - {why: and those of this size, when: {data.image_size: 48}, from: {sweep: start.yaml, row: y}}
)";
  const std::map<std::string, std::string> files{
      {"top.yaml", fine_tune("{sweep: pretrain.yaml, row: a}") + scale},
      {"pretrain.yaml", kPretrain},
      {"start.yaml",
       chained_sweep("  - {id: x, set: {recipe.lr: 5e-4}}\n  - {id: y, set: {recipe.lr: 6e-4}}")}};
  const SweepSpec spec = parse_sweep(whole(files, "top.yaml"), "top.yaml");
  ASSERT_EQ(spec.rows.size(), 2u)
      << "the file's own is not trained for it, nor is what another rule took the place of";
  EXPECT_EQ(spec.rows[1].id, "start.yaml:y");
  const auto trials = expand(spec);
  const TrialSpec& b = trial_of(trials, 0, 0);
  ASSERT_EQ(b.sources.size(), 1u);
  EXPECT_EQ(b.sources[0].name, "best-of-" + trial_of(trials, 1, 0).config_hash);

  auto wrong = files;
  auto& top = wrong.at("top.yaml");
  top.replace(top.find("row: y}"), 7, "row: y, seed: 7}");
  EXPECT_THAT(problem_of(wrong),
              HasSubstr("scale.rules.2.from.seed: 7 is not one of the sweep's seeds; expected 0, 1"));
}

TEST(OtherSweepsTest, ATeacherOfAnotherSweepIsTheModelOfThatRow) {
  const std::map<std::string, std::string> files{
      {"top.yaml",
       chained_sweep(
           "  - {id: s, set: {recipe.distillation: hard}, teacher: {sweep: pretrain.yaml, row: a}}")},
      {"pretrain.yaml", kPretrain}};
  const SweepSpec spec = parse_sweep(whole(files, "top.yaml"), "top.yaml");
  EXPECT_FALSE(spec.rows[0].teacher.empty());
  EXPECT_THAT(spec.canonical, HasSubstr(R"("sweep":"pretrain.yaml")"));
}

}  // namespace
}  // namespace abl::sweeps
