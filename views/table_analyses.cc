// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/number.h"
#include "statistics/agreement.h"
#include "statistics/anova.h"
#include "views/compared.h"
#include "views/comparison.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;

/// Pairs of rows are looked at one by one: 2,000 rows take some 10 ms.
constexpr std::size_t kMostRanked = 2000;
/// Beyond it a table takes its time already.
constexpr int kMostAnalysed = 5000;  // rows
/// Multiplications of an analysis of variance: about 20 ms.
constexpr double kMostWork = 2e7;

void compare_with_paper(const v1::Table& table, int index, const std::vector<int>& references,
                        google::protobuf::RepeatedPtrField<v1::PaperAgreement>& all) {
  std::vector<std::optional<double>> ours, theirs;
  for (const auto& row : table.rows()) {
    const v1::Cell& cell = row.cells(index);
    const bool known = !cell.paper().empty() && Sample{cell}.counts();
    ours.push_back(known ? std::optional{cell.mean()} : std::nullopt);
    const auto printed = protocol::printed_number(cell.paper());
    theirs.push_back(known && printed ? std::optional{printed->value} : std::nullopt);
  }
  std::vector<double> a, b, a_less, b_less;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (!ours[i] || !theirs[i]) continue;
    a.push_back(*ours[i]);
    b.push_back(*theirs[i]);
    const auto to = static_cast<std::size_t>(references[i]);
    if (references[i] < 0 || to == i || !ours[to] || !theirs[to]) continue;
    a_less.push_back(*ours[i] - *ours[to]);
    b_less.push_back(*theirs[i] - *theirs[to]);
  }
  if (a.size() < 2) return;
  v1::PaperAgreement& said = *all.Add();
  said.set_column(table.columns(index).name());
  said.set_rows(static_cast<std::uint32_t>(a.size()));
  if (a.size() > kMostRanked) {
    said.set_why(fmt::format("{} rows: the order of {} at most is compared", a.size(), kMostRanked));
  } else if (const auto kendall = statistics::kendall_tau_b(a, b)) {
    said.set_tau(kendall->tau);
    if (kendall->interval)
      write(*kendall->interval, *said.mutable_tau_interval());
    else
      said.set_why(fmt::format("{} rows: an interval needs five", a.size()));
  } else {
    said.set_why("all values of a side are equal: they have no order");
  }
  if (const auto signs = statistics::sign_agreement(a_less, b_less)) {
    said.set_signs(static_cast<std::uint32_t>(signs->compared));
    said.set_same_signs(static_cast<std::uint32_t>(signs->agree));
    write(signs->interval, *said.mutable_same_share_interval());
  }
}

// --- factors ---

/// The factors of a sweep whose rows are called by their levels ("lr=0.1,name=sgd"), and each row's level of
/// each. Factors of which one follows from another, as zipped ones do, are one.
struct Factors {
  std::vector<std::string> names;
  std::vector<std::vector<std::size_t>> levels;  // of each row
  std::vector<std::size_t> counts;               // of levels, of each factor
};

/// Whether two factors have the same rows at each level.
bool vary_together(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  std::map<std::size_t, std::size_t> there, back;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (there.emplace(a[i], b[i]).first->second != b[i] || back.emplace(b[i], a[i]).first->second != a[i])
      return false;
  return true;
}

std::optional<Factors> factors_of(const v1::Table& table) {
  if (table.rows_size() < 2) return std::nullopt;
  std::vector<std::string> names;
  std::vector<std::vector<std::size_t>> columns;  // of each factor, the level of each row
  std::vector<std::map<std::string, std::size_t>> known;
  const auto rows = static_cast<std::size_t>(table.rows_size());
  for (std::size_t row = 0; row < rows; ++row) {
    const auto levels = levels_of(table.rows(static_cast<int>(row)).id());
    if (!levels) return std::nullopt;
    for (const auto& [factor, level] : *levels) {
      const auto place = static_cast<std::size_t>(std::ranges::find(names, factor) - names.begin());
      if (place == names.size()) {
        names.push_back(factor);
        columns.emplace_back(rows, 0);  // 0: it does not apply
        known.emplace_back();
      }
      columns[place][row] = known[place].emplace(level, known[place].size() + 1).first->second;
    }
  }
  Factors factors;
  std::vector<std::vector<std::size_t>> kept;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t count = known[i].size() + (std::ranges::find(columns[i], 0u) != columns[i].end());
    if (count < 2) continue;
    const auto same =
        std::ranges::find_if(kept, [&](const auto& other) { return vary_together(other, columns[i]); });
    if (same != kept.end()) {
      factors.names[static_cast<std::size_t>(same - kept.begin())] += " & " + names[i];
      continue;
    }
    factors.names.push_back(names[i]);
    factors.counts.push_back(count);
    kept.push_back(columns[i]);
  }
  if (kept.empty()) return std::nullopt;
  for (std::size_t row = 0; row < rows; ++row) {
    auto& levels = factors.levels.emplace_back();
    for (const auto& column : kept) levels.push_back(column[row]);
  }
  return factors;
}

/// About how many multiplications the analysis takes.
double work_of(const Factors& factors, bool with_interactions) {
  double columns = 1, effects = 0;
  for (std::size_t i = 0; i < factors.counts.size(); ++i) {
    columns += static_cast<double>(factors.counts[i] - 1);
    ++effects;
    for (std::size_t j = i + 1; with_interactions && j < factors.counts.size(); ++j) {
      columns += static_cast<double>((factors.counts[i] - 1) * (factors.counts[j] - 1));
      ++effects;
    }
  }
  return static_cast<double>(factors.levels.size()) * columns * columns * effects;
}

void analyse(const v1::Table& table, int index, const Factors& factors, v1::FactorAnalysis& said) {
  using statistics::Interactions;
  said.set_column(table.columns(index).name());
  std::vector<std::string> why;
  std::vector<statistics::FactorCell> cells;
  std::size_t filled = 0;
  for (std::size_t i = 0; i < factors.levels.size(); ++i) {
    const v1::TableRow& row = table.rows(static_cast<int>(i));
    Sample sample{row.cells(index)};
    if (!sample.diverged.empty())
      return said.set_why(fmt::format("row {}, {} diverged", row.id(), sample.diverged));
    filled += !sample.values.empty();
    cells.push_back({.levels = factors.levels[i], .values = std::move(sample.values)});
  }
  if (filled < 2) return said.set_why("fewer than two rows have values");
  if (filled < cells.size()) why.push_back(fmt::format("{} of {} rows have values", filled, cells.size()));
  auto interactions = Interactions::kTwoWay;
  if (work_of(factors, true) > kMostWork) {
    interactions = Interactions::kNone;
    if (work_of(factors, false) > kMostWork)
      return said.set_why("too many levels for an analysis of variance");
    if (factors.names.size() > 1) why.push_back("too many levels for interactions: factors alone");
  }
  const auto result = statistics::anova(cells, interactions);
  if (!result) return said.set_why("the values have no spread, or are too large or too small");
  said.set_residual_df(static_cast<std::uint32_t>(result->residual_df));
  said.set_residual(result->residual);
  said.set_total(result->total);
  for (const auto& effect : result->effects) {
    v1::FactorEffect& to = *said.add_effects();
    for (const std::size_t factor : effect.factors) to.add_factors(factors.names[factor]);
    to.set_df(static_cast<std::uint32_t>(effect.df));
    to.set_sum_of_squares(effect.sum_of_squares);
    to.set_eta_squared(effect.eta_squared);
    to.set_partial_eta_squared(effect.partial_eta_squared);
    if (effect.f) to.set_f(*effect.f);
    if (effect.p && !table.has_sequential()) to.set_p(*effect.p);
    if (effect.df == 0 || result->residual_df == 0 || result->residual == 0) continue;
    const double mean_square = result->residual / static_cast<double>(result->residual_df);
    const double omega = (effect.sum_of_squares - static_cast<double>(effect.df) * mean_square) /
                         (result->total + mean_square);
    if (std::isfinite(omega)) to.set_omega_squared(omega);
  }
  if (table.has_sequential())
    why.push_back(
        "no p: seeds were added while their values were looked at, and it would not allow for that");
  if (result->residual_df == 0)
    why.push_back("one value for each combination: nothing is left over to test against");
  else if (result->residual == 0)
    why.push_back("the seeds agree in every row: nothing is left over to test against");
  std::string text;
  for (const std::string& reason : why) text += (text.empty() ? "" : "; ") + reason;
  said.set_why(text);
}

}  // namespace

void add_analyses(v1::Table& table) {
  table.clear_paper_agreement();
  table.clear_factor_analyses();
  const std::vector<int> references = references_of(table);
  const bool is_long = table.rows_size() > kMostAnalysed;
  const auto factors = is_long ? std::nullopt : factors_of(table);
  const bool has_factors = is_long && levels_of(table.rows(1).id());
  for (int index = 0; index < table.columns_size(); ++index) {
    if (!is_compared(table.columns(index))) continue;
    if (table.columns(index).has_paper())
      compare_with_paper(table, index, references, *table.mutable_paper_agreement());
    if (factors) analyse(table, index, *factors, *table.add_factor_analyses());
    if (!has_factors) continue;
    auto& said = *table.add_factor_analyses();
    said.set_column(table.columns(index).name());
    said.set_why(fmt::format("{} rows: an analysis of variance is made of {} at most", table.rows_size(),
                             kMostAnalysed));
  }
}

}  // namespace abl::views
