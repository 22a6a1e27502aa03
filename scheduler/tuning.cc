// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/log.h"
#include "config/document/result_version.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "scheduler/apart.h"
#include "scheduler/budget.h"
#include "scheduler/renewal.h"
#include "scheduler/seed_growth.h"
#include "storage/provenance_store.h"
#include "storage/sweep_store.h"

namespace abl::scheduler {
namespace {

using storage::Database;
using storage::RowTuning;
using storage::Statement;
using storage::SweepId;
using storage::TunedPoint;
using storage::TuningChoice;
using storage::TuningStore;

/// Mean over the seeds; none where one of them has no value.
std::optional<double> mean_of(const TunedPoint& point) {
  if (point.values_by_seed.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& value : point.values_by_seed) {
    if (!value) return std::nullopt;
    sum += *value;
  }
  const double mean = sum / static_cast<double>(point.values_by_seed.size());
  return std::isfinite(mean) ? std::optional{mean} : std::nullopt;
}

std::vector<const TunedPoint*> of_rung(const RowTuning& row, int rung) {
  std::vector<const TunedPoint*> points;
  for (const TunedPoint& point : row.points)
    if (point.rung == rung && point.trials.total() > 0) points.push_back(&point);
  return points;
}

/// Those with a value, the best first, of equal ones the first of the design.
std::vector<std::pair<const TunedPoint*, double>> ranked(const std::vector<const TunedPoint*>& points,
                                                         protocol::Better better) {
  std::vector<std::pair<const TunedPoint*, double>> known;
  for (const TunedPoint* point : points)
    if (const auto mean = mean_of(*point)) known.emplace_back(point, *mean);
  std::ranges::stable_sort(known, [better](const auto& a, const auto& b) {
    return better == protocol::Better::kHigher ? a.second > b.second : a.second < b.second;
  });
  return known;
}

std::string values_text(const std::map<std::string, std::string>& values) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : values) parts.push_back(fmt::format("{} {}", key, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// What is chosen of the last rung's points.
TuningChoice choice_of(const RowTuning& row, const sweeps::Tune& tune,
                       const std::vector<const TunedPoint*>& last, std::size_t budget) {
  std::set<int> tried, incomplete;
  std::string trouble;
  for (const TunedPoint& point : row.points) {
    if (point.trials.total() == 0) continue;
    tried.insert(point.point);
    if (mean_of(point)) continue;
    incomplete.insert(point.point);
    if (trouble.empty()) trouble = fmt::format("point {}: {}", point.point, point.trouble);
  }
  TuningChoice choice{.row = row.row,
                      .point = {},
                      .values = {},
                      .value = {},
                      .means = {},
                      .completed = static_cast<int>(tried.size() - incomplete.size()),
                      .budget = static_cast<int>(budget),
                      .why = {}};
  for (const TunedPoint* point : last) choice.means.emplace_back(point->point, mean_of(*point));
  const auto order = ranked(last, tune.better);
  const std::string lacking = incomplete.empty() ? std::string{}
                                                 : fmt::format("{} of {} points without a value ({})",
                                                               incomplete.size(), budget, trouble);
  if (order.empty()) {
    choice.why = fmt::format("cannot be tuned: {}", lacking);
    return choice;
  }
  choice.point = order.front().first->point;
  choice.values = order.front().first->values;
  choice.value = order.front().second;
  choice.why = fmt::format("{}: {} {:.4g}, the {} of {}{}", values_text(choice.values), tune.metric,
                           *choice.value, tune.better == protocol::Better::kHigher ? "highest" : "lowest",
                           choice.completed == 1 ? "1 point" : fmt::format("{} points", choice.completed),
                           lacking.empty() ? "" : "; " + lacking);
  return choice;
}

storage::RenewedTrial seeded(const std::string& config, int result_version, std::int64_t seed) {
  nlohmann::json document = nlohmann::json::parse(config);
  document["seed"] = seed;
  std::string text = config::canonical_json(document);
  std::string hash = config::config_hash(text);
  if (result_version != 0) result_version = config::result_version(document);  // today's; 0: a command
  return {std::move(text), std::move(hash), result_version};
}

/// What a decision needs of the section as it is stored.
sweeps::Tune stored_tune(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  sweeps::Tune tune;
  tune.metric = json.value("metric", "");
  tune.better = value_named<protocol::Better>(json.value("better", "")).value_or(protocol::Better::kNone);
  tune.method = value_named<sweeps::Method>(json.value("method", "")).value_or(sweeps::Method::kSobol);
  if (const auto halving = json.find("halving"); halving != json.end()) {
    tune.halving.key = halving->value("key", "");
    tune.halving.keep = halving->value("keep", 0.5);
    if (halving->contains("first")) tune.halving.first = halving->at("first").get<double>();
  }
  return tune;
}

std::vector<std::size_t> rungs_of_row(const RowTuning& row, const sweeps::Tune& tune) {
  const auto points = static_cast<std::size_t>(
      std::ranges::count_if(row.points, [](const TunedPoint& point) { return point.rung == 0; }));
  if (tune.method != sweeps::Method::kHalving || row.points.empty()) return {points};
  std::vector<std::size_t> sizes;
  for (const sweeps::Rung& rung :
       sweeps::rungs_of(tune.halving, points, std::stod(row.points.back().rung_value)))
    sizes.push_back(rung.points);
  return sizes;
}

/// Of a sweep that is not cancelled: the seeds that a row begins with.
std::optional<std::uint32_t> seeds_at_first(Database& db, SweepId sweep) {
  struct Sweep {
    bool cancelled = false;
    std::string rule;
    std::uint32_t seeds = 0;
  };
  const auto stored =
      db.prepared(R"sql(SELECT state = 'cancelled', seeds_rule,
                                             (SELECT COUNT(*) FROM sweep_seed WHERE sweep_id = sweep.id)
                                      FROM sweep WHERE id = :sweep)sql")
          .bind(":sweep", sweep)
          .one([](const Statement& row) {
            return Sweep{row.integer(0) != 0, row.text(1), static_cast<std::uint32_t>(row.integer(2))};
          });
  if (!stored || stored->cancelled) return std::nullopt;
  return stored->rule.empty() ? stored->seeds
                              : std::min(stored->seeds, sweeps::SeedRule::parse(stored->rule).min);
}

/// Returns: whether something was decided.
bool settle_row(Database& db, SweepId sweep, const std::string& row, Time now) {
  TuningStore store{db};
  const auto seeds = seeds_at_first(db, sweep);
  if (!seeds) return false;
  for (bool decided = false;;) {
    if (store.waits(sweep, row)) return decided;  // most ends are of a row with others to come
    const auto tuning = store.read(sweep, row);
    if (!tuning || tuning->rows.empty()) return decided;
    const RowTuning& known = tuning->rows.front();
    if (known.choice && known.choice->point) return decided;
    const sweeps::Tune tune = stored_tune(tuning->tune_json);
    const TuningStep step = next_step(known, tune, rungs_of_row(known, tune));
    if (step.waits) return decided;
    for (const int point : step.begin) store.begin(sweep, row, point, step.rung, now, seeded);
    decided = true;
    if (!step.choice) continue;  // all of the rung may be stored already
    store.choose(sweep, *step.choice, *seeds, now, seeded);
    return true;
  }
}

/// Before a trial that was queued by a decision can be leased.
void refresh_budgets_with_tuning(Database& db, SweepId sweep, Time now) {
  for (const SweepId one : with_tuning(db, sweep)) refresh_budget(db, one, now);
}

/// Nothing can be chosen for any row that is open: that is said, and not tried again before a retry.
void give_up(Database& db, SweepId sweep, const std::string& why, Time now) {
  log_error("rows of sweep {} cannot be tuned: {}", sweep, why);
  TuningStore store{db};
  for (const std::string& row : store.unchosen(sweep)) {
    TuningChoice choice;
    choice.row = row;
    choice.why = "cannot be tuned: " + why;
    store.choose(sweep, choice, 0, now, seeded);
  }
}

std::vector<storage::NewTuningPoint> points_of(const sweeps::SweepSpec& spec) {
  std::vector<storage::NewTuningPoint> points;
  for (const sweeps::Candidate& candidate : spec.candidates)
    points.push_back({.row = spec.rows[static_cast<std::size_t>(candidate.row)].id,
                      .tuning_row = candidate.tried.id,
                      .point = candidate.point,
                      .rung = candidate.rung,
                      .values_json = nlohmann::json(candidate.values).dump(),
                      .rung_value = candidate.rung_value,
                      .tried = candidate.tried.config,
                      .tried_version = candidate.tried.result_version,
                      .config = candidate.best.config,
                      .config_hash = candidate.best.config_hash,
                      .work_hash = candidate.best.work_hash,
                      .result_version = candidate.best.result_version});
  return points;
}

}  // namespace

TuningStep next_step(const RowTuning& row, const sweeps::Tune& tune, const std::vector<std::size_t>& rungs) {
  TuningStep step;
  std::vector<const TunedPoint*> points = of_rung(row, 0);
  for (int rung = 0;; ++rung) {
    for (const TunedPoint* point : points)
      step.waits = step.waits || point->trials.open() + point->trials.held > 0;
    if (step.waits) return step;
    const bool last = static_cast<std::size_t>(rung) + 1 >= rungs.size();
    const auto order = ranked(points, tune.better);
    if (last || order.empty()) {
      step.choice = choice_of(row, tune, points, rungs.empty() ? 0 : rungs.front());
      return step;
    }
    const auto next = of_rung(row, rung + 1);
    if (next.empty()) {
      step.rung = rung + 1;
      for (std::size_t i = 0; i < std::min(order.size(), rungs[static_cast<std::size_t>(rung) + 1]); ++i)
        step.begin.push_back(order[i].first->point);
      return step;
    }
    points = next;
  }
}

storage::Submitted begin_tuning(Database& db, const sweeps::SweepSpec& spec, SweepId sweep,
                                const Standing& standing, Time now) {
  const sweeps::SweepSpec trials = sweeps::tuning_sweep(spec);
  Standing of_tuning = standing;
  of_tuning.breaker = false;  // that a point fails is what is to be known of it
  const storage::Submitted submitted =
      storage::SweepStore{db}.insert(sweep_record(trials, of_tuning), trial_records(trials), now);
  TuningStore{db}.insert(sweep, submitted.sweep, spec.tune->json(), points_of(spec));
  settle_tuning(db, sweep, now);  // everything may be stored already
  return submitted;
}

storage::Extended extend_tuning(Database& db, const sweeps::SweepSpec& spec, SweepId sweep,
                                const storage::Extension& extension, Time now) {
  TuningStore store{db};
  const SweepId by = store.tuning_of(sweep).value();
  const sweeps::SweepSpec trials = sweeps::tuning_sweep(spec);
  storage::Extension of_tuning = extension;
  of_tuning.replaced.clear();
  std::vector<std::string> kept;
  for (const sweeps::Row& row : spec.rows)
    if (!extension.replaced.contains(row.id) &&
        !spec.tune->search)  // of a search with more points another is the best
      kept.push_back(row.id);
  for (const sweeps::Candidate& candidate : spec.candidates)
    if (const auto other = extension.replaced.find(spec.rows[static_cast<std::size_t>(candidate.row)].id);
        other != extension.replaced.end())
      of_tuning.replaced[candidate.tried.id] = {.why = other->second.why};
  storage::Extended extended =
      storage::SweepStore{db}.extend(by, sweep_record(trials, {}), trial_records(trials), of_tuning, now);
  store.replace(sweep, spec.tune->json(), points_of(spec), kept);
  if (const auto seeds = seeds_at_first(db, sweep))
    for (const TuningChoice& choice : store.choices(sweep))
      if (choice.point) store.apply(sweep, choice, *seeds, now, seeded);
  settle_tuning(db, sweep, now);
  return extended;
}

void settle_tuning(Database& db, SweepId sweep, Time now) {
  bool decided = false;
  for (const std::string& row : TuningStore{db}.unchosen(sweep))
    decided = settle_row(db, sweep, row, now) || decided;
  if (!decided) return;
  refresh_budgets_with_tuning(db, sweep, now);
  grow_seeds(db, sweep, now);
}

void tune_after(Database& db, storage::TrialId trial, Time now) {
  for (const auto& [sweep, row] : TuningStore{db}.waiting_for(trial)) {
    const auto why = make_apart(db, [&] {
      if (settle_row(db, sweep, row, now))
        refresh_budgets_with_tuning(db, sweep, now);  // what it claims is due to seeds by rule: grow_due
      TuningStore{db}.touch(sweep);
    });
    if (why) log_error("row {} of sweep {} cannot be tuned: {}", row, sweep, *why);
  }
}

void settle_tunings(Database& db, Time now) {
  const auto quiet = db.prepared(R"sql(
      SELECT u.sweep_id FROM sweep_tuning u JOIN sweep s ON s.id = u.sweep_id JOIN sweep_count n ON n.sweep_id = u.by_id
      WHERE u.open > 0 AND s.state <> 'cancelled' AND n.queued + n.leased + n.running + n.held = 0)sql")
                         .all([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); });
  for (const SweepId sweep : quiet)
    if (const auto why = make_apart(db, [&] { settle_tuning(db, sweep, now); }))
      give_up(db, sweep, *why, now);
}

std::vector<SweepId> with_tuning(Database& db, SweepId sweep) {
  std::vector<SweepId> sweeps{sweep};
  if (const auto by = TuningStore{db}.tuning_of(sweep)) sweeps.push_back(*by);
  return sweeps;
}

std::uint32_t retry_tuning(Database& db, SweepId sweep, const std::string& row, const storage::Retry& which,
                           Time now) {
  TuningStore store{db};
  std::uint32_t queued = 0;
  if (const auto of = store.tuned_by(sweep)) {  // its own trials were queued already
    store.reopen(*of, {});
    settle_tuning(db, *of, now);
    return 0;
  }
  const auto by = store.tuning_of(sweep);
  if (!by || !(which.ended || which.held)) return 0;
  for (const std::string& unchosen : store.unchosen(sweep)) {
    if (!row.empty() && row != unchosen) continue;
    for (const std::string& tuning_row : store.tuning_rows(sweep, unchosen))
      queued += storage::SweepStore{db}.retry(*by, tuning_row, now, renewed, which);
    store.reopen(sweep, unchosen);
  }
  settle_tuning(db, sweep, now);
  return queued;
}

}  // namespace abl::scheduler
