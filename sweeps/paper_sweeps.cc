// SPDX-License-Identifier: Apache-2.0
#include "sweeps/paper_sweeps.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest_name.h"

namespace abl::sweeps {
namespace {

namespace fs = std::filesystem;

std::tuple<std::string, bool, bool, std::size_t, std::string> order_of(const PaperSweep& sweep) {
  return {sweep.paper, sweep.table.starts_with("supplement"), sweep.table.starts_with("figure"),
          sweep.table.size(), sweep.table};
}

std::vector<PaperSweep> all_sweeps() {
  const auto folder = papers_folder();
  return folder ? paper_sweeps_in(*folder) : std::vector<PaperSweep>{};
}

std::vector<std::string> papers_of(const std::vector<PaperSweep>& sweeps) {
  std::vector<std::string> papers;
  for (const PaperSweep& sweep : sweeps)
    if (papers.empty() || papers.back() != sweep.paper) papers.push_back(sweep.paper);
  return papers;
}

constexpr const char* kNoneHere =
    "there are none beside this program; expected them in share/ablate/sweeps/papers of its installation";

[[noreturn]] void refuse(const char* kind, const std::string& written,
                         const std::vector<std::string>& known) {
  throw Error{Code::kNotFound, known.empty() ? fmt::format("unknown {} '{}': {}", kind, written, kNoneHere)
                                             : fmt::format("unknown {} '{}'; 'ablate papers' lists them{}",
                                                           kind, written, did_you_mean(written, known))};
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

std::optional<fs::path> papers_folder() {
  std::error_code absent;
  fs::path folder = program_folder();
  if (const fs::path installed = folder.parent_path() / "share/ablate/sweeps/papers";
      fs::is_directory(installed, absent))
    return installed;
  constexpr int kDeepest = 5;  // a program lies so far below its source tree
  for (int i = 0; i < kDeepest && folder.has_relative_path(); ++i, folder = folder.parent_path())
    if (fs::exists(folder / "sweeps/sweep_spec.h", absent) &&
        fs::is_directory(folder / "sweeps/papers", absent))
      return folder / "sweeps/papers";
  return std::nullopt;
}

std::vector<PaperSweep> paper_sweeps(const std::string& paper) {
  std::vector<PaperSweep> all = all_sweeps();
  const std::vector<std::string> papers = papers_of(all);
  if (all.empty() && paper.empty())
    throw Error{Code::kNotFound, fmt::format("no tables of papers: {}", kNoneHere)};
  if (paper.empty()) return all;
  if (std::ranges::find(papers, paper) == papers.end()) refuse("paper", paper, papers);
  std::erase_if(all, [&](const PaperSweep& sweep) { return sweep.paper != paper; });
  return all;
}

PaperSweep paper_sweep(const std::string& name) {
  const std::string wanted = name.ends_with(".yaml") ? name.substr(0, name.size() - 5) : name;
  std::vector<std::string> names;
  for (PaperSweep& sweep : all_sweeps()) {
    if (sweep.name() == wanted) return std::move(sweep);
    names.push_back(sweep.name());
  }
  refuse("table", wanted, names);
}

fs::path sweep_file_of(const std::string& written) {
  std::error_code unknown;
  const auto slash = written.find('/');
  if (written == "-" || fs::exists(written, unknown) || slash == std::string::npos || slash == 0 ||
      written.find('/', slash + 1) != std::string::npos)
    return written;
  const std::string paper = written.substr(0, slash);
  const auto all = all_sweeps();
  const std::vector<std::string> papers = papers_of(all);
  if (std::ranges::find(papers, paper) == papers.end() && nearest_name(paper, papers, 0.4).empty())
    return written;
  return paper_sweep(written).file;
}

}  // namespace abl::sweeps
