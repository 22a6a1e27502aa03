// SPDX-License-Identifier: Apache-2.0
//
// The sweep files that come with the program, and those in its documentation.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "base/file.h"
#include "base/sha256.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

SweepSpec parse_shipped(const std::string& path) {
  const fs::path file = fs::path{ABLATE_SOURCE_DIR} / path;
  return parse_sweep(read_file(file), path);
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

/// A cell of a paper's table for which the sweep file has a column.
struct PrintedCell {
  std::string row, label, column, printed;  ///< `row`: its id in the sweep
};

constexpr const char* kPapers[] = {"msf", "manifold-key"};

/// "msf/table-6.yaml" -> its cells, in the order of the print.
std::map<std::string, std::vector<PrintedCell>> printed_tables(const std::string& paper) {
  std::map<std::string, std::vector<PrintedCell>> tables;
  std::istringstream lines{
      read_file(fs::path{ABLATE_SOURCE_DIR} / "tests/sweeps/printed" / (paper + ".tsv"))};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream fields{line};
    std::string file;
    PrintedCell cell;
    for (std::string* field : {&file, &cell.row, &cell.label, &cell.column, &cell.printed})
      std::getline(fields, *field, '\t');
    tables[file].push_back(cell);
  }
  return tables;
}

TEST(PaperTablesTest, ShowEveryPrintedCellAndNoOther) {
  using Cell = std::tuple<std::string, std::string, std::string>;  // row, label, column
  std::size_t files = 0, count = 0;
  for (const char* paper : kPapers) {
    for (const auto& [file, cells] : printed_tables(paper)) {
      std::map<Cell, std::string> printed, shown;
      std::vector<std::string> printed_rows, shown_rows;
      for (const PrintedCell& cell : cells) {
        printed[Cell{cell.row, cell.label, cell.column}] = cell.printed;
        if (printed_rows.empty() || printed_rows.back() != cell.row) printed_rows.push_back(cell.row);
      }
      const SweepSpec spec = parse_shipped("sweeps/papers/" + file);
      for (const Row& one : spec.rows) {
        shown_rows.push_back(one.id);
        for (const auto& [column, value] : one.paper) shown[Cell{one.id, one.label, column}] = value;
      }
      EXPECT_EQ(shown, printed) << file;
      EXPECT_EQ(shown_rows, printed_rows) << file;
      ++files;
      count += printed.size();
    }
  }
  EXPECT_EQ(files, 13u);
  EXPECT_EQ(count, 383u);
}

TEST(PaperTablesTest, EveryFileIsHeldAgainstItsPrint) {
  for (const char* paper : kPapers) {
    const auto tables = printed_tables(paper);
    for (const auto& entry : fs::directory_iterator{fs::path{ABLATE_SOURCE_DIR} / "sweeps/papers" / paper}) {
      const std::string file = std::string{paper} + "/" + entry.path().filename().string();
      EXPECT_TRUE(tables.contains(file)) << file;
    }
  }
}

TEST(PaperTablesTest, AreTrainedWithoutADoubt) {
  for (const char* paper : kPapers) {
    for (const auto& [file, cells] : printed_tables(paper)) {
      const SweepSpec spec = parse_shipped("sweeps/papers/" + file);
      EXPECT_TRUE(spec.doubts.empty()) << file;
      EXPECT_EQ(spec.data, "imagenet-1k") << file;
    }
  }
}

TEST(MsfTablesTest, Table6HasTheTrialsOfTheOthersAndTwiceEachNetwork) {
  const SweepSpec table_6 = parse_shipped("sweeps/papers/msf/table-6.yaml");
  const auto tables = msf_tables();
  EXPECT_EQ(row(table_6, "vit-s-msf-100ep").config_hash, row(tables[0], "r").config_hash);
  EXPECT_EQ(row(table_6, "vit-s-orig-100ep").config_hash, row(tables[1], "i").config_hash);
  EXPECT_EQ(row(table_6, "vit-s-msf-g2-100ep").config_hash,
            row(tables[3], "msf-full-g2-interleaved").config_hash);
  std::set<std::string> trials;
  for (const Row& one : table_6.rows) {
    EXPECT_EQ(one.set.at("recipe.epochs"), one.id.ends_with("-300ep") ? "300" : "100") << one.id;
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
      EXPECT_EQ(one.config_hash, row(table_6, one.id + (transformer ? "-orig-100ep" : "-100ep")).config_hash)
          << table << " " << one.id;
    }
  }
  const SweepSpec lengths = parse_shipped("sweeps/papers/msf/supplement-table-Aa.yaml");
  EXPECT_EQ(row(lengths, "t-100").config_hash, row(table_6, "vit-s-orig-100ep").config_hash);
  EXPECT_EQ(row(lengths, "t-300").config_hash, row(table_6, "vit-s-orig-300ep").config_hash);
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

TEST(DemoSweepTest, HasTheOriginalAsBaselineAndSixRowsOfTable1) {
  const SweepSpec demo = parse_shipped("sweeps/demo/projection-sharing.yaml");
  const SweepSpec table_1 = parse_shipped("sweeps/papers/msf/table-1.yaml");
  EXPECT_EQ(demo.name, "msf-sharing-demo");
  EXPECT_EQ(demo.data, "shapes");
  EXPECT_EQ(demo.table.baseline, "orig");
  EXPECT_EQ(demo.seeds.size(), 2u);
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

/// A sweep is known again by this: a results file that has it under another hash takes it for another.
TEST(ShippedSweepsTest, TheirCanonicalTextStays) {
  const std::map<std::string, std::string> hashes{
      {"sweeps/demo/projection-sharing.yaml",
       "18b497cc8bbbcaa1ec8f15d6086b05721769e03e1d1a2c262c16b151efe963fe"},
      {"sweeps/examples/cifar10-attention.yaml",
       "e8fc137a3da733167ec6a46891985877f3283c6ab7c814cebee4c2f9d72007c7"},
      {"sweeps/examples/command.yaml", "f5adde4018e99fa0f852bacd91b430c2c44f2ebdb25b512f4baf4e53071557f7"},
      {"sweeps/papers/msf/supplement-table-C.yaml",
       "8bcc4212c693ce42d725a27bf9f7a27205e392421088745cf412f9abf8c3f320"},
      {"sweeps/papers/msf/table-1.yaml", "cefd82c0312fdae5bab96468bca641ea9e12b84073d66e8d07fa05e62b236f16"},
      {"sweeps/papers/msf/table-2.yaml", "8050620632d97c43b311a53db20ec8cb8d8690c2f1ceeb781122136af05c40fa"},
      {"sweeps/papers/msf/table-3.yaml", "21b9be67f63beff789b6f33991d3b4a8be1a3c9ea349dcb62e0315dd7f5625fb"},
      {"sweeps/papers/msf/table-4.yaml", "c65f660dbae817c32de1d81722790c3477a2fcff28b33c74e06b131df92cbfed"},
      {"sweeps/papers/manifold-key/figure-2.yaml",
       "fb14d92878e8d35d056150f7c1033b16afac93917b5394fae5dbb3658322a95a"},
      {"sweeps/papers/manifold-key/table-1.yaml",
       "4847834f09f27438d1dbdc0fde9837b35b79983f08ab54b86ac94c826871e064"},
      {"sweeps/papers/manifold-key/table-2.yaml",
       "81c71335be6b0e78712f044bef4eaf9afc8a3ad2bd74763a1c3a955b56c6468d"},
      {"sweeps/papers/msf/supplement-table-Aa.yaml",
       "c6c8e279d0ec7bd8efac1e672330f917407142a182ecd0996a71eaa840365ef7"},
      {"sweeps/papers/msf/supplement-table-Ab.yaml",
       "77cbd6971064b67e5e11a05689a1dfbbd2f94d36b7b5be1a8e8dcf352731873c"},
      {"sweeps/papers/msf/supplement-table-B.yaml",
       "5c16200487a2d554dcc5937999e9eaad001a835db36d46a93c5dab93cd97fb7e"},
      {"sweeps/papers/msf/table-5.yaml", "6fd4cd0281cf8ada04fc565fa7e63faa24fab84b55804e0a78282ae6d36056f4"},
      {"sweeps/papers/msf/table-6.yaml", "759a362d6610f8dbe1bfe84a2811de516ae64fdbed3db11d33994b5fbbaf0f4f"}};
  for (const auto& [file, hash] : hashes) {
    const std::string text = read_file(fs::path{ABLATE_SOURCE_DIR} / file);
    EXPECT_EQ(sha256_hex(parse_sweep(text, file, "/sweeps").canonical), hash) << file;
  }
}

/// A cell that a paper prints, and the row of a sweep file where it stands.
struct FiledCell {
  std::string file, row, column, printed;
};

std::vector<FiledCell> printed_cells(const std::string& path) {
  std::istringstream lines{read_file(fs::path{ABLATE_SOURCE_DIR} / path)};
  std::vector<FiledCell> cells;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields{line};
    FiledCell cell;
    for (std::string* field : {&cell.file, &cell.row, &cell.column, &cell.printed})
      std::getline(fields, *field, '\t');
    cells.push_back(cell);
  }
  return cells;
}

/// What the comment behind a row says, or the one in a row's place, with ", " before each part and "," after
/// the last; empty where there is none.
std::string comment_of(const std::string& text, const std::string& row) {
  const std::string in_place = "  # " + row + ": ";
  const std::string behind = "}  # ";
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(in_place)) return ", " + line.substr(in_place.size()) + ",";
    if (!line.starts_with("  - {id: " + row + ", ")) continue;
    const auto at = line.find(behind);
    return at == std::string::npos ? std::string{} : ", " + line.substr(at + behind.size()) + ",";
  }
  return {};
}

constexpr const char* kSneAndXcitCells = "tests/sweeps/printed/sne-xcit.tsv";

/// The sweep files of the two papers, by the name that the printed cells have: "sne/table-2".
std::map<std::string, SweepSpec> sne_and_xcit_tables() {
  std::map<std::string, SweepSpec> specs;
  for (const char* paper : {"sne", "xcit"}) {
    for (const auto& entry : fs::directory_iterator{fs::path{ABLATE_SOURCE_DIR} / "sweeps/papers" / paper}) {
      const std::string name = std::string{paper} + "/" + entry.path().stem().string();
      specs.emplace(name, parse_shipped("sweeps/papers/" + name + ".yaml"));
    }
  }
  return specs;
}

TEST(SneAndXcitTablesTest, EveryPrintedCellStandsAtItsRow) {
  const auto tables = sne_and_xcit_tables();
  std::set<std::string> files;
  std::size_t found = 0, values = 0;
  for (const auto& [file, id, column, printed] : printed_cells(kSneAndXcitCells)) {
    SCOPED_TRACE(file + " " + id + " " + column);
    files.insert(file);
    ASSERT_TRUE(tables.contains(file));
    const SweepSpec& spec = tables.at(file);
    const auto at = std::ranges::find(spec.rows, id, &Row::id);
    if (at != spec.rows.end() && column == "label") {
      EXPECT_EQ(at->label, printed);
    } else if (at != spec.rows.end() && at->paper.contains(column)) {
      EXPECT_EQ(at->paper.at(column), printed);
      ++found;
    } else {
      std::string part = ", ";
      part.append(column).append(" ").append(printed).append(",");
      EXPECT_THAT(comment_of(spec.text, id), testing::HasSubstr(part));
    }
  }
  EXPECT_EQ(files.size(), tables.size());
  for (const auto& [file, spec] : tables)
    for (const Row& shown : spec.rows) values += shown.paper.size();
  EXPECT_EQ(values, found) << "values that are not printed";
}

TEST(SneAndXcitTablesTest, SixteenFilesAreTwoHundredRowsAnd135DistinctTrialsASeed) {
  const auto tables = sne_and_xcit_tables();
  EXPECT_EQ(tables.size(), 16u);
  std::size_t rows = 0;
  std::map<std::int64_t, std::set<std::string>> trials;
  for (const auto& [file, spec] : tables) {
    rows += spec.rows.size();
    EXPECT_THAT(spec.seeds, ElementsAre(0, 1, 2)) << file;
    EXPECT_EQ(spec.gpus, 8) << file;
    EXPECT_THAT(spec.doubts, testing::IsEmpty()) << file;
    for (const TrialSpec& trial : expand(spec)) trials[trial.seed].insert(trial.config_hash);
  }
  EXPECT_EQ(rows, 200u);
  ASSERT_EQ(trials.size(), 3u);
  for (const auto& [seed, hashes] : trials) EXPECT_EQ(hashes.size(), 135u) << "seed " << seed;
}

TEST(SneAndXcitTablesTest, TheSameModelIsTheSameTrialInEveryTable) {
  const auto tables = sne_and_xcit_tables();
  const SweepSpec& imagenet = tables.at("sne/table-2");
  for (const char* file : {"sne/table-1", "sne/table-4", "sne/figure-5", "sne/figure-6"}) {
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
  for (const char* file :
       {"sne/table-4-cars", "sne/table-4-cifar10", "sne/table-4-cifar100", "sne/table-4-stl10"}) {
    for (const Row& transferred : tables.at(file).rows) {
      EXPECT_THAT(transferred.weights, ElementsAre(testing::Key("sne-" + transferred.id))) << file;
      EXPECT_THAT(transferred.config, HasSubstr(R"("epochs":1000)")) << file;
      EXPECT_THAT(transferred.config, HasSubstr(R"("image_size":224)")) << file;
    }
  }
  EXPECT_THAT(row(tables.at("xcit/table-2"), "xcit-m24-p8-384-distilled").weights,
              testing::UnorderedElementsAre(testing::Key("xcit-m24-p8-224-distilled"),
                                            testing::Key("regnety_160-384")));
}

/// A sweep is known again by this, as those above.
TEST(SneAndXcitTablesTest, TheirCanonicalTextStays) {
  const std::map<std::string, std::string> hashes{
      {"sne/figure-3", "6e883916d9f1d8a595f2ea59e0edf4cf681a51201550f588e6a72d92f7e7b1d0"},
      {"sne/figure-5", "0bc652bc9591821a28eccef2eb12e9182dea829e1f115531bea619d609069ae7"},
      {"sne/figure-6", "aabe44f7a7b89ea14aa8c5ba26bb8e6adb93be08a18ee35eda0e148df9276c2c"},
      {"sne/table-1", "10fd50f238a785bd4e31bfec0db8dc5e84a57b376f9eb957e58369c314d3d28c"},
      {"sne/table-2", "7e163d0ec18205b9c06f9ee4d5e665d25820e7b6e05365fc3c85e022133a4c15"},
      {"sne/table-3", "d72585ed672248f78456323a2adb1688f68626c58d6cb03b484d3587ca7618c6"},
      {"sne/table-4", "eeb453c41de6d534cf9e1dcb3d84dd3b30159fc5e0a4ef2be7b37ab0285f3e51"},
      {"sne/table-4-cars", "4e8888d845ce23a10243561783a0d43c75c41f791c100c8e046e2837fedd958b"},
      {"sne/table-4-cifar10", "028617037ceb03bf8b20543d9c830278fae46485f4b0dcfe21ee0fe1959591db"},
      {"sne/table-4-cifar100", "1b1833cf591d033c5b47984f7a52adea5b12c3ac10d3ed1540cfb7fb4bbbf1da"},
      {"sne/table-4-stl10", "f126809cdf58ef911f3250e0c299d79e79a3a98900d7d9baa469385bbc85dfcf"},
      {"sne/table-5", "9debbc43cd384f6d8c2239e54cc5c5d97710fad1d121c2ab8ccab29946fb889e"},
      {"sne/table-6", "692444dc968f02eb8886f795107994d7300830e30b52f99f9869d26912c1ca4b"},
      {"xcit/table-1", "80b70e33402304221895a2def6ce29b592f25c13a98abb725c49f03b4a1064e5"},
      {"xcit/table-2", "ca43610cf97473ec9327ba5bcf99f7cd36b052969b883aa2611ff4c7aff927a1"},
      {"xcit/table-4", "0145f5c770f22ef8200eeb7b279e923c3978703b59885990aeb8d5fc277b5b5e"}};
  const auto tables = sne_and_xcit_tables();
  EXPECT_EQ(hashes.size(), tables.size());
  for (const auto& [file, hash] : hashes) EXPECT_EQ(sha256_hex(tables.at(file).canonical), hash) << file;
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

TEST(SweepFilePageTest, EverySweepOnThePageParses) {
  const auto blocks = sweeps_of_page(read_file(fs::path{ABLATE_SOURCE_DIR} / "docs/sweep-file.md"));
  EXPECT_GE(blocks.size(), 3u);
  for (const std::string& block : blocks) EXPECT_NO_THROW(parse_sweep(block, "docs/sweep-file.md")) << block;
}

}  // namespace
}  // namespace abl::sweeps
