// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "statistics/bootstrap.h"
#include "statistics/difference.h"
#include "statistics/paired_t.h"
#include "statistics/power.h"
#include "statistics/summary.h"
#include "storage/table.h"
#include "views/compared.h"
#include "views/comparison.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using protocol::Correction;
using protocol::IntervalBy;
using protocol::Test;
using statistics::Interval;

/// Numbers of one column as its cells print them.
class Printer {
 public:
  Printer(const v1::Column& column, const v1::Cell& cell)
      : unit_{value_named<protocol::Unit>(column.unit())} {
    if (column.has_digits()) digits_ = static_cast<int>(column.digits());
    const std::string mean = cell.text().substr(0, cell.text().find(" ±"));
    const auto point = mean.find('.');
    if (!digits_ && mean.find('e') == std::string::npos && !mean.empty())
      digits_ = point == std::string::npos ? 0 : static_cast<int>(mean.size() - point - 1);
  }
  double factor() const { return storage::unit_factor(unit_); }
  std::string text(double value) const { return storage::format_cell(value, {}, digits_, unit_); }
  /// An end of an interval, with the sign that says on which side of zero it lies: "-0.00".
  std::string bound_text(double value) const {
    return (value < 0 ? "-" : value > 0 ? "+" : "") + text(std::abs(value));
  }
  /// What is zero in these digits has no sign to tell: "±0.00".
  std::string signed_text(double value) const {
    const std::string digits = text(std::abs(value));
    if (digits.starts_with('0') && digits.find_first_of("123456789") == std::string::npos)
      return "±" + digits;
    return bound_text(value);
  }

 private:
  std::optional<int> digits_;
  std::optional<protocol::Unit> unit_;
};

std::optional<Interval> difference_interval(const Compared& of, const protocol::Compare& compare,
                                            double level) {
  const bool is_paired = compare.test == Test::kPaired;
  if (compare.interval == IntervalBy::kBootstrap)
    return is_paired ? statistics::bootstrap_interval(*statistics::differences(of.row, of.baseline),
                                                      {.level = level})
                     : statistics::bootstrap_interval_of_difference(of.row, of.baseline, {.level = level});
  const auto difference = statistics::difference_to_baseline(
      of.row, of.baseline, is_paired ? statistics::Pairing::kBySeed : statistics::Pairing::kNone, level);
  return difference ? difference->interval : std::nullopt;
}

std::string_view kind_of_difference_interval(const protocol::Compare& compare) {
  if (compare.interval == IntervalBy::kBootstrap) return "bootstrap";
  return compare.test == Test::kPaired ? "paired t" : "Welch";
}

std::string why_no_interval(const Sample& sample, IntervalBy by) {
  if (!sample.diverged.empty()) return sample.diverged + " diverged";
  if (sample.values.size() < 2) return "one seed";
  if (statistics::are_equal(sample.values)) return "all seeds gave the same value";
  return by == IntervalBy::kBootstrap ? "the resamples give no interval"
                                      : "the values are too large or too small for an interval";
}

/// What is said of one cell: of its own values, and of those of the row that it is compared with.
class Describer {
 public:
  Describer(const v1::Table& head, const v1::Column& column, v1::Cell& cell)
      : column_{column},
        cell_{cell},
        compare_{compare_of(head)},
        looks_{head.has_sequential() ? std::optional<Looks>{head.sequential()} : std::nullopt},
        sample_{cell},
        print_{column, cell},
        to_{*cell.mutable_statistics()} {}

  /// `baseline`: null where there is none; `id`: its row's.
  void describe(const v1::Cell* baseline, const std::string& id, StatisticsMemo* memo) {
    std::optional<Sample> other;
    std::optional<Compared> of;
    if (baseline) other.emplace(*baseline);
    const bool has_both = other && other->counts() && sample_.counts() && other->runs != sample_.runs;
    std::optional<double> difference, to_see;
    if (has_both) {
      const auto seeds = looks_ ? looks_->seeds(sample_, &*other) : std::vector<std::int64_t>{};
      if (!seeds.empty()) {  // what the last look is of
        of.emplace(Looks::of(sample_, seeds), Looks::of(*other, seeds), compare_.test);
        difference_level_ = looks_->level(seeds.size());
      } else {
        of.emplace(sample_, *other, compare_.test);
        if (looks_) difference_level_.reset();
      }
      const auto ours = statistics::summarise(of->row), theirs = statistics::summarise(of->baseline);
      if (ours && theirs && std::isfinite(ours->mean - theirs->mean)) difference = ours->mean - theirs->mean;
      const bool is_open = cell_.comparison().verdict() == v1::Comparison::VERDICT_NOT_TOLD_APART;
      if (column_.has_see())
        to_see = column_.see() * print_.factor();
      else if (is_open && difference)
        to_see = std::abs(*difference);
    }
    const CellNumbers numbers = numbers_of(of, to_see, memo);
    describe_values(numbers);
    if (!baseline) return;
    to_.set_baseline(id);
    if (!has_both) {
      to_.set_why_no_test(cell_.comparison().why());
      to_.add_lines(fmt::format("not compared with row {}: {}", id, cell_.comparison().why()));
      return;
    }
    describe_difference(*of, difference, numbers, id);
    if (to_see && numbers.more_seeds) describe_power(*to_see, *numbers.more_seeds);
  }

 private:
  CellNumbers numbers_of(const std::optional<Compared>& of, const std::optional<double>& to_see,
                         StatisticsMemo* memo) const {
    const auto compute = [&] {
      CellNumbers numbers;
      if (!sample_.counts()) return numbers;
      const auto seeds = looks_ ? looks_->seeds(sample_) : std::vector<std::int64_t>{};
      if (!looks_)
        numbers.mean = mean_interval(sample_.values, compare_.interval, 1 - kAlpha);
      else if (!seeds.empty())
        numbers.mean =
            mean_interval(Looks::of(sample_, seeds).values, compare_.interval, looks_->level(seeds.size()));
      if (!of) return numbers;
      if (difference_level_) numbers.difference = difference_interval(*of, compare_, *difference_level_);
      numbers.effect = statistics::hedges_g(of->row, of->baseline);
      if (to_see)
        numbers.more_seeds = compare_.test == Test::kPaired
                                 ? statistics::more_pairs_to_see(*to_see, of->row, of->baseline, goal())
                                 : statistics::more_seeds_to_see(*to_see, of->row, of->baseline, goal());
      // with fewer on both sides no way to deal them out is rare enough
      constexpr std::size_t kLeastToPermute = 4;
      const std::size_t seeds_there = std::min(of->row.size(), of->baseline.size());
      if (numbers.more_seeds && compare_.test == Test::kPermutation && seeds_there < kLeastToPermute)
        numbers.more_seeds = std::max<std::size_t>(*numbers.more_seeds, kLeastToPermute - seeds_there);
      return numbers;
    };
    if (!memo || looks_) return compute();  // its level is of the seeds, which the key has not
    const std::vector<double> none;
    const std::string how = fmt::format("{}{} {}", static_cast<int>(compare_.test),
                                        static_cast<int>(compare_.interval), goal().alpha);
    const std::string key =
        key_of(how, sample_.values, none) + (of ? key_of("", of->row, of->baseline, to_see.value_or(0)) : "");
    return memo->cells.get(key, compute);
  }

  /// Of a family of m tests, Holm's first step takes the smallest p-value at α/m: seeds that reach this are
  /// enough whatever the other rows turn out to be.
  statistics::PowerGoal goal() const {
    const auto tests = std::max<std::uint32_t>(1, cell_.comparison().family());
    return {.alpha = compare_.correction == Correction::kHolm ? kAlpha / tests : kAlpha};
  }

  void describe_values(const CellNumbers& numbers) {
    const std::size_t n = sample_.values.size();
    std::string line = fmt::format("{}: {}", n == 1 ? "one seed" : fmt::format("{} seeds", n),
                                   cell_.has_mean() ? "mean " + print_.text(cell_.mean()) : "no mean");
    if (const auto summary = sample_.counts() ? statistics::summarise(sample_.values) : std::nullopt;
        summary && summary->standard_error) {
      to_.set_standard_error(*summary->standard_error);
      line += fmt::format(", s.d. {}, standard error {}", print_.text(*summary->sd),
                          print_.text(*summary->standard_error));
    }
    if (numbers.mean) {
      write(*numbers.mean, *to_.mutable_interval());
      to_.set_interval_kind(std::string{name_of(compare_.interval)});
      line += fmt::format(", 95 % interval {} to {} ({}{})", print_.text(numbers.mean->low),
                          print_.text(numbers.mean->high), name_of(compare_.interval),
                          looks_ ? ", sequential" : "");
    } else {
      to_.set_why_no_interval(looks_ && looks_->seeds(sample_).empty() && sample_.counts()
                                  ? "the first look is taken after more seeds"
                                  : why_no_interval(sample_, compare_.interval));
      line += n == 1 ? ", no interval" : ", no interval: " + to_.why_no_interval();
    }
    to_.add_lines(line);
  }

  void describe_difference(const Compared& of, const std::optional<double>& difference,
                           const CellNumbers& numbers, const std::string& id) {
    to_.set_compared(static_cast<std::uint32_t>(of.row.size()));
    to_.set_baseline_compared(static_cast<std::uint32_t>(of.baseline.size()));
    to_.mutable_unpaired()->Add(of.unpaired.begin(), of.unpaired.end());
    if (difference) {
      to_.set_difference(*difference);
      std::string line = fmt::format("difference to row {}: {}", id, print_.signed_text(*difference));
      if (numbers.difference) {
        write(*numbers.difference, *to_.mutable_difference_interval());
        to_.set_difference_interval_kind(std::string{kind_of_difference_interval(compare_)});
        line += fmt::format(", 95 % interval {} to {} ({}{})", print_.bound_text(numbers.difference->low),
                            print_.bound_text(numbers.difference->high), to_.difference_interval_kind(),
                            looks_ ? ", sequential" : "");
      }
      to_.add_lines(line);
    }
    if (!cell_.has_p()) to_.set_why_no_test(cell_.comparison().why());
    to_.add_lines((cell_.has_p() ? "" : "no test: ") + cell_.comparison().why());
    if (!numbers.effect) return;
    to_.set_g(numbers.effect->g);
    std::string line = fmt::format("Hedges' g {:.2f}", numbers.effect->g);
    if (numbers.effect->interval) {
      write(*numbers.effect->interval, *to_.mutable_g_interval());
      line += fmt::format(", 95 % interval {:.2f} to {:.2f}", numbers.effect->interval->low,
                          numbers.effect->interval->high);
    }
    to_.add_lines(line);
  }

  void describe_power(double to_see, std::size_t more) {
    to_.set_to_see(to_see);
    to_.set_more_seeds(static_cast<std::uint32_t>(more));
    const std::string what =
        print_.text(to_see) + (column_.has_see() ? "" : ", the difference found,") + " with a chance of 80 %";
    to_.add_lines(more == 0
                      ? fmt::format("enough seeds to see {}", what)
                      : fmt::format("about {} more seed{} to see {}", more, more == 1 ? "" : "s", what));
  }

  const v1::Column& column_;
  v1::Cell& cell_;
  const protocol::Compare compare_;
  const std::optional<Looks> looks_;  // of a table to which seeds are added
  std::optional<double> difference_level_ = 1 - kAlpha;
  const Sample sample_;
  const Printer print_;
  v1::CellStatistics& to_;
};

}  // namespace

std::string value_text(const v1::Column& column, const v1::Cell& cell, double value) {
  return Printer{column, cell}.text(value);
}
std::string difference_text(const v1::Column& column, const v1::Cell& cell, double value) {
  return Printer{column, cell}.signed_text(value);
}
std::string bound_text(const v1::Column& column, const v1::Cell& cell, double value) {
  return Printer{column, cell}.bound_text(value);
}

void add_statistics(const v1::Table& head, const v1::TableRow* baseline, v1::TableRow& row,
                    StatisticsMemo* memo) {
  if (baseline && baseline->id() == row.id()) baseline = nullptr;
  for (int index = 0; index < std::min(head.columns_size(), row.cells_size()); ++index) {
    v1::Cell& cell = *row.mutable_cells(index);
    cell.clear_statistics();
    if (!is_compared(head.columns(index)) || cell.runs().empty()) continue;
    Describer{head, head.columns(index), cell}.describe(baseline ? &baseline->cells(index) : nullptr,
                                                        baseline ? baseline->id() : "", memo);
  }
}

void add_statistics(v1::Table& table) {
  std::unordered_map<std::string, const v1::TableRow*> rows;
  for (const auto& row : table.rows()) rows.emplace(row.id(), &row);
  for (auto& row : *table.mutable_rows()) {
    const auto baseline = rows.find(baseline_of(table, row));
    add_statistics(table, baseline == rows.end() ? nullptr : baseline->second, row);
  }
}

}  // namespace abl::views
