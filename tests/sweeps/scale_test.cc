// SPDX-License-Identifier: Apache-2.0
#include "sweeps/scale.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "tests/sweeps/shipped.h"

namespace abl::sweeps {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kStudy = R"(ablate: 1
name: study
base:
  model: {preset: simple-vit-s, attention: {kernel: gaussian, probe: inside, elsewhere: {kernel: dot}, layers: 1-12}}
  data: {name: imagenet-1k, image_size: 224}
  recipe: {use: msf-imagenet, epochs: 100}
rows:
  - {id: all, set: {}}
  - {id: late, set: {model.attention.layers: 7-12}}
  - {id: later, set: {model.attention.layers: 8-12}}
  - {id: orig, set: {model.attention.layers: none}}
seeds: 3
table: {columns: [{name: layers, setting: model.attention.layers}, {name: acc, metric: val/top1}]}
)";

constexpr const char* kSmallScale = R"(scale:
  name: small
  says: "CIFAR-10, 4 layers"
  rules:
    - {why: a small set, drop: [data, recipe], set: {data: {name: cifar10}, recipe: {use: cifar-lite}}}
    - why: a third of the layers
      when: {model.preset: simple-vit-s}
      drop: model.preset
      set: {model: {family: simple-vit, dim: 64, depth: 4, heads: 2, dim_head: 32, patch: 4}}
      layers: {key: model.attention.layers, from: 12, to: 4}
)";

/// The study with one text in place of another.
std::string study_with(const std::string& now, const std::string& was) {
  std::string text = kStudy;
  return text.replace(text.find(was), was.size(), now);
}

SweepSpec parse_study(const std::string& text) { return parse_sweep(text, "study.yaml"); }

/// Every problem of a text, a line each.
std::string problems_of_study(const std::string& text) {
  try {
    parse_study(text);
  } catch (const SweepFileError& error) {
    return error.what();
  }
  return "";
}

TEST(ScaleTest, ChangesWhatRowsRunAndNothingThatTheyAreCalled) {
  const SweepSpec spec = parse_study(std::string{kStudy} + kSmallScale);
  EXPECT_EQ(spec.name, "study-small");
  EXPECT_EQ(spec.table.scale, "small");
  EXPECT_EQ(spec.data, "cifar10");
  ASSERT_EQ(spec.rows.size(), 4u);
  EXPECT_THAT(spec.rows[0].config, HasSubstr(R"("depth":4)"));
  EXPECT_THAT(spec.rows[0].config, Not(HasSubstr("imagenet")));
  EXPECT_EQ(spec.rows[1].id, "late");
  EXPECT_EQ(spec.seeds.size(), 3u);
  EXPECT_EQ(parse_study(std::string{kStudy} + "resources: {gpus: 8}\n" + kSmallScale).gpus, 0)
      << "any slot will do";
}

TEST(ScaleTest, PlacesLayersInProportionAndShowsWhereTheyStand) {
  const SweepSpec spec = parse_study(std::string{kStudy} + kSmallScale);
  EXPECT_EQ(spec.rows[0].set.at("model.attention.layers"), "1-4");
  EXPECT_EQ(spec.rows[1].set.at("model.attention.layers"), "3-4");
  EXPECT_EQ(spec.rows[3].set.at("model.attention.layers"), "none");
}

TEST(ScaleTest, TellsBelowTheTableWhatItIsAndWhichRowsItMakesTheSame) {
  const SweepSpec spec = parse_study(std::string{kStudy} + kSmallScale);
  EXPECT_THAT(spec.table.notes, ElementsAre("scale small, not the paper's own: CIFAR-10, 4 layers",
                                            "rows late, later are the same at this scale"));
  EXPECT_THAT(spec.canonical, HasSubstr(R"("scale":"small")"));
}

TEST(ScaleTest, RowsThatAreOneModelWithoutItAreNotSaidToBeMadeSo) {
  EXPECT_THAT(parse_study(study_with("7-12", "8-12") + kSmallScale).table.notes, testing::SizeIs(1));
}

TEST(ScaleTest, ALayerThatIsLessThanHalfOfAnyIsToldAndNotTrained) {
  const SweepSpec spec = parse_study(study_with("'12'", "8-12") + kSmallScale);
  EXPECT_EQ(spec.rows[2].not_trained, protocol::NotTrained::kScale);
  EXPECT_EQ(spec.rows[2].not_trained_why, "layers 12 of 12 are less than half of any layer of 4");
  EXPECT_EQ(expand(spec).size(), 9u) << "three rows with three seeds";
}

TEST(ScaleTest, ARowThatItCannotHaveIsToldAndNotTrained) {
  const SweepSpec spec = parse_study(std::string{kStudy} + kSmallScale +
                                     "    - {when: {model.attention.layers: none}, cannot: too plain}\n");
  EXPECT_EQ(spec.rows[3].not_trained, protocol::NotTrained::kScale);
  EXPECT_EQ(spec.rows[3].not_trained_why, "too plain");
  EXPECT_FALSE(spec.rows[0].not_trained);
}

TEST(ScaleTest, ARowThatTakesTheWeightsOfOneThatItCannotHaveIsNotTrainedEither) {
  const std::string chained =
      study_with("- {id: orig, from: {row: later}, set: {model.attention.layers: none}}",
                 "- {id: orig, set: {model.attention.layers: none}}");
  const SweepSpec spec =
      parse_study(chained + kSmallScale + "    - {when: {model.attention.layers: 8-12}, cannot: too late}\n");
  EXPECT_EQ(spec.rows[3].not_trained, protocol::NotTrained::kScale);
  EXPECT_EQ(spec.rows[3].not_trained_why,
            "it takes the weights of row later, which is not trained: too late");
}

TEST(ScaleTest, ARuleThatHoldsForNoRowIsAProblem) {
  const std::string rule = "    - {why: none, when: {model.preset: simple-vit-b}, set: {model.depth: 2}}\n";
  EXPECT_EQ(
      problems_of_study(std::string{kStudy} + kSmallScale + rule),
      "study.yaml:24:7: scale.rules.3: holds for no row; expected settings in `when` that some row has");
  const std::string shared = std::string{kSmallScale}.replace(0, 6, "scale:\n  from: msf/scales.yaml");
  EXPECT_EQ(problems_of_study(std::string{kStudy} + shared + rule), "") << "it may be for another table";
}

TEST(ScaleTest, ARowThatIsInvalidAtItIsAProblemThatNamesTheScale) {
  const std::string row = study_with("set: {model.attention.groups: 3}", "set: {}");
  EXPECT_THAT(problems_of_study(row + kSmallScale),
              HasSubstr("model.attention.groups: 3 groups do not divide"));
  EXPECT_THAT(problems_of_study(row + kSmallScale), HasSubstr(", at scale small"));
  EXPECT_EQ(problems_of_study(row), "");
}

TEST(ScaleTest, WhatIsWrongWithItIsSaidWithItsPlace) {
  const auto problems = [](const std::string& section) { return problems_of_study(kStudy + section + "\n"); };
  EXPECT_THAT(
      problems("scale: {name: x, says: y, rules: [{why: z}]}"),
      HasSubstr("scale.rules.1: changes nothing; expected drop, set, layers, from, teacher or cannot"));
  EXPECT_THAT(problems("scale: {name: x, says: y, rules: [{set: {modle.depth: 4}, why: z}]}"),
              HasSubstr("'modle.depth' is no key of a trial; expected one below model, data, task or recipe; "
                        "did you mean 'model'?"));
  EXPECT_THAT(problems("scale: {name: x, says: y}"),
              HasSubstr("scale.rules: missing; expected a list of rules"));
}

constexpr const char* kTwoScales = R"(# two of them
scales:
  cifar:
    says: small photographs
    rules:
      - {why: they are small, drop: data, set: {data: {name: cifar10}}}
  demo:
    says: drawn images
    seeds: 2
    rules:
      - {why: no files, drop: data, set: {data: {name: shapes}}}
)";

TEST(WithScaleTest, PutsTheSectionBehindTheFileWhoseLinesStay) {
  const std::string text = with_scale(kStudy, "study.yaml", kTwoScales, "/papers/msf/scales.yaml", "cifar");
  EXPECT_EQ(text, std::string{kStudy} + R"(scale:
    name: cifar
    from: msf/scales.yaml
    says: small photographs
    rules:
      - {why: they are small, drop: data, set: {data: {name: cifar10}}}
)");
  const std::string demo = with_scale(kStudy, "study.yaml", kTwoScales, "scales.yaml", "demo");
  EXPECT_THAT(demo, HasSubstr("says: drawn images\n    seeds: 2\n"));
  EXPECT_THAT(demo, Not(HasSubstr("small photographs")));
}

TEST(WithScaleTest, AnUnknownScaleIsAnsweredWithTheNearest) {
  try {
    with_scale(kStudy, "study.yaml", kTwoScales, "scales.yaml", "cifr");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "scales.yaml: no scale 'cifr'; expected full, cifar or demo; did you mean 'cifar'?");
  }
}

TEST(WithScaleTest, AFileHasOneScaleAndACommandNone) {
  const std::string own = "ablate: 1\nname: own\ncommand: {argv: [x]}\n";
  EXPECT_THROW(
      with_scale(std::string{kStudy} + kSmallScale, "study.yaml", kTwoScales, "scales.yaml", "cifar"), Error);
  EXPECT_THROW(with_scale(own, "own.yaml", kTwoScales, "scales.yaml", "cifar"), Error);
}

TEST(WithSeedsTest, TakesThePlaceOfTheFilesAndOfTheScales) {
  EXPECT_EQ(parse_study(with_seeds(kStudy, "study.yaml", 5)).seeds,
            (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  const std::string list = study_with("seeds: [7, 8]  # two", "seeds: 3");
  EXPECT_EQ(with_seeds(list, "study.yaml", 3), kStudy);
  const std::string demo =
      with_scale(with_seeds(list, "study.yaml", 3), "study.yaml", kTwoScales, "scales.yaml", "demo", true);
  EXPECT_EQ(parse_study(demo).seeds.size(), 3u);
  EXPECT_THROW(with_seeds(study_with("seeds:\n  - 1\n  - 2", "seeds: 3"), "study.yaml", 3), Error);
}

/// Every scale of a paper with every of its tables.
class ShippedScalesTest : public testing::TestWithParam<const char*> {
 protected:
  const fs::path folder = fs::path{ABLATE_SOURCE_DIR} / "sweeps/papers" / GetParam();
  const std::string scales = read_file(folder / "scales.yaml");

  std::vector<fs::path> tables() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator{folder})
      if (is_paper_table(entry.path())) all.push_back(entry.path());
    return all;
  }
  /// And what they take weights from, where that is not of a scale alone.
  std::vector<fs::path> tables_and_sources() const {
    auto all = tables();
    for (const auto& entry : fs::directory_iterator{folder}) {
      const auto name = entry.path().filename().string();
      if (!is_paper_table(entry.path()) && name != "scales.yaml" && !name.starts_with("teacher-") &&
          !name.starts_with("start-"))
        all.push_back(entry.path());
    }
    return all;
  }
  std::string at_scale(const fs::path& table, const std::string& scale) const {
    return with_shipped(
        with_scale(read_file(table), table.string(), scales, (folder / "scales.yaml").string(), scale), table,
        scale);
  }
  /// Rows of other sweeps stand behind a table's own.
  static std::size_t own_rows(const SweepSpec& spec) {
    return static_cast<std::size_t>(std::ranges::count(spec.rows, "", &Row::sweep));
  }
  /// A table of which no row is trained by anything is itself at every scale.
  static bool trains(const SweepSpec& spec) {
    return std::ranges::any_of(spec.rows, [](const Row& row) { return !row.not_trained; });
  }
};

TEST_P(ShippedScalesTest, EveryTableCanBeHadAtEveryScale) {
  for (const char* scale : {"cifar", "demo"})
    for (const fs::path& table : tables()) {
      try {
        const SweepSpec full = parse_sweep(with_shipped(read_file(table), table), table.string());
        if (!trains(full)) continue;
        const SweepSpec spec = parse_sweep(at_scale(table, scale), table.string());
        ASSERT_GE(spec.rows.size(), own_rows(full)) << table;
        ASSERT_EQ(own_rows(spec), own_rows(full)) << table;
        for (std::size_t i = 0; i < own_rows(spec); ++i) {
          EXPECT_EQ(spec.rows[i].id, full.rows[i].id);
          EXPECT_EQ(spec.rows[i].paper, full.rows[i].paper);
          if (full.rows[i].not_trained) {
            EXPECT_TRUE(spec.rows[i].not_trained) << table << " " << spec.rows[i].id;
          }
        }
        EXPECT_THAT(spec.doubts, testing::IsEmpty()) << table << " at " << scale;
      } catch (const SweepFileError& error) {
        ADD_FAILURE() << error.what();
      }
    }
}

TEST_P(ShippedScalesTest, EveryRuleHoldsForARowOfSomeTable) {
  for (const char* scale : {"cifar", "demo"}) {
    std::set<std::string> idle;
    bool first = true;
    for (const fs::path& table : tables_and_sources()) {
      if (!trains(parse_sweep(with_shipped(read_file(table), table), table.string()))) continue;
      std::string own = at_scale(table, scale);  // not shared: each rule is looked at
      const std::size_t from = own.rfind("\n    from: ", own.find("\nsources:\n"));
      own.erase(from, own.find('\n', from + 1) - from);
      std::set<std::string> here, both;
      try {
        parse_sweep(own, table.string());
      } catch (const SweepFileError& error) {
        for (const Problem& problem : error.problems()) here.insert(problem.field);
      }
      std::ranges::set_intersection(idle, here, std::inserter(both, both.end()));
      idle = std::exchange(first, false) ? here : both;
    }
    EXPECT_THAT(idle, testing::IsEmpty()) << scale;
  }
}

INSTANTIATE_TEST_SUITE_P(Papers, ShippedScalesTest, testing::Values("manifold-key", "msf", "sne", "xcit"),
                         [](const auto& paper) {
                           std::string name = paper.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(MsfScaleTest, TablesThatShareRowsShareTheirTrials) {
  const fs::path folder = fs::path{ABLATE_SOURCE_DIR} / "sweeps/papers/msf";
  const std::string scales = read_file(folder / "scales.yaml");
  std::set<std::string> distinct;
  std::size_t trials = 0;
  for (const char* table : {"table-1.yaml", "table-3.yaml", "table-4.yaml"}) {
    const SweepSpec spec =
        parse_sweep(with_scale(read_file(folder / table), table, scales, "msf/scales.yaml", "cifar"), table);
    for (const TrialSpec& trial : expand(spec)) {
      ++trials;
      distinct.insert(trial.config_hash);
    }
  }
  EXPECT_EQ(trials, 3u * (18 + 3 + 8));
  EXPECT_EQ(distinct.size(), 3u * (18 + 2 + 6)) << "the full model is in each, QKKKW in two";
}

}  // namespace
}  // namespace abl::sweeps
