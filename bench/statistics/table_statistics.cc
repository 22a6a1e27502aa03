// SPDX-License-Identifier: Apache-2.0
// What the statistics of a table cost: rows with seeds, a baseline, a grid of two factors,
// the paper's column.
//   build/bench/table_statistics [ROWS [SEEDS [REPETITIONS]]]      (100, 10, 15)
// First each part by itself, then as tables have them: from the stored values to the message with everything
// in it, and of a table of 100,000 trials the page that a browser asks for. Medians with the lowest and
// highest of the repetitions. Nothing is asserted.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "statistics/agreement.h"
#include "statistics/anova.h"
#include "statistics/bootstrap.h"
#include "statistics/difference.h"
#include "statistics/holm.h"
#include "statistics/interval.h"
#include "statistics/permutation.h"
#include "statistics/power.h"
#include "statistics/summary.h"
#include "storage/table.h"
#include "views/comparison.h"
#include "views/convert.h"
#include "views/packed_table.h"
#include "views/table_notes.h"

namespace {

namespace statistics = abl::statistics;
using Values = std::vector<double>;

double sink = 0;  // what is computed is used

/// The values of all rows: 60 to 80 with a deviation of 0.3, to two digits, as an accuracy.
std::vector<Values> rows_of(std::size_t count, std::size_t seeds) {
  std::mt19937_64 random{1};
  std::normal_distribution<double> noise{0, 0.3};
  std::vector<Values> rows(count);
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t seed = 0; seed < seeds; ++seed)
      rows[row].push_back(
          std::round((60 + 20.0 * static_cast<double>(row * 7 % count) / static_cast<double>(count) +
                      noise(random)) *
                     100) /
          100);
  return rows;
}

void measure(const std::string& what, int repetitions, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count());
  }
  std::ranges::sort(times);
  fmt::print("{:<44} {:8.3f} ms ({:.3f} to {:.3f})\n", what, times[times.size() / 2], times.front(),
             times.back());
}

/// A table as the store reads it: called by two factors' levels, with the paper's values.
abl::storage::Table table_of(const std::vector<Values>& rows, const std::string& compare) {
  abl::storage::Table table{.sweep = "bench", .attributes_json = "{\"compare\":" + compare + "}"};
  table.columns.push_back({.name = "acc", .source = "val/top1", .better = abl::protocol::Better::kHigher});
  std::uint32_t run = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    auto& line = table.rows.emplace_back();
    line.id = fmt::format("lr={},depth={}", row / 10, row % 10);
    line.cells.emplace_back();
    abl::storage::Cell& cell = line.cells.back();
    for (std::size_t seed = 0; seed < rows[row].size(); ++seed)
      cell.values.push_back(
          {.run = ++run, .trial = run, .seed = static_cast<std::int64_t>(seed), .value = rows[row][seed]});
    const auto summary = statistics::summarise(rows[row]);
    cell.mean = summary->mean;
    cell.sd = summary->sd;
    cell.n = cell.of = static_cast<std::uint32_t>(rows[row].size());
    cell.text = abl::storage::format_cell(cell.mean, cell.sd, 2, {});
    if (rows.size() <= 1000) cell.paper = fmt::format("{:.2f}", *cell.mean + (row % 3 == 0 ? 3 : 0));
  }
  table.baseline = table.rows.front().id;
  return table;
}

void measure_tables(const std::vector<Values>& rows, int repetitions) {
  using abl::views::PackedTable;
  for (const char* compare :
       {"{}", R"({"test":"paired"})", R"({"test":"permutation"})", R"({"interval":"bootstrap"})"}) {
    const auto table = table_of(rows, compare);
    measure(fmt::format("the table with all statistics, {}", compare), repetitions, [&] {
      auto message = abl::views::to_proto(table);
      abl::views::add_statistics(message);
      sink += message.rows_size();
    });
  }
  const auto large = rows_of(10'000, 10);
  for (const char* compare : {"{}", R"({"test":"permutation","interval":"bootstrap"})"}) {
    fmt::print("100,000 trials, {}\n", compare);
    auto table = table_of(large, compare);
    const auto memo = std::make_shared<abl::views::StatisticsMemo>();
    std::shared_ptr<PackedTable> packed;
    const auto pack = [&] {  // as a table is kept (views/table_cache.h)
      abl::views::TableArena arena;
      auto& message = arena.new_table();
      abl::views::to_proto(table, memo.get(), message);
      packed = std::make_shared<PackedTable>(std::move(message), memo, abl::views::noted(table));
    };
    const auto page = [&] { sink += packed->part({.count = 200, .with_statistics = true}).rows_size(); };
    measure("  tests, ranks", 1, pack);
    measure("  200 rows with statistics", 1, page);
    table.rows[100].cells[0].values[0].value += 1;
    measure("  tests and ranks, after one value changed", repetitions, pack);
    measure("  200 rows with statistics, after that", 3, page);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  const auto rows =
      rows_of(static_cast<std::size_t>(argument(1, 100)), static_cast<std::size_t>(argument(2, 10)));
  const int repetitions = argument(3, 15);
  const Values& baseline = rows.front();

  std::vector<statistics::FactorCell> cells;
  Values means, of_paper, to_baseline;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    cells.push_back({.levels = {row / 10, row % 10}, .values = rows[row]});
    means.push_back(statistics::summarise(rows[row])->mean);
    of_paper.push_back(means.back() + (row % 3 == 0 ? 3 : 0));
    to_baseline.push_back(means.back() - means.front());
  }
  const auto each = [&](const auto& work) {
    return [&rows, work] {
      for (const Values& row : rows) work(row);
    };
  };
  const auto add = [](const auto& interval) {
    if (interval) sink += interval->low;
  };
  const std::vector<std::pair<std::string, std::function<void()>>> parts{
      {"n, mean, s.d., standard error",
       each([](const Values& row) { sink += statistics::summarise(row)->mean; })},
      {"t interval", each([&](const Values& row) { add(statistics::t_interval(row)); })},
      {"BCa bootstrap, 2,000 resamples",
       each([&](const Values& row) { add(statistics::bootstrap_interval(row)); })},
      {"difference, Welch, interval; Holm",
       [&] {
         std::vector<std::optional<double>> p;
         for (const Values& row : rows) {
           const auto difference = statistics::difference_to_baseline(row, baseline);
           p.push_back(difference->test ? std::optional{difference->test->p} : std::nullopt);
         }
         sink += statistics::holm(p).back().value_or(0);
       }},
      {"difference, paired t, interval", each([&](const Values& row) {
         sink += statistics::difference_to_baseline(row, baseline, statistics::Pairing::kBySeed)->value;
       })},
      {"permutation test",
       each([&](const Values& row) { sink += statistics::permutation_p(row, baseline).value_or(0); })},
      {"permutation test of pairs",
       each([&](const Values& row) { sink += statistics::paired_permutation_p(row, baseline).value_or(0); })},
      {"Hedges' g with interval", each([&](const Values& row) {
         if (const auto g = statistics::hedges_g(row, baseline)) sink += g->g;
       })},
      {"more seeds to see 0.3", each([&](const Values& row) {
         sink += static_cast<double>(statistics::more_seeds_to_see(0.3, row, baseline).value_or(0));
       })},
      {"ANOVA of two factors with interaction", [&] { sink += statistics::anova(cells)->residual; }},
      {"Kendall's tau-b, agreement of signs",
       [&] {
         sink += statistics::kendall_tau_b(means, of_paper)->tau;
         sink += statistics::sign_agreement(to_baseline, of_paper)->share;
       }},
  };
  fmt::print("{} rows, {} seeds, {} repetitions\n", rows.size(), baseline.size(), repetitions);
  for (const auto& [what, work] : parts) measure(what, repetitions, work);
  measure("all of it", repetitions, [&] {
    for (const auto& [what, work] : parts) work();
  });
  measure_tables(rows, repetitions);
  return sink == 0;
}
