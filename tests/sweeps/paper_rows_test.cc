// SPDX-License-Identifier: Apache-2.0
//
// What a sweep file says of a paper's table beside the rows that it trains.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPaperTable = R"(ablate: 1
name: paper-table
base:
  model: {preset: simple-vit-ti}
  data: {name: cifar10}
  recipe: {use: cifar-lite}
rows:
  - {id: small, group: Small, set: {}, paper: {acc: "70.1"}}
  - {id: small-msf, group: Small, set: {model.attention: {kernel: gaussian, probe: inside}}, paper: {acc: {text: "71.1", mark: bold}}}
  - {id: cited, group: Others, not_trained: {kind: cited, why: "reported by its authors"}, paper: {acc: {text: "69", mark: doubtful, why: "2.9 elsewhere"}}}
  - {id: dino, group: Others, not_trained: {kind: task, why: "self-supervision"}, set: {model.preset: simple-vit-s}}
seeds: 2
table:
  title: Models of two sizes
  baseline: {Small: small}
  notes: ["Read it with care.", "Twice."]
  columns:
    - {name: acc, metric: val/top1, digits: 1, cut: true}
    - {name: delta, printed: true}
)";

SweepSpec parse_paper(const std::string& text) { return parse_sweep(text, "sweep.yaml"); }

TEST(PaperRowsTest, ARowThatIsNotTrainedHasNoTrialAndKeepsItsPlace) {
  const SweepSpec spec = parse_paper(kPaperTable);
  ASSERT_EQ(spec.rows.size(), 4u);
  std::vector<int> rows;
  for (const TrialSpec& trial : expand(spec)) rows.push_back(trial.row);
  EXPECT_THAT(rows, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(spec.rows[2].not_trained, protocol::NotTrained::kCited);
  EXPECT_EQ(spec.rows[2].not_trained_why, "reported by its authors");
  EXPECT_EQ(spec.data, "cifar10");
}

TEST(PaperRowsTest, TheModelOfARowThatIsNotTrainedIsCountedWhereTheFileSetsIt) {
  const SweepSpec spec = parse_paper(kPaperTable);
  EXPECT_THAT(spec.rows[2].model, IsEmpty());
  EXPECT_THAT(spec.rows[3].model, HasSubstr("384"));
  EXPECT_THAT(spec.rows[3].config_hash, IsEmpty()) << "nothing of it is run";
  EXPECT_EQ(models_of(spec).size(), 3u);
}

TEST(PaperRowsTest, EachGroupHasItsBaseline) {
  const SweepSpec spec = parse_paper(kPaperTable);
  EXPECT_THAT(spec.table.baseline, IsEmpty());
  EXPECT_EQ(spec.rows[0].baseline, "small");
  EXPECT_EQ(spec.rows[1].baseline, "small");
  EXPECT_THAT(spec.rows[2].baseline, IsEmpty());
}

TEST(PaperRowsTest, ValuesBearThePapersMarks) {
  const SweepSpec spec = parse_paper(kPaperTable);
  EXPECT_EQ(spec.rows[1].paper.at("acc"), "71.1");
  EXPECT_EQ(spec.rows[1].marks.at("acc").mark, protocol::Mark::kBold);
  EXPECT_EQ(spec.rows[2].marks.at("acc").why, "2.9 elsewhere");
  EXPECT_EQ(spec.table.columns[1].kind, Column::Kind::kPrinted);
  EXPECT_TRUE(spec.table.columns[0].cut);
  EXPECT_THAT(spec.table.notes, ElementsAre("Read it with care.", "Twice."));
}

TEST(PaperRowsTest, AllOfItIsInTheCanonicalText) {
  const auto canonical = nlohmann::json::parse(parse_paper(kPaperTable).canonical);
  EXPECT_EQ(canonical["rows"]["cited"].dump(),
            R"({"group":"Others","label":"cited","marks":{"acc":{"mark":"doubtful","why":"2.9 elsewhere"}},)"
            R"("not_trained":{"kind":"cited","why":"reported by its authors"},"paper":{"acc":"69"}})");
  EXPECT_EQ(canonical["table"]["baselines"]["Small"], "small");
  EXPECT_EQ(canonical["table"]["title"], "Models of two sizes");
  EXPECT_EQ(canonical["table"]["columns"][0]["cut"], true);
  EXPECT_FALSE(canonical["table"]["columns"][1].contains("cut"));
}

TEST(PaperRowsTest, AFileOfPrintedValuesAloneNeedsNoBase) {
  const SweepSpec spec = parse_paper(R"(ablate: 1
name: detection
rows:
  - {id: a, not_trained: {kind: task, why: detection}, paper: {ap: "45"}}
table: {columns: [{name: ap, printed: true}]}
)");
  EXPECT_THAT(expand(spec), IsEmpty());
  EXPECT_EQ(spec.rows[0].paper.at("ap"), "45");
}

constexpr const char* kTransfer = R"(ablate: 1
name: transfer
base:
  model: {preset: simple-vit-ti}
  data: {name: cifar10, image_size: 224}
  recipe: {use: cifar-lite}
rows:
  - {id: a, group: A, set: {}, paper: {params: "5.65", acc: {cifar10: "98.0", stl10: {text: "97.1", mark: bold}}}}
  - {id: b, group: A, set: {model.attention: {kernel: gaussian, probe: inside}}, paper: {acc: {stl10: "97.5"}}}
  - {id: c, not_trained: {kind: cited, why: elsewhere}, paper: {acc: {cifar10: "99.1"}}}
factors:
  data.name: [cifar10, stl10]
seeds: 3
table:
  baseline: a
  columns: [{name: acc, metric: val/top1}, {name: params, count: params.weights}]
)";

TEST(RowsAndFactorsTest, EachRowStandsWithEachCombination) {
  const SweepSpec spec = parse_paper(kTransfer);
  std::vector<std::string> ids;
  for (const Row& row : spec.rows) ids.push_back(row.id);
  EXPECT_THAT(ids, ElementsAre("a,name=cifar10", "a,name=stl10", "b,name=cifar10", "b,name=stl10",
                               "c,name=cifar10", "c,name=stl10"));
  EXPECT_EQ(spec.rows[1].label, "a, name=stl10");
  EXPECT_EQ(spec.rows[1].group, "A");
  EXPECT_EQ(spec.rows[1].data, "stl10");
  EXPECT_THAT(spec.data, IsEmpty()) << "they have two";
  EXPECT_EQ(expand(spec).size(), 12u);
}

TEST(RowsAndFactorsTest, PaperValuesAreOfALevelOrOfAll) {
  const SweepSpec spec = parse_paper(kTransfer);
  EXPECT_EQ(spec.rows[0].paper, (std::map<std::string, std::string>{{"acc", "98.0"}, {"params", "5.65"}}));
  EXPECT_EQ(spec.rows[1].paper, (std::map<std::string, std::string>{{"acc", "97.1"}, {"params", "5.65"}}));
  EXPECT_EQ(spec.rows[1].marks.at("acc").mark, protocol::Mark::kBold);
  EXPECT_FALSE(spec.rows[2].paper.contains("acc"));
}

TEST(RowsAndFactorsTest, TheBaselineIsTheRowOfTheSameLevels) {
  const SweepSpec spec = parse_paper(kTransfer);
  EXPECT_EQ(spec.rows[3].baseline, "a,name=stl10");
  EXPECT_EQ(spec.rows[2].baseline, "a,name=cifar10");
}

TEST(RowsAndFactorsTest, AnUnknownLevelOfAPaperValueIsNamed) {
  std::string text = kTransfer;
  text.replace(text.find("stl10: {text"), 5, "stl01");
  try {
    parse_paper(text);
    ADD_FAILURE();
  } catch (const SweepFileError& error) {
    EXPECT_STREQ(
        error.what(),
        "sweep.yaml:8:79: rows.a.paper.acc: unknown level 'stl01'; expected cifar10 or stl10; did you "
        "mean 'stl10'?");
  }
}

}  // namespace
}  // namespace abl::sweeps
