// SPDX-License-Identifier: Apache-2.0
#include "statistics/anova.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/error.h"
#include "statistics/distributions.h"
#include "statistics/summary.h"

namespace abl::statistics {
namespace {

using Column = std::vector<double>;  // a number for each cell

double dot(const Column& a, const Column& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void subtract(const Column& direction, Column& from) {
  const double along = dot(direction, from);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] -= along * direction[i];
}

/// Orthonormal directions that columns span, one after the other.
class Basis {
 public:
  /// Adds what the column has beyond the basis. Returns: false where that is rounding alone.
  bool add(Column column) {
    const double size = std::sqrt(dot(column, column));
    double left = without_directions(column);
    if (left < 0.7 * size) left = without_directions(column);  // takes what the first pass left by rounding
    if (!(left > 1e-9 * size)) return false;
    for (double& x : column) x /= left;
    directions_.push_back(std::move(column));
    return true;
  }
  std::size_t size() const { return directions_.size(); }
  /// What the directions from `first` on explain of y.
  double explained(const Column& y, std::size_t first) const {
    double squares = 0;
    for (std::size_t i = first; i < directions_.size(); ++i) {
      const double along = dot(directions_[i], y);
      squares += along * along;
    }
    return squares;
  }
  double unexplained(Column y) const {
    const double left = without_directions(y);
    return left * left;
  }

 private:
  /// Takes from the column what the basis spans of it. Returns: the norm of what is left.
  double without_directions(Column& column) const {
    for (const Column& direction : directions_) subtract(direction, column);
    return std::sqrt(dot(column, column));
  }

  std::vector<Column> directions_;
};

/// An effect as columns of a design.
struct Term {
  std::vector<std::size_t> factors;
  std::vector<Column> columns;
};

bool contains(const Term& one, const Term& other) {
  return std::ranges::includes(one.factors, other.factors);
}

/// For each level of a factor but the last: 1 in its cells, −1 in those of the last, else 0.
std::vector<Column> contrasts(const std::vector<const FactorCell*>& cells, std::size_t factor) {
  std::set<std::size_t> levels;
  for (const FactorCell* cell : cells) levels.insert(cell->levels[factor]);
  const std::size_t last = *levels.rbegin();
  levels.erase(last);
  std::vector<Column> columns;
  for (const std::size_t level : levels) {
    Column& column = columns.emplace_back();
    for (const FactorCell* cell : cells)
      column.push_back(cell->levels[factor] == level ? 1 : cell->levels[factor] == last ? -1 : 0);
  }
  return columns;
}

/// All terms of the model, their columns weighted.
std::vector<Term> terms_of(const std::vector<const FactorCell*>& cells, Interactions interactions,
                           const Column& weights) {
  std::vector<Term> terms;
  const std::size_t factors = cells.front()->levels.size();
  for (std::size_t i = 0; i < factors; ++i) terms.push_back({.factors = {i}, .columns = contrasts(cells, i)});
  const auto product = [](Column a, const Column& b) {
    std::ranges::transform(a, b, a.begin(), std::multiplies{});
    return a;
  };
  if (interactions == Interactions::kTwoWay) {
    for (std::size_t i = 0; i < factors; ++i) {
      for (std::size_t j = i + 1; j < factors; ++j) {
        Term term{.factors = {i, j}, .columns = {}};
        for (const Column& a : terms[i].columns)
          for (const Column& b : terms[j].columns) term.columns.push_back(product(a, b));
        terms.push_back(std::move(term));
      }
    }
  }
  for (Term& term : terms)
    for (Column& column : term.columns) column = product(std::move(column), weights);
  return terms;
}

Basis basis_of(const Column& intercept, const std::vector<const Term*>& terms) {
  Basis basis;
  basis.add(intercept);
  for (const Term* term : terms)
    for (const Column& column : term->columns) basis.add(column);
  return basis;
}

std::vector<const FactorCell*> cells_with_values(const std::vector<FactorCell>& cells) {
  std::vector<const FactorCell*> filled;
  for (const FactorCell& cell : cells) {
    if (cell.levels.size() != cells.front().levels.size())
      throw Error{Code::kInvalidArgument,
                  fmt::format("a cell has {} levels: expected {}, as in the first cell", cell.levels.size(),
                              cells.front().levels.size())};
    if (!cell.values.empty()) filled.push_back(&cell);
  }
  return filled;
}

/// Cells as points of a regression: a cell counts by its mean, with the root of its size as weight, and its
/// own spread is residual.
struct Points {
  Column weights;
  Column y;           ///< weight · (mean of the cell − mean of all) / unit
  double within = 0;  ///< squares around the means of cells, in units²
};

/// Nothing where a cell's mean or deviation is too large for a double.
std::optional<Points> points_of(const std::vector<const FactorCell*>& cells, double mean, double unit) {
  Points points;
  for (const FactorCell* cell : cells) {
    const auto summary = summarise(cell->values);
    if (!summary || (summary->n > 1 && !summary->sd)) return std::nullopt;
    const auto n = static_cast<double>(summary->n);
    const double sd = summary->sd.value_or(0) / unit;
    points.weights.push_back(std::sqrt(n));
    points.y.push_back(std::sqrt(n) * (summary->mean - mean) / unit);
    points.within += sd * sd * (n - 1);
  }
  return points;
}

/// In units² of the points; `total` and `residual` as in Anova.
Effect effect_of(const Term& term, const std::vector<Term>& terms, const Points& points, double total,
                 double residual, std::size_t residual_df) {
  std::vector<const Term*> others;
  for (const Term& other : terms)
    if (!contains(other, term)) others.push_back(&other);
  Basis basis = basis_of(points.weights, others);
  const std::size_t before = basis.size();
  for (const Column& column : term.columns) basis.add(column);
  const double explained = basis.explained(points.y, before);
  Effect effect{.factors = term.factors,
                .df = basis.size() - before,
                .sum_of_squares = explained,
                .eta_squared = explained / total,
                .partial_eta_squared = explained > 0 ? explained / (explained + residual) : 0,
                .f = {},
                .p = {}};
  if (effect.df == 0 || residual == 0) return effect;
  const auto df = static_cast<double>(effect.df), left = static_cast<double>(residual_df);
  const double f = explained / df / (residual / left), p = f_upper_p(f, df, left);
  if (!std::isfinite(f) || !std::isfinite(p)) return effect;
  effect.f = f;
  effect.p = p;
  return effect;
}

}  // namespace

std::optional<Anova> anova(const std::vector<FactorCell>& cells, Interactions interactions) {
  const auto filled = cells_with_values(cells);
  if (filled.empty() || filled.front()->levels.empty()) return std::nullopt;
  std::vector<double> all;
  for (const FactorCell* cell : filled) all.insert(all.end(), cell->values.begin(), cell->values.end());
  const auto overall = summarise(all);
  if (!overall || !overall->sd || *overall->sd == 0) return std::nullopt;

  // in units of the deviation of all: squares of tiny values would vanish
  const double unit = *overall->sd, squared_unit = unit * unit;
  const auto total = static_cast<double>(all.size() - 1);
  const auto [low, high] = std::ranges::minmax(all);
  const double rounding =
      4 * std::numeric_limits<double>::epsilon() * std::max(std::abs(low), std::abs(high)) / unit;
  const auto points = points_of(filled, overall->mean, unit);
  if (!points || rounding > 1e-4 || !std::isnormal(squared_unit) || !std::isfinite(total * squared_unit))
    return std::nullopt;

  const std::vector<Term> terms = terms_of(filled, interactions, points->weights);
  std::vector<const Term*> all_terms;
  for (const Term& term : terms) all_terms.push_back(&term);
  const Basis full = basis_of(points->weights, all_terms);
  const std::size_t residual_df = all.size() - full.size();
  double residual = points->within + full.unexplained(points->y);
  if (residual_df == 0 || residual <= rounding * rounding * total) residual = 0;  // no more than rounding

  Anova result{.effects = {},
               .residual_df = residual_df,
               .residual = residual * squared_unit,
               .total = total * squared_unit};
  for (const Term& term : terms) {
    Effect& effect =
        result.effects.emplace_back(effect_of(term, terms, *points, total, residual, residual_df));
    effect.sum_of_squares *= squared_unit;
  }
  return result;
}

}  // namespace abl::statistics
