// SPDX-License-Identifier: Apache-2.0
// When a row has seeds enough: pure rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "scheduler/seed_growth.h"
#include "statistics/permutation.h"

namespace abl::scheduler {
namespace {

using storage::TrialState;
using sweeps::SeedRule;

constexpr double kFirst = 1e-9;          // a turn before all others
constexpr std::size_t kEnoughEqual = 3;  // seeds that agree in all that they reported: it is no chance

std::string seeds_text(const std::vector<std::int64_t>& seeds) {
  return fmt::format("seed{} {}", seeds.size() == 1 ? "" : "s", fmt::join(seeds, ", "));
}

std::string look_text(const SeedJudge& judge, std::size_t seeds) {
  return fmt::format("look {} of {}", seeds - judge.rule.min + 1, judge.rule.max - judge.rule.min + 1);
}

/// Why a row gets no more whatever its values are; empty: it may. A seed that ended without a value is left
/// out, and the next takes its place, while no more of them did than have one.
std::string why_stopped(const SeededRow& row) {
  if (!row.sample.diverged.empty())
    return row.sample.diverged + " diverged: the table has no mean of this row, so no look can be taken";
  if (!row.stop.empty()) return row.stop + ": no look can be taken; 'ablate retry' runs it again";
  if (row.sample.settled >= row.claimed && row.without.size() > row.sample.values.size())
    return seeds_text(row.without) + " ended without a value: 'ablate retry' runs them again";
  return {};
}

/// The next seed of a row, or of two that need the same; none where one has not ended.
void ask_for_next(const SeedJudge& judge, const SeededRow& row, const SeededRow* baseline,
                  SeedDecision& decision) {
  if (row.claimed == 0 || (baseline && baseline->claimed == 0)) return;  // one that is tuned first
  const std::uint32_t settled =
      baseline ? std::min(row.sample.settled, baseline->sample.settled) : row.sample.settled;
  if (settled >= judge.rule.max) {
    decision.open = false;
    decision.why += ": that is the most";
    return;
  }
  decision.seeds = settled + 1;
}

bool are_equal(const SeededRow& row, std::span<const std::int64_t> seeds) {
  return std::ranges::all_of(seeds, [&](std::int64_t seed) {
    const std::int64_t digest = row.curves.at(seed);
    return digest != 0 && digest == row.curves.at(seeds.front());
  });
}

bool report_the_same(const SeededRow& a, const SeededRow& b, std::span<const std::int64_t> seeds) {
  return std::ranges::all_of(seeds, [&](std::int64_t seed) {
    return a.curves.at(seed) != 0 && a.curves.at(seed) == b.curves.at(seed);
  });
}

SeedDecision ended(std::string why) { return {.open = false, .why = std::move(why)}; }

}  // namespace

SeedJudge::SeedJudge(const SeedRule& the_rule, const protocol::Compare& the_compare,
                     std::vector<std::int64_t> the_order)
    : rule{the_rule},
      compare{the_compare},
      order{std::move(the_order)},
      looks{rule.min, rule.max - rule.min + 1, order, kSpending} {}

SeededRow::SeededRow(std::string the_id, const std::vector<storage::SeedCell>& seeds)
    : id{std::move(the_id)} {
  sample.finite_mean = true;
  for (const storage::SeedCell& cell : seeds) {
    const bool has_ended = cell.state == TrialState::kCompleted || cell.state == TrialState::kFailed ||
                           cell.state == TrialState::kCancelled;
    if (cell.index == claimed) ++claimed;
    if (has_ended && cell.index == sample.settled) ++sample.settled;
    if (cell.diverged && sample.diverged.empty()) sample.diverged = fmt::format("seed {}", cell.seed);
    if (cell.value) {
      sample.values.push_back(*cell.value);
      sample.seeds.push_back(cell.seed);
      sample.runs.push_back(cell.run);
      curves.emplace(cell.seed, cell.curves);
    } else if (cell.state == TrialState::kCancelled || cell.state == TrialState::kHeld) {
      if (stop.empty())
        stop =
            fmt::format("seed {} is {}", cell.seed, cell.state == TrialState::kHeld ? "held" : "cancelled");
    } else if (has_ended) {
      without.push_back(cell.seed);
    }
  }
}

SeedDecision decide(const SeedJudge& judge, const SeededRow& row) {
  const SeedRule& rule = judge.rule;
  if (!row.sample.diverged.empty()) return ended(why_stopped(row));
  const auto seeds = judge.looks.seeds(row.sample);
  SeedDecision decision{.turn = seeds.empty() ? kFirst : 1};
  for (std::size_t count = rule.min; count <= seeds.size(); ++count) {  // it ends at the first that is narrow
    const auto values = views::Looks::of(row.sample, std::span{seeds}.first(count)).values;
    const auto interval = views::mean_interval(values, judge.compare.interval, judge.looks.level(count));
    if (!interval) {
      decision.why = fmt::format("{} seeds agree: no spread for an interval", count);
      continue;
    }
    const double half = (interval->high - interval->low) / 2;
    const bool narrow = half < rule.bound;
    decision.why = fmt::format("ci({}) is ±{:.3g} after {} seeds ({}), {} {:g}", rule.column, half, count,
                               look_text(judge, count), narrow ? "below" : "not below", rule.bound);
    decision.turn = std::clamp(rule.bound / half, kFirst, 1.0);
    if (narrow) return ended(decision.why);
  }
  if (seeds.size() >= kEnoughEqual && are_equal(row, seeds))
    return ended(fmt::format("all {} seeds reported the same numbers: it seems to make no use of its seed",
                             seeds.size()));
  if (std::string why = why_stopped(row); !why.empty()) return ended(std::move(why));
  if (seeds.empty() && !row.without.empty())
    decision.why = seeds_text(row.without) + " ended without a value: another takes its place";
  ask_for_next(judge, row, nullptr, decision);
  return decision;
}

SeedLook look(const SeedJudge& judge, const SeededRow& row, const SeededRow& baseline) {
  const auto seeds = judge.looks.seeds(row.sample, &baseline.sample);
  if (seeds.empty()) return {};
  return {.p = judge.looks.test_of(row.sample, baseline.sample, judge.compare, nullptr).p,
          .looked = static_cast<std::uint32_t>(seeds.size())};
}

SeedDecision decide(const SeedJudge& judge, const SeededRow& row, const SeededRow& baseline,
                    const SeedLook& look, std::optional<double> below) {
  const auto seeds = judge.looks.seeds(row.sample, &baseline.sample);
  const std::string so_far = look.p ? fmt::format("p = {:.2g} after {} seeds of both ({}, sequential)",
                                                  *look.p, look.looked, look_text(judge, look.looked))
                                    : fmt::format("no test can be made of {} seeds", look.looked);
  if (!below) return ended("decided: " + so_far);
  if (seeds.size() >= std::max<std::size_t>(kEnoughEqual, judge.rule.min) &&
      report_the_same(row, baseline, seeds))
    return ended(
        fmt::format("{} seeds reported the same numbers as row {}, its baseline: no number of seeds "
                    "tells them apart",
                    seeds.size(), baseline.id));
  if (std::string why = why_stopped(row); !why.empty()) return ended(std::move(why));
  if (const std::string why = why_stopped(baseline); !why.empty())
    return ended(fmt::format("row {}, its baseline: {}", baseline.id, why));
  if (judge.compare.test == protocol::Test::kPermutation &&
      2 * (seeds.size() + 1) > statistics::kMostPermuted)
    return ended(fmt::format("not decided: {}; a permutation test is of {} values at most", so_far,
                             statistics::kMostPermuted));
  SeedDecision decision{.turn = look.p ? std::clamp(*look.p, 2 * kFirst, 1.0) : 1};
  if (!seeds.empty()) {
    decision.why = "not decided: " + so_far;
    if (look.p) decision.why += fmt::format(", to be below {:.2g}", *below);
  } else {
    decision.turn = kFirst;
    auto without = row.without;
    without.insert(without.end(), baseline.without.begin(), baseline.without.end());
    if (!without.empty())
      decision.why = seeds_text(without) + " ended without a value: another takes its place";
  }
  ask_for_next(judge, row, &baseline, decision);
  return decision;
}

}  // namespace abl::scheduler
