// SPDX-License-Identifier: Apache-2.0
#include "views/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "statistics/welch.h"
#include "storage/types.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using protocol::Better;

/// A row's values in one column.
struct Values {
  explicit Values(const v1::Cell& cell) {
    for (const auto& run : cell.runs()) {
      all.push_back(run.value());
      runs.push_back(run.run());
    }
    const auto lost = std::ranges::find_if(
        cell.runs(), [](const auto& run) { return run.not_finite() > 0 || !std::isfinite(run.value()); });
    if (lost != cell.runs().end()) diverged = fmt::format("seed {}", lost->seed());
    mean = cell.mean();
  }
  /// A mean that may be compared.
  bool counts() const { return !all.empty() && diverged.empty() && std::isfinite(mean); }
  std::vector<double> all;
  std::vector<std::uint32_t> runs;
  std::string diverged;  ///< the first seed that was not finite all along, or empty
  double mean = 0;
};

std::string p_text(double p) { return p < 1e-4 ? "p < 0.0001" : fmt::format("p = {:.2g}", p); }

/// Why no test can be made of two samples that both count.
std::string why_untested(const Values& a, const Values& b) {
  if (a.all.size() < 2 || b.all.size() < 2)
    return fmt::format("n = {} and {}: a test needs two seeds on both sides", a.all.size(), b.all.size());
  if (statistics::are_equal(a.all) && statistics::are_equal(b.all))
    return "all seeds agree on both sides: no spread for a test";
  return "the values are too large or too small for a test";
}

/// A message that says no direction has none.
Better wanted(const v1::Column& column) {
  return value_named<Better>(column.better()).value_or(Better::kNone);
}

void compare_with_baseline(const v1::Column& column, const Values& baseline, const Values& row,
                           v1::Cell& cell) {
  v1::Comparison& comparison = *cell.mutable_comparison();
  comparison.set_verdict(v1::Comparison::VERDICT_NOT_TOLD_APART);
  if (!row.counts() || !baseline.counts()) {
    comparison.set_why(!row.diverged.empty() ? row.diverged + " diverged"
                       : !baseline.diverged.empty()
                           ? fmt::format("{} of the baseline diverged", baseline.diverged)
                       : baseline.all.empty() ? "the baseline has no value yet"
                                              : "the values are too large for a mean");
    return;
  }
  const auto test = statistics::welch_test(row.all, baseline.all);
  if (!test) {
    comparison.set_why(why_untested(row, baseline));
    return;
  }
  cell.set_p(test->p);
  const bool differs = test->p < kSignificance;
  comparison.set_why(fmt::format("Welch's t-test over n = {} and {} seeds, two-sided: {}{}", row.all.size(),
                                 baseline.all.size(), p_text(test->p),
                                 differs ? "" : fmt::format(", not below {}", kSignificance)));
  if (!differs) return;
  const Better better = wanted(column);
  comparison.set_verdict(better == Better::kNone                        ? v1::Comparison::VERDICT_DIFFERENT
                         : (better == Better::kHigher) == (test->t > 0) ? v1::Comparison::VERDICT_BETTER
                                                                        : v1::Comparison::VERDICT_WORSE);
}

/// The row with the best mean, told to be the best only where every other row differs from it. Rows of the
/// same runs are one.
void find_best(const v1::Column& column, const std::vector<Values>& rows, int index, v1::Table& table) {
  const Better better = wanted(column);
  if (better == Better::kNone) return;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].counts()) continue;
    const bool ahead = first && (better == Better::kHigher ? rows[i].mean > rows[*first].mean
                                                           : rows[i].mean < rows[*first].mean);
    if (!first || ahead) first = i;
  }
  if (!first) return;
  const auto say = [&](bool best, const std::string& why) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].runs != rows[*first].runs) continue;
      auto& comparison = *table.mutable_rows(static_cast<int>(i))->mutable_cells(index)->mutable_comparison();
      comparison.set_best(best);
      comparison.set_best_why(why);
    }
  };
  double largest = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].counts() || rows[i].runs == rows[*first].runs) continue;
    const std::string& id = table.rows(static_cast<int>(i)).id();
    const auto test = statistics::welch_test(rows[*first].all, rows[i].all);
    if (!test || !(test->p < kSignificance)) {
      return say(false, fmt::format("the best mean, but no significant difference from row {}: {}", id,
                                    test ? fmt::format("{}, not below {}", p_text(test->p), kSignificance)
                                         : why_untested(rows[*first], rows[i])));
    }
    largest = std::max(largest, test->p);
  }
  if (largest >= 0)  // else there is no other row
    say(true, fmt::format("the best of its column: every other row differs, {} at most", p_text(largest)));
}

}  // namespace

void compare_cells(v1::Table& table) {
  const auto baseline = std::ranges::find(table.rows(), table.baseline(), &v1::TableRow::id);
  for (int index = 0; index < table.columns_size(); ++index) {
    const v1::Column& column = table.columns(index);
    if (column.kind() != v1::Column::KIND_METRIC) continue;
    std::vector<Values> values;
    for (const auto& row : table.rows()) values.emplace_back(row.cells(index));
    if (!table.baseline().empty() && baseline != table.rows().end()) {
      const auto reference = static_cast<std::size_t>(baseline - table.rows().begin());
      for (std::size_t i = 0; i < values.size(); ++i)
        if (i != reference && !values[i].all.empty())
          compare_with_baseline(column, values[reference], values[i],
                                *table.mutable_rows(static_cast<int>(i))->mutable_cells(index));
    }
    find_best(column, values, index, table);
  }
}

}  // namespace abl::views
