// SPDX-License-Identifier: Apache-2.0
// Every params and FLOPs cell that the papers print of their own models, counted from the real modules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "config/document/trial_document.h"
#include "models/backbones/model_options.h"
#include "models/counting/conventions.h"
#include "models/counting/counter.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::trainer {
namespace {

struct Cell {
  std::string table, row, column, printed, unit, mode, convention, digits, model, reason;
};

std::vector<Cell> read_cells() {
  std::ifstream file{ABLATE_CELLS};
  std::vector<Cell> cells;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> fields;
    std::istringstream in{line + "\t"};
    for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
    fields.resize(10);
    cells.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6], fields[7],
                     fields[8], fields[9]});
  }
  return cells;
}

/// The parts of a model, counted once however many cells speak of it.
const std::vector<models::PartCount>& parts_of(const std::string& document) {
  static std::map<std::string, std::vector<models::PartCount>> known;
  const auto [entry, is_new] = known.try_emplace(document);
  if (is_new) {
    const auto trial = config::read_model_or_throw(config::Json::parse(document));
    const auto options = tasks::model_options(trial.model, trial.data);
    entry->second = models::count_parts(*models::build(options, torch::kMeta), models::image_size(options));
  }
  return entry->second;
}

/// Without the classifier: XCiT Table 3 counts what DINO trains.
std::int64_t backbone_params(const std::vector<models::PartCount>& parts) {
  auto params = parts.front().params_all;
  for (const auto& part : parts)
    if (part.name == "head") params -= part.params_all;
  return params;
}

std::int64_t counted(const Cell& cell) {
  auto parts = parts_of(cell.model);
  if (cell.convention != "-") models::find_convention(cell.convention)->apply(parts);
  const auto& whole = parts.front();
  if (cell.mode == "params.all") return whole.params_all;
  if (cell.mode == "params.weights") return whole.params_weights;
  if (cell.mode == "params.backbone") return backbone_params(parts);
  if (cell.mode == "flops.macs2") return 2 * whole.work.macs;  // EfficientNet's row of MSF Table 6
  if (cell.mode == "flops.msf") return static_cast<std::int64_t>(flops_msf(whole.work));
  if (cell.mode == "flops.cnn") return static_cast<std::int64_t>(flops_cnn(whole.work));
  if (cell.mode == "flops.fvcore(2)") return static_cast<std::int64_t>(flops_fvcore(whole.work, 2));
  if (cell.mode == "flops.fvcore(5)") return static_cast<std::int64_t>(flops_fvcore(whole.work, 5));
  ADD_FAILURE() << "no mode " << cell.mode;
  return 0;
}

/// With as many digits as `like` has: half-up from the exact integer, or cut.
std::string printed(std::int64_t count, std::int64_t unit, const std::string& like, bool cut) {
  const auto dot = like.find('.');
  const auto decimals = dot == std::string::npos ? 0 : like.size() - dot - 1;
  std::int64_t factor = 1;
  for (std::size_t i = 0; i < decimals; ++i) factor *= 10;
  const auto scaled = (count * factor + (cut ? 0 : unit / 2)) / unit;
  if (decimals == 0) return fmt::format("{}", scaled);
  return fmt::format("{}.{:0{}}", scaled / factor, scaled % factor, decimals);
}

std::string printed(const Cell& cell) {
  return printed(counted(cell), cell.unit == "M" ? 1'000'000 : 1'000'000'000, cell.printed,
                 cell.digits == "cut");
}

TEST(PaperCells, AreCountedToThePrintedDigit) {
  int reproduced = 0;
  for (const auto& cell : read_cells()) {
    if (!cell.reason.empty()) continue;
    EXPECT_EQ(printed(cell), cell.printed) << cell.table << " " << cell.row << " " << cell.column << " ("
                                           << cell.mode << ", " << cell.convention << ")";
    ++reproduced;
  }
  EXPECT_EQ(reproduced, 206);  // and the 24 of tests/counting/dense_heads_test.cc: 230 of 247
}

TEST(PaperCells, ThatAreNotReproducedAreSeventeenAndSayWhy) {
  int others = 0;
  for (const auto& cell : read_cells()) {
    if (cell.reason.empty()) continue;
    EXPECT_NE(printed(cell), cell.printed)
        << cell.table << " " << cell.row << " " << cell.column << " is reproduced after all";
    ++others;
  }
  EXPECT_EQ(others, 17);
}

}  // namespace
}  // namespace abl::trainer
