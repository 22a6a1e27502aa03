// SPDX-License-Identifier: Apache-2.0
#include "sweeps/paper_sweeps.h"

#include <algorithm>
#include <tuple>

namespace abl::sweeps {
namespace {

namespace fs = std::filesystem;

std::tuple<std::string, bool, bool, std::size_t, std::string> order_of(const PaperSweep& sweep) {
  return {sweep.paper, sweep.table.starts_with("supplement"), sweep.table.starts_with("figure"),
          sweep.table.size(), sweep.table};
}

}  // namespace

std::vector<PaperSweep> paper_sweeps_in(const fs::path& papers) {
  std::vector<PaperSweep> all;
  for (const auto& paper : fs::directory_iterator{papers}) {
    if (!paper.is_directory()) continue;
    for (const auto& table : fs::directory_iterator{paper.path()}) {
      const std::string stem = table.path().stem();
      const bool is_table = stem.find("table-") != std::string::npos || stem.starts_with("figure-");
      if (is_table && table.path().extension() == ".yaml")
        all.push_back({.paper = paper.path().filename(), .table = stem, .file = table.path()});
    }
  }
  std::ranges::sort(all, {}, order_of);
  return all;
}

}  // namespace abl::sweeps
