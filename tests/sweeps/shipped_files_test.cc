// SPDX-License-Identifier: Apache-2.0
//
// The sweep files that come with the program, and those in its documentation.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <set>

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
      {"sweeps/papers/msf/table-4.yaml", "c65f660dbae817c32de1d81722790c3477a2fcff28b33c74e06b131df92cbfed"}};
  for (const auto& [file, hash] : hashes) {
    const std::string text = read_file(fs::path{ABLATE_SOURCE_DIR} / file);
    EXPECT_EQ(sha256_hex(parse_sweep(text, file, "/sweeps").canonical), hash) << file;
  }
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
