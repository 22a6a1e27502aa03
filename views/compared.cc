// SPDX-License-Identifier: Apache-2.0
#include "views/compared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "statistics/bootstrap.h"
#include "statistics/paired_t.h"
#include "statistics/permutation.h"
#include "statistics/summary.h"
#include "statistics/welch.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using protocol::Test;

template <class E>
E named(const std::string& word, E usual) {
  return value_named<E>(word).value_or(usual);
}

/// Why no test can be made of two rows that both count.
std::string why_untested(const Compared& of, Test test) {
  const bool is_paired = test == Test::kPaired;
  if (is_paired && of.row.size() < 2)
    return fmt::format("{} seed{} on both sides: a paired test needs two", of.row.size(),
                       of.row.size() == 1 ? "" : "s");
  if (of.row.size() < 2 || of.baseline.size() < 2)
    return fmt::format("n = {} and {}: a test needs two seeds on both sides", of.row.size(),
                       of.baseline.size());
  if (test == Test::kPermutation && of.row.size() + of.baseline.size() > statistics::kMostPermuted)
    return fmt::format("n = {} and {}: the exact permutation test takes {} values at most", of.row.size(),
                       of.baseline.size(), statistics::kMostPermuted);
  if (is_paired && statistics::are_equal(*statistics::differences(of.row, of.baseline)))
    return "every seed differs by the same: no spread for a test";
  if (statistics::are_equal(of.row) && statistics::are_equal(of.baseline))
    return "all seeds agree on both sides: no spread for a test";
  return "the values are too large or too small for a test";
}

std::optional<double> p_of(const Compared& of, Test test, StatisticsMemo* memo) {
  switch (test) {
    case Test::kWelch: {
      const auto result = statistics::welch_test(of.row, of.baseline);
      return result ? std::optional{result->p} : std::nullopt;
    }
    case Test::kPaired: {
      const auto result = statistics::paired_t_test(of.row, of.baseline);
      return result ? std::optional{result->p} : std::nullopt;
    }
    case Test::kPermutation: {
      // without a spread every arrangement says the same
      if (statistics::are_equal(of.row) && statistics::are_equal(of.baseline)) return std::nullopt;
      const auto compute = [&] { return statistics::permutation_p(of.row, of.baseline); };
      return memo ? memo->permutations.get(key_of("", of.row, of.baseline), compute) : compute();
    }
  }
  return std::nullopt;
}

}  // namespace

Sample::Sample(const v1::Cell& cell)
    : mean{cell.mean()}, finite_mean{std::isfinite(cell.mean())}, settled{cell.settled()} {
  if (cell.diverged_size() > 0) diverged = fmt::format("seed {}", cell.diverged(0));
  const auto count = static_cast<std::size_t>(cell.runs_size());
  values.reserve(count), seeds.reserve(count), runs.reserve(count);
  for (const auto& run : cell.runs()) {
    values.push_back(run.value());
    seeds.push_back(run.seed());
    runs.push_back(run.run());
    if (diverged.empty() && !std::isfinite(run.value())) diverged = fmt::format("seed {}", run.seed());
  }
  summary = statistics::summarise(values);
}

Compared::Compared(const Sample& of_row, const Sample& of_baseline, Test test) {
  if (test != Test::kPaired) {
    row = of_row.values;
    baseline = of_baseline.values;
    return;
  }
  std::map<std::int64_t, double> theirs;
  for (std::size_t i = 0; i < of_baseline.values.size(); ++i)
    theirs.emplace(of_baseline.seeds[i], of_baseline.values[i]);
  for (std::size_t i = 0; i < of_row.values.size(); ++i) {
    const auto pair = theirs.find(of_row.seeds[i]);
    if (pair == theirs.end()) {
      unpaired.push_back(of_row.seeds[i]);
      continue;
    }
    row.push_back(of_row.values[i]);
    baseline.push_back(pair->second);
    theirs.erase(pair);
  }
  for (const auto& [seed, value] : theirs) unpaired.push_back(seed);
  std::ranges::sort(unpaired);
}

std::string key_of(std::string_view what, const std::vector<double>& row, const std::vector<double>& baseline,
                   double number) {
  std::string key{what};
  const auto add = [&key](const void* bytes, std::size_t size) {
    key.append(static_cast<const char*>(bytes), size);
  };
  const std::size_t size = row.size();
  add(&size, sizeof size);
  add(&number, sizeof number);
  add(row.data(), row.size() * sizeof(double));
  add(baseline.data(), baseline.size() * sizeof(double));
  return key;
}

protocol::Compare compare_of(const v1::Table& table) {
  const protocol::Compare usual;
  const v1::Compare& said = table.compare();
  return {.test = named(said.test(), usual.test),
          .interval = named(said.interval(), usual.interval),
          .correction = named(said.correction(), usual.correction)};
}

std::optional<statistics::Interval> mean_interval(const std::vector<double>& values, protocol::IntervalBy by,
                                                  double level) {
  return by == protocol::IntervalBy::kT ? statistics::t_interval(values, level)
                                        : statistics::bootstrap_interval(values, {.level = level});
}

std::string_view words_of(Test test) {
  switch (test) {
    case Test::kWelch:
      return "Welch's t-test";
    case Test::kPaired:
      return "paired t-test";
    case Test::kPermutation:
      return "permutation test";
  }
  return {};
}

Tested test_of(const Sample& row, const Sample& baseline, const protocol::Compare& compare,
               StatisticsMemo* memo) {
  Tested result;
  if (!row.counts() || !baseline.counts()) {
    result.why_not = !row.diverged.empty() ? row.diverged + " diverged"
                     : !baseline.diverged.empty()
                         ? fmt::format("{} of the baseline diverged", baseline.diverged)
                     : row.values.empty()      ? "no value yet"
                     : baseline.values.empty() ? "the baseline has no value yet"
                                               : "the values are too large for a mean";
    return result;
  }
  if (row.runs == baseline.runs) {
    result.why_not = "the same runs as the baseline's";
    return result;
  }
  if (compare.test == Test::kWelch && row.summary && baseline.summary) {  // of many rows: nothing is copied
    result.difference = row.summary->mean - baseline.summary->mean;
    if (const auto test = statistics::welch_test_of(*row.summary, *baseline.summary)) {
      result.p = test->p;
      return result;
    }
  }
  const Compared of{row, baseline, compare.test};
  const auto ours = statistics::summarise(of.row), theirs = statistics::summarise(of.baseline);
  if (ours && theirs) result.difference = ours->mean - theirs->mean;
  result.p = p_of(of, compare.test, memo);
  if (!result.p) result.why_not = why_untested(of, compare.test);
  return result;
}

Looks::Looks(const v1::Sequential& sequential)
    : Looks{sequential.min(),
            sequential.looks(),
            {sequential.seeds().begin(), sequential.seeds().end()},
            sequential.spending() == "pocock" ? statistics::Spending::kPocock
                                              : statistics::Spending::kOBrienFleming} {}

Looks::Looks(std::size_t min, std::size_t looks, std::vector<std::int64_t> order,
             statistics::Spending spending)
    : min_{min}, order_{std::move(order)}, design_{looks, 1 - kAlpha, spending} {}

std::vector<std::int64_t> Looks::seeds(const Sample& row, const Sample* baseline) const {
  const std::size_t settled =
      std::min<std::size_t>(order_.size(), baseline ? std::min(row.settled, baseline->settled) : row.settled);
  const std::size_t most = min_ + design_.looks() - 1;
  const std::unordered_set<std::int64_t> mine(row.seeds.begin(), row.seeds.end());
  std::unordered_set<std::int64_t> theirs;
  if (baseline) theirs.insert(baseline->seeds.begin(), baseline->seeds.end());
  std::vector<std::int64_t> seeds;
  for (std::size_t i = 0; i < settled && seeds.size() < most; ++i)
    if (mine.contains(order_[i]) && (!baseline || theirs.contains(order_[i]))) seeds.push_back(order_[i]);
  if (seeds.size() < min_) seeds.clear();
  return seeds;
}

Sample Looks::of(const Sample& sample, std::span<const std::int64_t> seeds) {
  Sample part = sample;
  part.values.clear(), part.seeds.clear();
  std::unordered_map<std::int64_t, double> values;
  for (std::size_t i = 0; i < sample.seeds.size(); ++i) values.emplace(sample.seeds[i], sample.values[i]);
  for (const std::int64_t seed : seeds) {
    part.values.push_back(values.at(seed));
    part.seeds.push_back(seed);
  }
  part.summary = statistics::summarise(part.values);
  return part;
}

Tested Looks::test_of(const Sample& row, const Sample& baseline, const protocol::Compare& compare,
                      StatisticsMemo* memo) const {
  const std::vector<std::int64_t> last = seeds(row, &baseline);
  if (last.empty() || !row.counts() || !baseline.counts() || row.runs == baseline.runs) {
    Tested result = views::test_of(row, baseline, compare, memo);
    if (result.p) result.why_not = fmt::format("the first look is taken when both rows have {} seeds", min_);
    result.p.reset();
    return result;
  }
  Tested newest;
  std::vector<std::optional<double>> looks;
  for (std::size_t count = min_; count <= last.size(); ++count) {
    const std::span first{last.data(), count};
    newest = views::test_of(of(row, first), of(baseline, first), compare, memo);
    looks.push_back(newest.p);
  }
  newest.p = design_.p(looks);
  if (newest.p) newest.why_not.clear();
  return newest;
}

std::string p_text(double p) { return p < 1e-4 ? "p < 0.0001" : fmt::format("p = {:.2g}", p); }

}  // namespace abl::views
