// SPDX-License-Identifier: Apache-2.0
//
// The sweep files that come with the program, and those in its documentation.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "base/file.h"
#include "base/sha256.h"
#include "config/data/data_sets.h"
#include "config/tasks.h"
#include "protocol/embedded_data.h"
#include "protocol/metrics.h"
#include "sweeps/sweep_spec.h"
#include "tests/sweeps/shipped.h"

namespace abl::sweeps {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

SweepSpec parse_shipped(const std::string& path) {
  const fs::path file = fs::path{ABLATE_SOURCE_DIR} / path;
  return parse_sweep(with_shipped(read_file(file), file), path);
}

const Row& row(const SweepSpec& spec, const std::string& id) {
  const auto found = std::ranges::find(spec.rows, id, &Row::id);
  EXPECT_NE(found, spec.rows.end()) << id;
  return *found;
}

constexpr const char* kMsf[] = {"table-1", "table-2", "table-3", "table-4", "supplement-table-C"};

std::vector<SweepSpec> msf_tables() {
  std::vector<SweepSpec> specs;
  for (const char* table : kMsf)
    specs.push_back(parse_shipped(std::string{"sweeps/papers/msf/"} + table + ".yaml"));
  return specs;
}

TEST(MsfTablesTest, FiveFilesAreFiftyRowsAndFortyFourDistinctTrialsASeed) {
  std::size_t rows = 0;
  std::map<std::int64_t, std::set<std::string>> trials;
  for (const SweepSpec& spec : msf_tables()) {
    rows += spec.rows.size();
    EXPECT_THAT(spec.seeds, ElementsAre(0, 1, 2)) << spec.name;
    EXPECT_EQ(spec.gpus, 1) << spec.name;
    EXPECT_EQ(spec.table.paper_heading, "paper: ImageNet, 100 epochs") << spec.name;
    for (const TrialSpec& trial : expand(spec)) trials[trial.seed].insert(trial.config_hash);
  }
  EXPECT_EQ(rows, 50u);
  ASSERT_EQ(trials.size(), 3u);
  for (const auto& [seed, hashes] : trials) EXPECT_EQ(hashes.size(), 44u) << "seed " << seed;
}

TEST(MsfTablesTest, TheSameModelIsTheSameTrialInEveryTable) {
  const auto tables = msf_tables();
  const std::string msf = row(tables[0], "r").config_hash;
  EXPECT_EQ(row(tables[2], "msf").config_hash, msf);
  EXPECT_EQ(row(tables[3], "msf-full").config_hash, msf);
  EXPECT_EQ(row(tables[4], "layers-111111").config_hash, msf);
  const std::string orig = row(tables[1], "i").config_hash;
  EXPECT_EQ(row(tables[3], "orig").config_hash, orig);
  EXPECT_EQ(row(tables[4], "layers-000000").config_hash, orig);
  EXPECT_EQ(row(tables[3], "msf-qkkkw").config_hash, row(tables[0], "h").config_hash);
}

TEST(MsfTablesTest, RowsBearThePapersLabelsAndValues) {
  const auto tables = msf_tables();
  EXPECT_EQ(row(tables[0], "h").label, "MSF, 3-matrices");
  EXPECT_EQ(row(tables[0], "h").set.at("model.attention.share"), "QKKKW");
  EXPECT_EQ(row(tables[0], "h").paper.at("acc"), "78.82");
  EXPECT_EQ(row(tables[0], "h").paper.at("params"), "20.14");
  EXPECT_EQ(row(tables[0], "n").paper.at("acc"), "79.49");
  EXPECT_EQ(row(tables[1], "g").set.at("model.attention.share"), "QKK-W");
  EXPECT_EQ(row(tables[2], "residual").paper.at("train_loss"), "2.43");
  EXPECT_EQ(row(tables[3], "orig-g2-block").paper.at("params"), "19.26");
  EXPECT_EQ(row(tables[4], "layers-000011").set.at("model.attention.layers"), "9-12");
  EXPECT_EQ(row(tables[4], "layers-110000").paper.at("acc"), "79.31");
}

TEST(MsfTablesTest, TheRecipeIsThatOfTheSupplement) {
  const std::string config = row(msf_tables()[0], "r").config;
  EXPECT_THAT(config, testing::HasSubstr(R"("batch":1024)"));
  EXPECT_THAT(config, testing::HasSubstr(R"("mixing_alpha":0.2)"));
  EXPECT_THAT(config, testing::HasSubstr(R"("epochs":100)"));
}

/// What a paper prints in a row and a column of a sweep file.
struct Printed {
  std::string text, mark;
  bool operator==(const Printed&) const = default;
};
void PrintTo(const Printed& printed, std::ostream* out) { *out << printed.text << " " << printed.mark; }
using Cells = std::map<std::pair<std::string, std::string>, Printed>;  // row and column

/// "msf/table-6" -> its cells. printed/derive.py says where they come from.
std::map<std::string, Cells> printed_tables() {
  std::map<std::string, Cells> tables;
  std::istringstream lines{read_file(fs::path{ABLATE_SOURCE_DIR} / "tests/sweeps/printed/cells.tsv")};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream fields{line};
    std::string table, row, column;
    Printed cell;
    for (std::string* field : {&table, &row, &column, &cell.text, &cell.mark})
      std::getline(fields, *field, '\t');
    tables[table][{row, column}] = cell;
  }
  return tables;
}

/// Every sweep file of the papers, by the same names.
std::map<std::string, SweepSpec> paper_tables() {
  std::map<std::string, SweepSpec> specs;
  for (const auto& paper : fs::directory_iterator{fs::path{ABLATE_SOURCE_DIR} / "sweeps/papers"})
    for (const auto& entry : fs::directory_iterator{paper.path()}) {
      if (!is_paper_table(entry.path())) continue;
      const std::string name = paper.path().filename().string() + "/" + entry.path().stem().string();
      specs.emplace(name, parse_shipped("sweeps/papers/" + name + ".yaml"));
    }
  return specs;
}

TEST(PaperTablesTest, ShowEveryPrintedCellWithItsMarkAndNoOther) {
  auto printed = printed_tables();
  std::size_t count = 0;
  for (const auto& [name, spec] : paper_tables()) {
    Cells shown;
    for (const Row& one : spec.rows)
      for (const auto& [column, text] : one.paper) {
        const auto mark = one.marks.find(column);
        shown[{one.id, column}] = {
            text, mark == one.marks.end() ? std::string{} : std::string{name_of(mark->second.mark)}};
      }
    EXPECT_EQ(shown, printed[name]) << name;
    count += shown.size();
  }
  EXPECT_EQ(printed.size(), 31u) << "every table and figure of the four papers, MSF's table 7 in two files";
  EXPECT_EQ(count, 1584u);
}

TEST(PaperTablesTest, LeaveNoRowOutAndSayWhyOneIsNotTrained) {
  std::size_t rows = 0, trained = 0;
  std::map<protocol::NotTrained, std::size_t> reasons;
  for (const auto& [name, spec] : paper_tables())
    for (const Row& one : spec.rows) {
      if (!one.sweep.empty()) continue;
      ++rows;
      if (!one.not_trained)
        ++trained;
      else
        ++reasons[*one.not_trained];
      EXPECT_EQ(one.not_trained.has_value(), !one.not_trained_why.empty()) << name << " " << one.id;
    }
  EXPECT_EQ(rows, 476u);
  EXPECT_EQ(trained, 368u);
  EXPECT_EQ(reasons[protocol::NotTrained::kCited], 92u);
  EXPECT_EQ(reasons[protocol::NotTrained::kTask], 0u);
  EXPECT_EQ(reasons[protocol::NotTrained::kModel], 16u);
}

TEST(PaperTablesTest, AreTrainedWithoutADoubtAndHaveATitle) {
  for (const auto& [name, spec] : paper_tables()) {
    EXPECT_TRUE(spec.doubts.empty()) << name;
    EXPECT_FALSE(spec.table.title.empty()) << name;
    EXPECT_FALSE(spec.table.paper_heading.empty()) << name;
  }
}

TEST(PaperTablesTest, TheBaselineOfAGroupIsOneOfItsRowsOnTheSameData) {
  for (const auto& [name, spec] : paper_tables())
    for (const Row& one : spec.rows) {
      if (spec.table.baselines.empty() || one.baseline.empty() || one.not_trained) continue;
      EXPECT_EQ(row(spec, one.baseline).group, one.group) << name << " " << one.id;
      EXPECT_FALSE(row(spec, one.baseline).not_trained) << name << " " << one.id;
      EXPECT_EQ(row(spec, one.baseline).data, one.data) << name << " " << one.id;
    }
}

TEST(PaperTablesTest, TransfersHaveEachRowWithEachDataSet) {
  const SweepSpec transfer = parse_shipped("sweeps/papers/sne/table-4.yaml");
  std::map<std::string, std::size_t> trials;
  for (const TrialSpec& trial : expand(transfer))
    ++trials[transfer.rows[static_cast<std::size_t>(trial.row)].data];
  EXPECT_THAT(trials, ElementsAre(testing::Pair("cifar10", 54), testing::Pair("cifar100", 54),
                                  testing::Pair("imagenet-1k", 54), testing::Pair("stanford-cars", 54),
                                  testing::Pair("stl10", 54)))
      << "and those that they start from, once for all";
  EXPECT_EQ(row(transfer, "xcit-t12-sne,name=stl10").baseline, "xcit-t12,name=stl10");
  EXPECT_EQ(row(transfer, "xcit-t12-sne,name=stl10").set.at("data.name"), "stl10");
}

TEST(MsfTablesTest, Table6HasTheTrialsOfTheOthersAndTwiceEachNetwork) {
  const SweepSpec table_6 = parse_shipped("sweeps/papers/msf/table-6.yaml");
  const auto tables = msf_tables();
  EXPECT_EQ(row(table_6, "vit-s-msf,epochs=100").config_hash, row(tables[0], "r").config_hash);
  EXPECT_EQ(row(table_6, "vit-s-orig,epochs=100").config_hash, row(tables[1], "i").config_hash);
  EXPECT_EQ(row(table_6, "vit-s-msf,epochs=300").baseline, "vit-s-orig,epochs=300");
  EXPECT_EQ(row(table_6, "vit-s-msf-g2,epochs=100").config_hash,
            row(tables[3], "msf-full-g2-interleaved").config_hash);
  std::set<std::string> trials;
  for (const Row& one : table_6.rows) {
    EXPECT_EQ(one.set.at("recipe.epochs"), one.id.ends_with("=300") ? "300" : "100") << one.id;
    trials.insert(one.config_hash);
  }
  EXPECT_EQ(trials.size(), 46u);
}

TEST(MsfTablesTest, ArchitecturesAndRecipeAreThoseOfTable6) {
  const SweepSpec table_6 = parse_shipped("sweeps/papers/msf/table-6.yaml");
  for (const char* table : {"table-5", "supplement-table-B", "supplement-table-Ab"}) {
    const SweepSpec spec = parse_shipped(std::string{"sweeps/papers/msf/"} + table + ".yaml");
    for (const Row& one : spec.rows) {
      const bool transformer = one.id.starts_with("vit") || one.id.starts_with("swin");
      EXPECT_EQ(one.config_hash,
                row(table_6, one.id + (transformer ? "-orig,epochs=100" : ",epochs=100")).config_hash)
          << table << " " << one.id;
    }
  }
  const SweepSpec lengths = parse_shipped("sweeps/papers/msf/supplement-table-Aa.yaml");
  EXPECT_EQ(row(lengths, "t-100").config_hash, row(table_6, "vit-s-orig,epochs=100").config_hash);
  EXPECT_EQ(row(lengths, "t-300").config_hash, row(table_6, "vit-s-orig,epochs=300").config_hash);
}

TEST(MsfTablesTest, BatchAndMixingOfTheRecipeAreThePrintedOnes) {
  const SweepSpec table = parse_shipped("sweeps/papers/msf/supplement-table-Ab.yaml");
  ASSERT_EQ(table.rows.size(), 11u);
  for (const Row& one : table.rows) {
    EXPECT_EQ(one.set.at("recipe.batch"), one.paper.at("batch")) << one.id;
    EXPECT_EQ(one.set.at("recipe.mixing_alpha"), one.paper.at("mix_alpha")) << one.id;
  }
}

TEST(ManifoldKeyTablesTest, AreTheModelsOfThePaper) {
  const SweepSpec table_1 = parse_shipped("sweeps/papers/manifold-key/table-1.yaml");
  const SweepSpec table_2 = parse_shipped("sweeps/papers/manifold-key/table-2.yaml");
  const SweepSpec figure_2 = parse_shipped("sweeps/papers/manifold-key/figure-2.yaml");
  std::set<std::string> trials;
  for (const Row& one : table_1.rows) trials.insert(one.config_hash);
  EXPECT_EQ(trials.size(), 15u);
  for (const Row& one : table_2.rows) EXPECT_FALSE(trials.contains(one.config_hash)) << one.id;
  EXPECT_EQ(row(figure_2, "image-a-vit-s").config_hash, row(table_1, "vit-s").config_hash);
  EXPECT_EQ(row(figure_2, "image-a-vit-s-vanillak").config_hash, row(table_1, "vit-s-vanillak").config_hash);
  const std::string four_charts = row(table_2, "charts-4").config;
  EXPECT_THAT(four_charts,
              testing::HasSubstr(R"("key":{"broadcasting":"none","charts":4,"method":"vanillak"})"));
  EXPECT_THAT(four_charts, testing::HasSubstr(R"("batch":128)"));
  EXPECT_THAT(four_charts, testing::HasSubstr(R"("epochs":300)"));
}

TEST(DemoSweepTest, EveryWorkerHasWhatIsDrawn) {
  std::set<std::string_view> drawn;
  for (const auto& set : config::data_sets())
    if (set.embedded) drawn.insert(set.name);
  EXPECT_EQ(drawn,
            (std::set<std::string_view>{protocol::kEmbeddedData.begin(), protocol::kEmbeddedData.end()}));
}

TEST(Tasks, ReportWhatTheyAreJudgedByAndNothingOfOthers) {
  std::set<std::string> of_all;
  for (const auto& task : config::tasks())
    for (const auto metric : task.metrics) of_all.insert(protocol::metric::of("val", metric));
  for (const auto& task : config::tasks()) {
    const auto list = protocol::never_reported(name_of(task.kind));
    const std::set<std::string> never{list.begin(), list.end()};
    std::set<std::string> own;
    for (const auto metric : task.metrics) own.insert(protocol::metric::of("val", metric));
    for (const auto& metric : of_all) EXPECT_NE(never.contains(metric), own.contains(metric)) << metric;
    EXPECT_FALSE(never.contains("train/loss"));
  }
  EXPECT_EQ(protocol::never_reported(""), protocol::never_reported("classify"));
}

TEST(DemoSweepTest, HasTheOriginalAsBaselineAndSixRowsOfTable1) {
  const SweepSpec demo = parse_shipped("sweeps/demo/projection-sharing.yaml");
  const SweepSpec table_1 = parse_shipped("sweeps/papers/msf/table-1.yaml");
  EXPECT_EQ(demo.name, "projection-sharing-demo");
  EXPECT_EQ(demo.data, "negative-shapes");
  EXPECT_EQ(demo.table.baseline, "orig");
  EXPECT_EQ(demo.seeds.size(), 3u);
  EXPECT_EQ(row(demo, "orig").set.at("model.attention.kernel"), "dot");
  EXPECT_EQ(row(demo, "orig").paper.at("acc"), "78.98");
  ASSERT_GE(demo.rows.size(), 7u);
  for (const Row& shown : demo.rows) {
    if (shown.id == "orig") continue;
    const Row& printed = row(table_1, shown.id);
    EXPECT_EQ(shown.label, printed.label);
    EXPECT_EQ(shown.paper, printed.paper);
    EXPECT_EQ(shown.set, printed.set);
  }
}

/// A sweep is known again by the hash of its canonical text: a results file that has it under another hash
/// takes it for another. So canonical.tsv changes only where a file says something else.
TEST(ShippedSweepsTest, TheirCanonicalTextStays) {
  std::string lines;
  for (const char* folder : {"sweeps/demo", "sweeps/examples", "sweeps/papers"}) {
    std::set<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator{fs::path{ABLATE_SOURCE_DIR} / folder})
      if (entry.path().extension() == ".yaml" && entry.path().filename() != "scales.yaml")
        files.insert(fs::relative(entry.path(), ABLATE_SOURCE_DIR));
    for (const std::string& file : files) {
      const fs::path path = fs::path{ABLATE_SOURCE_DIR} / file;
      const std::string text = with_shipped(read_file(path), path);
      lines += file + "\t" + sha256_hex(parse_sweep(text, file, "/sweeps").canonical) + "\n";
    }
  }
  const fs::path expected = fs::path{ABLATE_SOURCE_DIR} / "tests/sweeps/canonical.tsv";
  if (std::getenv("ABLATE_UPDATE_FIXTURES")) write_file_atomically(expected, lines);
  EXPECT_EQ(lines, read_file(expected));
}

/// The sweep files of the two papers, by name: "sne/table-2".
std::map<std::string, SweepSpec> sne_and_xcit_tables() {
  std::map<std::string, SweepSpec> specs;
  for (const char* paper : {"sne", "xcit"}) {
    for (const auto& entry : fs::directory_iterator{fs::path{ABLATE_SOURCE_DIR} / "sweeps/papers" / paper}) {
      if (!is_paper_table(entry.path())) continue;
      const std::string name = std::string{paper} + "/" + entry.path().stem().string();
      specs.emplace(name, parse_shipped("sweeps/papers/" + name + ".yaml"));
    }
  }
  return specs;
}

TEST(SneAndXcitTablesTest, AreDistinctTrialsOf183ConfigurationsASeed) {
  std::map<std::int64_t, std::set<std::string>> trials;
  for (const auto& [file, spec] : sne_and_xcit_tables()) {
    const auto all = expand(spec);
    if (all.empty()) continue;
    EXPECT_THAT(spec.seeds, ElementsAre(0, 1, 2)) << file;
    EXPECT_EQ(spec.gpus, 8) << file;
    for (const TrialSpec& trial : all) trials[trial.seed].insert(trial.config_hash);
  }
  ASSERT_EQ(trials.size(), 3u);
  for (const auto& [seed, hashes] : trials) EXPECT_EQ(hashes.size(), 183u) << "seed " << seed;
}

TEST(SneAndXcitTablesTest, TheSameModelIsTheSameTrialInEveryTable) {
  const auto tables = sne_and_xcit_tables();
  const SweepSpec& imagenet = tables.at("sne/table-2");
  for (const char* file : {"sne/table-1", "sne/figure-5", "sne/figure-6"}) {
    for (const Row& shown : tables.at(file).rows)
      EXPECT_EQ(shown.config_hash, row(imagenet, shown.id).config_hash) << file << " " << shown.id;
  }
  EXPECT_EQ(row(tables.at("sne/table-5"), "shared").config_hash,
            row(imagenet, "xcit-n12-f-sne-8-star").config_hash);
  EXPECT_EQ(row(tables.at("sne/table-6"), "imagenet").config_hash,
            row(imagenet, "xcit-n12-f-sne-8").config_hash);
  EXPECT_EQ(row(tables.at("sne/figure-3"), "layers-2").config_hash,
            row(imagenet, "xcit-n12-sne").config_hash);
  const SweepSpec& family = tables.at("xcit/table-1");
  const SweepSpec& among_others = tables.at("xcit/table-2");
  for (const char* name : {"xcit-s12", "xcit-s24", "xcit-m24", "xcit-l24"}) {
    const std::string model = name;
    EXPECT_EQ(row(family, model + "-distilled").config_hash,
              row(among_others, model + "-p16-distilled").config_hash);
    EXPECT_EQ(row(family, model + "-p8-384-distilled").config_hash,
              row(among_others, model + "-p8-384-distilled").config_hash);
  }
  EXPECT_EQ(row(family, "xcit-s12").config_hash,
            row(tables.at("xcit/table-4"), "s12-p16-baseline").config_hash);
}

TEST(SneAndXcitTablesTest, TheRecipesAreThoseOfThePapers) {
  using testing::HasSubstr;
  const auto tables = sne_and_xcit_tables();
  EXPECT_THAT(row(tables.at("sne/table-2"), "xcit-n12-sne").config, HasSubstr(R"("batch":4096)"));
  EXPECT_THAT(row(tables.at("sne/table-2"), "xcit-t12-sne").config, HasSubstr(R"("batch":2816)"));
  EXPECT_THAT(row(tables.at("sne/table-3"), "xcit-n12").weights, ElementsAre(testing::Key("regnety_160")));
  const SweepSpec& transfer = tables.at("sne/table-4");
  for (const Row& transferred : transfer.rows) {
    if (transferred.not_trained || !transferred.sweep.empty()) continue;
    const std::string model = transferred.id.substr(0, transferred.id.find(','));
    ASSERT_EQ(transferred.sources.size(), 1u);
    const Row& source = transfer.rows.at(static_cast<std::size_t>(transferred.sources[0].row));
    EXPECT_EQ(source.id, "sne/table-2:" + model);
    EXPECT_EQ(source.config_hash, row(tables.at("sne/table-2"), model).config_hash);
    EXPECT_THAT(transferred.config, HasSubstr(R"("epochs":1000)"));
    EXPECT_THAT(transferred.config, HasSubstr(R"("image_size":224)"));
  }
  const SweepSpec& xcit = tables.at("xcit/table-2");
  const Row& fine_tuned = row(xcit, "xcit-m24-p8-384-distilled");
  EXPECT_THAT(fine_tuned.weights, ElementsAre(testing::Key("regnety_160-384")));
  EXPECT_EQ(xcit.rows.at(static_cast<std::size_t>(fine_tuned.sources.at(0).row)).id,
            "distilled-p8.yaml:xcit-m24-p8-distilled");
}

TEST(ExampleSweepTest, EveryExampleParses) {
  const fs::path folder = fs::path{ABLATE_SOURCE_DIR} / "sweeps/examples";
  if (!fs::exists(folder)) GTEST_SKIP() << "no examples";
  for (const auto& entry : fs::directory_iterator{folder}) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_NO_THROW(parse_sweep(read_file(entry.path()), entry.path().filename(), folder));
  }
}

/// The ```yaml blocks of a page that are whole sweep files.
std::vector<std::string> sweeps_of_page(const std::string& page) {
  constexpr std::string_view kOpen = "```yaml\n";
  std::vector<std::string> blocks;
  for (std::size_t at = page.find(kOpen); at != std::string::npos; at = page.find(kOpen, at)) {
    at += kOpen.size();
    const std::string block = page.substr(at, page.find("```", at) - at);
    if (block.starts_with("ablate: 1")) blocks.push_back(block);
  }
  return blocks;
}

TEST(SweepFilePageTest, EverySweepOnThePagesParses) {
  for (const char* page : {"docs/sweep-file.md", "README.md", "docs/python.md", "docs/from-timm.md",
                           "docs/from-hydra-and-wandb.md"}) {
    const auto blocks = sweeps_of_page(read_file(fs::path{ABLATE_SOURCE_DIR} / page));
    EXPECT_GE(blocks.size(), 1u) << page;
    for (const std::string& block : blocks) EXPECT_NO_THROW(parse_sweep(block, page)) << block;
  }
}

TEST(SweepFilePageTest, ThePageOnWritingASweepPrintsItsExamplesAndNoOthers) {
  const fs::path docs = fs::path{ABLATE_SOURCE_DIR} / "docs";
  auto blocks = sweeps_of_page(read_file(docs / "writing-a-sweep.md"));
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator{docs / "examples"}) {
    if (entry.path().extension() != ".yaml") continue;
    files.push_back(read_file(entry.path()));
    EXPECT_NO_THROW(parse_sweep(files.back(), entry.path().filename(), docs / "examples"));
  }
  EXPECT_THAT(blocks, testing::UnorderedElementsAreArray(files));
}

}  // namespace
}  // namespace abl::sweeps
