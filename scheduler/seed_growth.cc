// SPDX-License-Identifier: Apache-2.0
#include "scheduler/seed_growth.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "protocol/metrics.h"
#include "protocol/number.h"
#include "scheduler/budget.h"
#include "statistics/holm.h"
#include "statistics/interval.h"
#include "statistics/paired_t.h"
#include "statistics/permutation.h"
#include "statistics/welch.h"
#include "storage/sweep_store.h"

namespace abl::scheduler {
namespace {

using statistics::SequentialDesign;
using storage::Database;
using storage::Statement;
using storage::SweepId;
using storage::TrialState;
using sweeps::SeedRule;

constexpr double kAlpha = 1 - statistics::kLevel;

std::vector<double> first(const std::vector<double>& values, std::size_t count) {
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::optional<double> p_of(protocol::Test test, const std::vector<double>& a, const std::vector<double>& b) {
  switch (test) {
    case protocol::Test::kWelch:
      if (const auto welch = statistics::welch_test(a, b)) return welch->p;
      return {};
    case protocol::Test::kPaired:
      if (const auto paired = statistics::paired_t_test(a, b)) return paired->p;
      return {};
    case protocol::Test::kPermutation:
      return statistics::permutation_p(a, b);
  }
  return {};
}

class Decisions {
 public:
  Decisions(const SeedRule& rule, const protocol::Compare& compare, const std::vector<SeededRow>& rows)
      : rule_{rule},
        compare_{compare},
        rows_{rows},
        design_{rule.max - rule.min + 1, statistics::kLevel, kSpending} {
    for (const SeededRow& row : rows) decided_.push_back({.seeds = row.claimed});
  }
  std::vector<SeedDecision> all() {
    rule_.until == SeedRule::Until::kInterval ? by_intervals() : by_comparisons();
    return std::move(decided_);
  }

 private:
  std::string look_text(std::size_t seeds) const {
    return fmt::format("look {} of {}", seeds - rule_.min + 1, design_.looks());
  }
  /// Of a row whose values do not reach the next look: whether that will come.
  bool is_stuck(std::size_t row) {
    if (rows_[row].trouble.empty()) return false;
    decided_[row].open = false;
    decided_[row].why = rows_[row].trouble + ": no look can be taken; 'ablate retry' runs it again";
    return true;
  }
  void end(std::size_t row, std::string why) {
    decided_[row].open = false;
    decided_[row].why = std::move(why);
  }

  void by_intervals() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const SeededRow& row = rows_[i];
      if (row.not_trained) continue;
      const std::size_t n = row.values.size();
      if (n < rule_.min) {
        is_stuck(i);
        continue;
      }
      std::string width = "all seeds agree: no spread for an interval";
      bool narrow = false;
      for (std::size_t seeds = rule_.min; seeds <= n && !narrow; ++seeds) {  // it ends at the first that is
        const auto interval =
            statistics::t_interval(first(row.values, seeds), design_.level_at(seeds - rule_.min));
        if (!interval) continue;
        const double half = (interval->high - interval->low) / 2;
        narrow = half < rule_.bound;
        width = fmt::format("ci({}) is ±{:.3g} after {} seeds ({}), {} {:g}", rule_.column, half, seeds,
                            look_text(seeds), narrow ? "below" : "not below", rule_.bound);
      }
      if (narrow)
        end(i, width);
      else if (n >= rule_.max)
        end(i, fmt::format("{}: that is the most", width));
      else if (!is_stuck(i))
        want(i, n + 1, width);
    }
  }

  void by_comparisons() {
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < rows_.size(); ++i) places.emplace(rows_[i].id, i);
    std::vector<std::optional<double>> p(rows_.size());
    std::vector<std::size_t> looked(rows_.size()), against(rows_.size(), rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto baseline = places.find(rows_[i].baseline);
      if (rows_[i].not_trained || baseline == places.end() || baseline->second == i ||
          rows_[baseline->second].not_trained)
        continue;
      against[i] = baseline->second;
      looked[i] = std::min(rows_[i].values.size(), rows_[baseline->second].values.size());
      std::vector<std::optional<double>> looks;
      for (std::size_t seeds = rule_.min; seeds <= looked[i]; ++seeds)
        looks.push_back(
            p_of(compare_.test, first(rows_[i].values, seeds), first(rows_[baseline->second].values, seeds)));
      p[i] = design_.p(looks);
    }
    const auto corrected = compare_.correction == protocol::Correction::kHolm ? statistics::holm(p) : p;
    std::map<std::size_t, std::vector<std::string>> asking;  // baseline -> rows that are open
    std::map<std::size_t, std::size_t> asked;                // baseline -> seeds
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (against[i] == rows_.size()) {
        if (!rows_[i].not_trained && rows_[i].values.size() >= rule_.min)
          end(i, "it is compared with no other row");
        continue;
      }
      const auto no_more_looks = [&] {
        if (is_stuck(i)) return true;
        const SeededRow& baseline = rows_[against[i]];
        if (baseline.trouble.empty() || baseline.values.size() > looked[i]) return false;
        end(i, fmt::format("row {}, its baseline: {}", baseline.id, baseline.trouble));
        return true;
      };
      if (looked[i] < rule_.min) {
        no_more_looks();
        continue;
      }
      const std::string so_far = corrected[i] ? fmt::format("p = {:.2g} after {} seeds ({}, sequential)",
                                                            *corrected[i], looked[i], look_text(looked[i]))
                                              : fmt::format("no test can be made of {} seeds", looked[i]);
      if (corrected[i] && *corrected[i] < kAlpha) {
        end(i, "decided: " + so_far);
      } else if (looked[i] >= rule_.max) {
        end(i, so_far + ": not decided, and that is the most");
      } else if (!no_more_looks()) {
        want(i, looked[i] + 1, "not decided: " + so_far);
        asking[against[i]].push_back(rows_[i].id);
        asked[against[i]] = std::max(asked[against[i]], looked[i] + 1);
      }
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {  // baselines, for those that are open
      if (std::ranges::find(against, i) == against.end() || is_stuck(i)) continue;
      if (const auto open = asking.find(i); open != asking.end())
        want(i, asked[i],
             fmt::format("{} {} compared with it and not decided", fmt::join(open->second, ", "),
                         open->second.size() == 1 ? "is" : "are"));
      else if (rows_[i].values.size() >= rule_.min && all_ended(against, i))
        end(i, "every row that is compared with it is settled");
    }
  }
  bool all_ended(const std::vector<std::size_t>& against, std::size_t baseline) const {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (against[i] == baseline && decided_[i].open) return false;
    return true;
  }
  void want(std::size_t row, std::size_t seeds, const std::string& why) {
    decided_[row].seeds = std::max(rows_[row].claimed, static_cast<std::uint32_t>(seeds));
    decided_[row].why = why;
  }

  const SeedRule& rule_;
  const protocol::Compare& compare_;
  const std::vector<SeededRow>& rows_;
  const SequentialDesign design_;
  std::vector<SeedDecision> decided_;
};

/// Of the sweep's canonical text.
struct Judged {
  protocol::Compare compare;
  std::string source;  ///< of the column that the rule looks at
  protocol::Take take = protocol::Take::kLast;
};

Judged read_judged(Database& db, SweepId sweep, const SeedRule& rule) {
  Judged judged;
  db.prepared("SELECT source, take, better FROM sweep_column WHERE sweep_id = :sweep AND name = :name")
      .bind(":sweep", sweep)
      .bind(":name", rule.column)
      .one([&](const Statement& row) {
        judged.source = row.text(0);
        judged.take = value_named<protocol::Take>(row.text(1)).value_or(protocol::Take::kLast);
        if (judged.take == protocol::Take::kBest) {
          auto better = value_named<protocol::Better>(row.text(2)).value_or(protocol::Better::kNone);
          if (better == protocol::Better::kNone) better = protocol::better_by_name(judged.source);
          judged.take = better == protocol::Better::kLower ? protocol::Take::kMin : protocol::Take::kMax;
        }
        return true;
      });
  const auto compare = db.prepared("SELECT canonical -> '$.table.compare' FROM sweep WHERE id = :sweep")
                           .bind(":sweep", sweep)
                           .one([](const Statement& row) { return row.is_null(0) ? "{}" : row.text(0); })
                           .value_or("{}");
  const auto words = nlohmann::json::parse(compare);
  judged.compare.test =
      value_named<protocol::Test>(words.value("test", "welch")).value_or(protocol::Test::kWelch);
  judged.compare.correction = value_named<protocol::Correction>(words.value("correction", "holm"))
                                  .value_or(protocol::Correction::kHolm);
  return judged;
}

std::vector<SeededRow> read_rows(Database& db, SweepId sweep, const Judged& judged) {
  std::vector<SeededRow> rows;
  const auto baseline = db.prepared("SELECT baseline FROM sweep WHERE id = :sweep")
                            .bind(":sweep", sweep)
                            .one([](const Statement& row) { return row.text(0); })
                            .value_or("");
  db.prepared("SELECT id, baseline, not_trained FROM sweep_row WHERE sweep_id = :sweep ORDER BY position")
      .bind(":sweep", sweep)
      .all([&](const Statement& row) {
        const std::string own = row.text(1);
        rows.push_back({.id = row.text(0),
                        .baseline = own.empty() ? baseline : own,
                        .not_trained = !row.text(2).empty()});
        return true;
      });
  auto& lines = db.prepared(R"sql(
      SELECT st.row, st.seed, t.state, st.withdrawn,
             CASE :take WHEN 'min' THEN m.min WHEN 'max' THEN m.max WHEN 'mean' THEN m.sum / m.finite
                        ELSE COALESCE(m.last, m.last_kind) END,
             m.run_id IS NOT NULL, m.count > m.finite
      FROM sweep_trial st JOIN trial t ON t.id = st.trial_id
      LEFT JOIN metric_summary m ON m.run_id = t.run_id AND t.state = 'completed'
        AND m.metric_id = (SELECT id FROM metric WHERE name = :metric)
      WHERE st.sweep_id = :sweep ORDER BY st.row, st.seed_index)sql");
  lines.bind(":take", name_of(judged.take)).bind(":metric", judged.source).bind(":sweep", sweep);
  while (lines.step()) {
    SeededRow& row = rows.at(static_cast<std::size_t>(lines.integer(0)));
    const TrialState state = storage::trial_state(lines.text(2));
    const bool whole = row.values.size() == row.claimed++;
    const auto trouble = [&](const char* what) {
      if (row.trouble.empty()) row.trouble = fmt::format("seed {} {}", lines.integer(1), what);
    };
    if (state == TrialState::kFailed) {
      trouble("failed");
    } else if (state == TrialState::kCancelled || lines.integer(3) != 0) {
      trouble("is cancelled");
    } else if (state == TrialState::kHeld) {
      trouble("is held");
    } else if (state != TrialState::kCompleted) {
      row.waits = true;
    } else if (lines.integer(5) == 0) {
      trouble("did not report the metric");
    } else {
      const auto special = protocol::non_finite_value(lines.text(4));
      if (special || lines.integer(6) != 0)
        trouble("diverged");
      else if (whole)
        row.values.push_back(lines.real(4));
    }
  }
  return rows;
}

/// As a sweep file gives it (sweeps::expand).
storage::RenewedTrial with_seed(const storage::TrialRecord& trial, std::int64_t seed) {
  nlohmann::json document = nlohmann::json::parse(trial.config);
  document["seed"] = seed;
  const std::string config = config::canonical_json(document);
  return {config, config::config_hash(config), trial.identity.result_version};
}

/// One round. Returns: whether a row got a seed, which may be stored already.
bool grow_once(Database& db, SweepId sweep, const SeedRule& rule, Time now) {
  storage::SweepStore store{db};
  const Judged judged = read_judged(db, sweep, rule);
  const std::vector<SeededRow> rows = read_rows(db, sweep, judged);
  const auto decisions = decide_seeds(rule, judged.compare, rows);
  std::map<std::string, storage::RowGrowth> before;
  for (storage::RowGrowth& row : store.growth(sweep)) before.emplace(row.row, std::move(row));
  bool grown = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SeedDecision& decision = decisions[i];
    if (decision.why.empty()) continue;
    const std::uint32_t seeds = std::min(decision.seeds, rule.max);
    for (std::uint32_t seed = rows[i].claimed; seed < seeds; ++seed, grown = true)
      store.add_seed(sweep, rows[i].id, static_cast<int>(seed), now, with_seed);
    const storage::RowGrowth stored{.row = rows[i].id,
                                    .seeds = std::max(seeds, rows[i].claimed),
                                    .open = decision.open,
                                    .why = decision.why};
    if (const auto known = before.find(rows[i].id); known == before.end() || known->second != stored)
      store.set_growth(sweep, stored, now);
  }
  return grown;
}

}  // namespace

std::vector<SeedDecision> decide_seeds(const SeedRule& rule, const protocol::Compare& compare,
                                       const std::vector<SeededRow>& rows) {
  return Decisions{rule, compare, rows}.all();
}

void grow_seeds(Database& db, SweepId sweep, Time now) {
  const auto rule =
      db.prepared(
            "SELECT seeds_rule FROM sweep WHERE id = :sweep AND seeds_rule <> '' AND state <> 'cancelled'")
          .bind(":sweep", sweep)
          .one([](const Statement& row) { return row.text(0); });
  if (!rule) return;
  const SeedRule parsed = SeedRule::parse(*rule);
  bool grown = false;
  while (grow_once(db, sweep, parsed, now)) grown = true;  // max times at most: a seed more each
  if (grown) refresh_budget(db, sweep, now);               // before one of them can be leased
}

void grow_after(Database& db, storage::TrialId trial, Time now) {
  const auto sweeps = db.prepared(R"sql(
      SELECT DISTINCT s.id FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
      WHERE st.trial_id = :trial AND st.withdrawn = 0 AND s.seeds_rule <> '')sql")
                          .bind(":trial", trial)
                          .all([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); });
  for (const SweepId sweep : sweeps) {
    try {
      storage::Transaction part{db, storage::Transaction::kSavepoint};
      grow_seeds(db, sweep, now);
      part.commit();
    } catch (const Error& error) {  // what its worker says must be stored whatever a rule does
      if (error.code() != Code::kInvalidArgument && error.code() != Code::kNotFound)
        throw;  // a full disk, say
      log_error("no seeds are added to sweep {}: {}", sweep, error.what());
    }
  }
}

}  // namespace abl::scheduler
