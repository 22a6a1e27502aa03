// SPDX-License-Identifier: Apache-2.0
#include "views/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "statistics/holm.h"
#include "storage/types.h"
#include "views/compared.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using protocol::Better;
using protocol::Correction;

/// A message that says no direction has none.
Better wanted(const v1::Column& column) {
  return value_named<Better>(column.better()).value_or(Better::kNone);
}

std::string seeds_text(const std::vector<std::int64_t>& seeds) {
  constexpr std::size_t kNamed = 8;
  std::string text = seeds.size() == 1 ? "seed" : "seeds";
  for (std::size_t i = 0; i < std::min(seeds.size(), kNamed); ++i)
    text += fmt::format("{} {}", i ? "," : "", seeds[i]);
  return seeds.size() > kNamed ? text + fmt::format(" and {} more", seeds.size() - kNamed) : text;
}

/// One column, while it is compared.
class Comparer {
 public:
  Comparer(v1::Table& table, int index, const protocol::Compare& compare, StatisticsMemo* memo)
      : table_{table}, index_{index}, column_{table.columns(index)}, compare_{compare}, memo_{memo} {
    if (table.has_sequential()) looks_.emplace(table.sequential());
    samples_.reserve(static_cast<std::size_t>(table.rows_size()));
    for (const auto& row : table.rows()) samples_.emplace_back(row.cells(index));
    find_same_runs();
  }

  /// `references`: of each row the one that it is compared with, or -1.
  void compare_with_baselines(const std::vector<int>& references) {
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      cell(i).clear_p();
      cell(i).clear_p_corrected();
      cell(i).clear_comparison();
    }
    std::vector<Tested> tests(samples_.size());
    std::vector<std::optional<double>> p(samples_.size());
    std::uint32_t family = 0;
    // the same runs held against the same row are one test
    const auto test_row = [&](std::size_t row) {
      const std::size_t first = first_of_[row];
      return references[first] == references[row] ? first : row;
    };
    // with looks all comparisons that were planned count, also those without a value yet: which are called
    // different by a look is what the later ones leave so
    const bool is_planned =
        looks_ && std::ranges::any_of(table_.rows(), [](const v1::TableRow& row) { return row.planned(); });
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const bool counts = is_planned && table_.rows(static_cast<int>(i)).planned();
      if (counts) p[i] = 1, ++family;
      if (!is_compared_here(references, i)) continue;
      tests[i] = test(samples_[i], reference(references, i));
      if (!tests[i].p || (is_planned ? !counts : test_row(i) != i)) continue;
      p[i] = tests[i].p;
      family += counts ? 0 : 1;
    }
    const auto corrected = this->corrected(p);
    for (std::size_t i = 0; i < samples_.size(); ++i)
      if (is_compared_here(references, i))
        write(i, tests[i], corrected[test_row(i)], family, reference(references, i));
  }

  /// The rows with the best mean, and with the best of the others: those that the test does not tell from
  /// them share the place. Rows that cannot be tested have none, nor has anybody where the best mean cannot
  /// be tested or none is told from it. Rows of the same runs are one.
  void rank() {
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (!cell(i).has_comparison()) continue;
      v1::Comparison& comparison = *cell(i).mutable_comparison();
      comparison.clear_best(), comparison.clear_second(), comparison.clear_best_why();
    }
    if (wanted(column_) == Better::kNone) return;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < samples_.size(); ++i)
      if (samples_[i].counts() && first_of_[i] == i) open.push_back(i);
    if (open.size() < 2) return;
    const std::size_t best = take_best(open);
    const Place first = place_of(best, open);
    const std::string untested = first.untested.empty()
                                     ? ""
                                     : fmt::format("; without row {}, which cannot be tested ({})",
                                                   id(first.untested.front()), first.why_untested);
    if (first.others.empty()) {
      say(best, fmt::format("the best mean, but no significant difference from {}",
                            first.tied.empty() ? fmt::format("any other row: row {}: {}",
                                                             id(first.untested.front()), first.why_untested)
                                               : fmt::format("row {}: {}, not below {}",
                                                             id(first.tied.front()), p_of(first), kAlpha)));
      return;
    }
    const std::string best_text =
        first.tied.empty() && first.untested.empty()
            ? fmt::format("the best of its column: every other row differs, {}", least_of(first))
        : first.tied.empty()
            ? fmt::format("the best of its column: every row that can be tested differs, {}", least_of(first))
            : fmt::format("the best mean of its column; {} not told from it", rows_text(first.tied));
    mark(best, &v1::Comparison::set_best, best_text + untested);
    for (const std::size_t row : first.tied)
      mark(row, &v1::Comparison::set_best,
           fmt::format("among the best of its column: not told from row {}", id(best)));
    if (first.others.size() + first.tied.size() < 2) return;  // of two rows one is better: that is said
    std::vector<std::size_t> rest = first.others;
    const std::size_t second = take_best(rest);
    const Place next = place_of(second, rest);
    mark(second, &v1::Comparison::set_second,
         fmt::format("the second of its column: it differs from the best, row {}", id(best)));
    for (const std::size_t row : next.tied)
      mark(row, &v1::Comparison::set_second,
           fmt::format("among the second of its column: not told from row {}", id(second)));
  }

 private:
  /// Of the rows that are held against one.
  struct Place {
    std::vector<std::size_t> tied, others, untested;
    double p_tied = 1;         // of the first of the tied
    double largest = -1;       // of those that differ
    std::string why_untested;  // the first
  };

  /// Rows of a sweep may have the same trials: they are told apart from others once.
  void find_same_runs() {
    std::unordered_multimap<std::uint32_t, std::size_t> by_first_run;
    first_of_.resize(samples_.size());
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      first_of_[i] = i;
      if (samples_[i].runs.empty()) continue;
      const auto [begin, end] = by_first_run.equal_range(samples_[i].runs.front());
      const auto same = std::find_if(
          begin, end, [&](const auto& known) { return samples_[known.second].runs == samples_[i].runs; });
      if (same == end) {
        by_first_run.emplace(samples_[i].runs.front(), i);
      } else {
        first_of_[i] = same->second;
        copies_[same->second].push_back(i);
      }
    }
  }

  bool is_compared_here(const std::vector<int>& references, std::size_t row) const {
    const int to = references[row];
    return to >= 0 && static_cast<std::size_t>(to) != row && !samples_[row].values.empty();
  }
  const Sample& reference(const std::vector<int>& references, std::size_t row) const {
    return samples_[static_cast<std::size_t>(references[row])];
  }
  const std::string& id(std::size_t row) const { return table_.rows(static_cast<int>(row)).id(); }
  v1::Cell& cell(std::size_t row) {
    return *table_.mutable_rows(static_cast<int>(row))->mutable_cells(index_);
  }
  std::vector<std::optional<double>> corrected(const std::vector<std::optional<double>>& p) const {
    return compare_.correction == Correction::kHolm ? statistics::holm(p) : p;
  }

  void write(std::size_t row, const Tested& test, const std::optional<double>& corrected,
             std::uint32_t family, const Sample& baseline) {
    v1::Cell& to = cell(row);
    v1::Comparison& comparison = *to.mutable_comparison();
    comparison.set_verdict(v1::Comparison::VERDICT_NOT_TOLD_APART);
    if (!test.p || !corrected) {
      comparison.set_why(test.why_not);
      return;
    }
    to.set_p(*test.p);
    to.set_p_corrected(*corrected);
    comparison.set_family(family);
    const bool differs = *corrected < kAlpha;
    std::string over =
        fmt::format("over n = {} and {} seeds", samples_[row].values.size(), baseline.values.size());
    if (compare_.test == protocol::Test::kPaired) {
      const Compared of{samples_[row], baseline, compare_.test};
      over = fmt::format("over {} seeds that both rows have", of.row.size());
      if (!of.unpaired.empty()) over += fmt::format(" ({} without a pair left out)", seeds_text(of.unpaired));
    }
    if (looks_) {
      const std::size_t seeds = looks_->seeds(samples_[row], &baseline).size();
      over = fmt::format("over the first {} seeds of both, sequential (look {} of {})", seeds,
                         seeds - table_.sequential().min() + 1, table_.sequential().looks());
    }
    const bool is_corrected = compare_.correction == Correction::kHolm && family > 1;
    comparison.set_why(fmt::format(
        "{} {}, two-sided: {}{}{}", words_of(compare_.test), over, p_text(*test.p),
        is_corrected ? fmt::format("; corrected for {} tests (Holm): {}", family, p_text(*corrected)) : "",
        differs ? "" : fmt::format(", not below {}", kAlpha)));
    if (!differs) return;
    const Better better = wanted(column_);
    comparison.set_verdict(better == Better::kNone ? v1::Comparison::VERDICT_DIFFERENT
                           : (better == Better::kHigher) == (test.difference > 0)
                               ? v1::Comparison::VERDICT_BETTER
                               : v1::Comparison::VERDICT_WORSE);
  }

  Tested test(const Sample& row, const Sample& other) const {
    return looks_ ? looks_->test_of(row, other, compare_, memo_) : test_of(row, other, compare_, memo_);
  }

  /// Takes the row with the best mean out of `rows`, the first of several.
  std::size_t take_best(std::vector<std::size_t>& rows) const {
    const bool high = wanted(column_) == Better::kHigher;
    const auto best = std::ranges::min_element(rows, [&](std::size_t a, std::size_t b) {
      return high ? samples_[a].mean > samples_[b].mean : samples_[a].mean < samples_[b].mean;
    });
    const std::size_t row = *best;
    rows.erase(best);
    return row;
  }

  /// How `rows` stand to the best of them, which is not among them.
  Place place_of(std::size_t best, const std::vector<std::size_t>& rows) {
    Place place;
    std::vector<std::optional<double>> p;
    for (const std::size_t row : rows) {
      const Tested test = this->test(samples_[best], samples_[row]);
      p.push_back(test.p);
      if (test.p) continue;
      if (place.untested.empty()) place.why_untested = test.why_not;
      place.untested.push_back(row);
    }
    const auto all = corrected(p);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!all[i]) continue;
      if (*all[i] < kAlpha) {
        place.others.push_back(rows[i]);
        place.largest = std::max(place.largest, *all[i]);
      } else {
        if (place.tied.empty()) place.p_tied = *all[i];
        place.tied.push_back(rows[i]);
      }
    }
    return place;
  }

  static std::string p_of(const Place& place) { return p_text(place.p_tied); }
  static std::string least_of(const Place& place) { return p_text(place.largest) + " at most"; }
  std::string rows_text(const std::vector<std::size_t>& rows) const {
    return rows.size() == 1 ? fmt::format("row {} is", id(rows.front()))
                            : fmt::format("{} other rows are", rows.size());
  }

  /// To all rows of these runs.
  template <class Say>
  void each_of(std::size_t row, const Say& say) {
    say(*cell(row).mutable_comparison());
    const auto copies = copies_.find(row);
    if (copies == copies_.end()) return;
    for (const std::size_t copy : copies->second) say(*cell(copy).mutable_comparison());
  }
  void say(std::size_t row, const std::string& why) {
    each_of(row, [&](v1::Comparison& comparison) { comparison.set_best_why(why); });
  }
  void mark(std::size_t row, void (v1::Comparison::*set)(bool), const std::string& why) {
    each_of(row, [&](v1::Comparison& comparison) {
      (comparison.*set)(true);
      comparison.set_best_why(why);
    });
  }

  v1::Table& table_;
  int index_;
  const v1::Column& column_;
  const protocol::Compare& compare_;
  StatisticsMemo* memo_;
  std::optional<Looks> looks_;  // of a table to which seeds are added
  std::vector<Sample> samples_;
  std::vector<std::size_t> first_of_;  // of each row the first with the same runs
  std::unordered_map<std::size_t, std::vector<std::size_t>> copies_;  // of such a first one the others
};

/// What is compared how, in a line.
std::string legend_of(const v1::Table& table, const protocol::Compare& compare) {
  return fmt::format("{}, two-sided, {}, p < {}{}", words_of(compare.test),
                     compare.correction != Correction::kHolm ? "not corrected for the number of rows"
                     : table.has_pivot() ? "Holm's correction over the rows of a metric, of all levels"
                                         : "Holm's correction over the rows of a column",
                     kAlpha,
                     table.has_pivot()
                         ? fmt::format("; each row against the baseline with the same {}", table.pivot().by())
                         : "");
}

}  // namespace

std::vector<int> references_of(const v1::Table& table) {
  std::unordered_map<std::string_view, int> places;
  for (int i = 0; i < table.rows_size(); ++i) places.emplace(table.rows(i).id(), i);
  std::vector<int> references;
  for (const auto& row : table.rows()) {
    const auto place = places.find(baseline_of(table, row));
    references.push_back(place == places.end() ? -1 : place->second);
  }
  return references;
}

std::optional<Levels> levels_of(const std::string& id) {
  Levels levels;
  if (id == "base") return levels;
  for (std::size_t start = 0; start <= id.size();) {
    const std::size_t end = std::min(id.find(',', start), id.size()), equals = id.find('=', start);
    if (equals >= end || equals == start) return std::nullopt;
    levels.emplace_back(id.substr(start, equals - start), id.substr(equals + 1, end - equals - 1));
    start = end + 1;
  }
  return levels;
}

void compare_cells(v1::Table& table, StatisticsMemo* memo) {
  const protocol::Compare compare = compare_of(table);
  v1::Compare& said = *table.mutable_compare();
  said.set_test(std::string{name_of(compare.test)});
  said.set_interval(std::string{name_of(compare.interval)});
  said.set_correction(std::string{name_of(compare.correction)});
  said.set_alpha(kAlpha);
  said.set_legend(legend_of(table, compare));
  const std::vector<int> references = references_of(table);
  for (int index = 0; index < table.columns_size(); ++index) {
    if (!is_compared(table.columns(index))) continue;
    Comparer comparer{table, index, compare, memo};
    comparer.compare_with_baselines(references);
    comparer.rank();
  }
  add_analyses(table);
}

void rank_cells(v1::Table& table, StatisticsMemo* memo) {
  const protocol::Compare compare = compare_of(table);
  for (int index = 0; index < table.columns_size(); ++index)
    if (is_compared(table.columns(index))) Comparer{table, index, compare, memo}.rank();
  add_analyses(table);
}

}  // namespace abl::views
