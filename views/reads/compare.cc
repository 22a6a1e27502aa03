// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/nearest_name.h"
#include "protocol/metrics.h"
#include "statistics/difference.h"
#include "statistics/holm.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "views/compared.h"
#include "views/compared_side.h"
#include "views/compared_values.h"
#include "views/comparison.h"
#include "views/config_differences.h"
#include "views/convert.h"
#include "views/mean_curves.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using nlohmann::json;
using storage::Database;
using storage::Statement;

constexpr std::uint32_t kRowsCompared = 200, kMostRowsCompared = 1000;
/// Up to so many rows of two sweeps, p-values are corrected by the tests of all of them, also of those that
/// another answer shows.
constexpr std::uint32_t kMostRowsTested = kMostRowsCompared;
constexpr int kIdsNamed = 20;
/// Points that the curves of one answer are read from.
constexpr std::uint64_t kMostPointsRead = 100'000;

/// How the two are tested.
struct Way {
  protocol::Compare compare{};
  std::vector<std::string> notes{};
};

/// As the sweeps' files say, where they agree.
Way way_of(Database& db, const v1::CompareRequest& request, const ComparedSide& a, const ComparedSide& b) {
  const auto said = [&](const ComparedSide& side) {
    protocol::Compare compare;
    if (!side.sweep) return compare;
    db.prepared(R"sql(SELECT canonical ->> '$.table.compare.test', canonical ->> '$.table.compare.correction'
                      FROM sweep WHERE id = :sweep AND json_valid(canonical))sql")
        .bind(":sweep", side.sweep->id)
        .one([&](const Statement& line) {
          compare.test = value_named<protocol::Test>(line.text(0)).value_or(compare.test);
          compare.correction = value_named<protocol::Correction>(line.text(1)).value_or(compare.correction);
          return true;
        });
    return compare;
  };
  Way way;
  const auto ours = said(a), theirs = said(b);
  if (ours == theirs)
    way.compare = ours;
  else
    way.notes.push_back("the files of the two sweeps ask for different tests: this is Welch's");
  if (!request.test().empty()) {
    const auto test = value_named<protocol::Test>(request.test());
    if (!test)
      throw Error{Code::kInvalidArgument,
                  fmt::format("unknown test '{}'{}", request.test(),
                              did_you_mean(request.test(), {"welch", "paired", "permutation"}))};
    way.compare.test = *test;
    way.notes.clear();
  }
  for (const ComparedSide* side : {&a, &b})
    if (side->sweep && !side->sweep->seeds_rule.empty() && !side->run)
      way.notes.push_back(
          fmt::format("seeds of {} were added by a rule: p-values here do not allow for its looks, those of "
                      "'ablate table' do",
                      side->sweep->name));
  return way;
}

std::string why_untested(const Sample& a, const Sample& b) {
  if (a.values.empty() || b.values.empty())
    return fmt::format("{} has no value", a.values.empty() && b.values.empty() ? "neither side"
                                          : a.values.empty()                   ? "A"
                                                                               : "B");
  if (!a.diverged.empty()) return fmt::format("{} of A diverged", a.diverged);
  if (!b.diverged.empty()) return fmt::format("{} of B diverged", b.diverged);
  if (a.runs == b.runs) return "the same runs on both sides";
  return "";
}

/// The numbers of one metric but what its family decides.
void add_numbers(v1::ComparedMetric& metric, const v1::Column& column, const protocol::Compare& compare,
                 bool is_tested) {
  const Sample a{metric.a()}, b{metric.b()};
  metric.set_why(why_untested(a, b));
  if (!a.counts() || !b.counts()) {
    if (metric.why().empty()) metric.set_why("the values are too large for a mean");
    return;
  }
  const auto end = [&](double value) { return bound_text(column, metric.b(), value); };
  const Compared of{b, a, compare.test};
  const bool is_paired = compare.test == protocol::Test::kPaired;
  const auto difference = statistics::difference_to_baseline(
      of.row, of.baseline, is_paired ? statistics::Pairing::kBySeed : statistics::Pairing::kNone);
  if (difference && std::isfinite(difference->value)) {
    metric.set_difference(difference->value);
    metric.set_difference_text(difference_text(column, metric.b(), difference->value));
    if (difference->interval) {
      write(*difference->interval, *metric.mutable_interval());
      metric.set_interval_text(
          fmt::format("{} to {}", end(difference->interval->low), end(difference->interval->high)));
    }
  }
  if (!metric.why().empty() || !is_tested) {
    if (metric.why().empty()) metric.set_why("no column takes it: --metric tests it");
    return;
  }
  const Tested tested = test_of(b, a, compare, nullptr);
  metric.set_why(tested.why_not);
  if (tested.p) metric.set_p(*tested.p);
  if (const auto effect = statistics::hedges_g(of.row, of.baseline)) {
    metric.set_g(effect->g);
    if (effect->interval) write(*effect->interval, *metric.mutable_g_interval());
  }
}

/// Tests of a family that the answer does not show.
struct Unshown {
  std::vector<std::optional<double>> p{};
  std::uint32_t at_most = 0;  ///< tests of the family, where nobody computed each one's p; otherwise 0
};

/// Corrects for all tests of a family, and says what follows. Where some are not known the correction is
/// Bonferroni's, which is that of Holm or stricter, whatever they are.
void judge(const std::vector<v1::ComparedMetric*>& family, const protocol::Compare& compare,
           const Unshown& unshown = {}) {
  std::vector<std::optional<double>> p;
  for (const auto* metric : family) p.push_back(metric->has_p() ? std::optional{metric->p()} : std::nullopt);
  p.insert(p.end(), unshown.p.begin(), unshown.p.end());
  const auto known = std::ranges::count_if(p, [](const auto& each) { return each.has_value(); });
  const std::uint32_t tests = unshown.at_most > 0 ? unshown.at_most : static_cast<std::uint32_t>(known);
  auto corrected = p;
  if (compare.correction == protocol::Correction::kHolm && unshown.at_most == 0)
    corrected = statistics::holm(p);
  else if (compare.correction == protocol::Correction::kHolm)
    for (auto& each : corrected)
      if (each) each = std::min(1.0, *each * tests);
  for (std::size_t i = 0; i < family.size(); ++i) {
    v1::ComparedMetric& metric = *family[i];
    if (metric.a().runs().empty() || metric.b().runs().empty()) continue;
    metric.set_family(tests);
    metric.set_verdict(v1::Comparison::VERDICT_NOT_TOLD_APART);
    if (!corrected[i]) continue;
    metric.set_p_corrected(*corrected[i]);
    if (*corrected[i] >= kAlpha) continue;
    metric.set_verdict(metric.better() == "none" ? v1::Comparison::VERDICT_DIFFERENT
                       : (metric.difference() > 0) == (metric.better() == "higher")
                           ? v1::Comparison::VERDICT_BETTER
                           : v1::Comparison::VERDICT_WORSE);
  }
}

/// A metric as a column takes it, or, of one that no column takes, its last value.
storage::Column column_for(const std::string& metric, const std::vector<storage::Column>& columns) {
  const auto taken = std::ranges::find_if(columns, [&](const auto& column) {
    return column.kind == protocol::ColumnKind::kMetric && column.source == metric;
  });
  if (taken != columns.end()) return *taken;
  return {.name = "",
          .source = metric,
          .unit = protocol::unit_by_name(metric),
          .better = protocol::better_by_name(metric),
          .digits = std::nullopt};
}

v1::ComparedMetric metric_of(const storage::Column& column, v1::Cell a, v1::Cell b,
                             const protocol::Compare& compare, bool is_tested) {
  v1::ComparedMetric metric;
  metric.set_metric(column.source);
  metric.set_column(column.name);
  metric.set_take(std::string{name_of(column.take)});
  metric.set_unit(std::string{name_of(column.unit)});
  metric.set_better(std::string{name_of(column.better)});
  *metric.mutable_a() = std::move(a);
  *metric.mutable_b() = std::move(b);
  add_numbers(metric, to_proto(column), compare, is_tested);
  return metric;
}

/// Columns that take a metric, those of A first.
std::vector<storage::Column> metric_columns(Database& db, const ComparedSide& a, const ComparedSide& b) {
  std::vector<storage::Column> columns;
  for (const ComparedSide* side : {&a, &b})
    for (auto& column : side->columns(db))
      if (column.kind == protocol::ColumnKind::kMetric &&
          std::ranges::none_of(columns, [&](const auto& known) {
            return known.source == column.source && (known.take == column.take || side == &b);
          }))
        columns.push_back(std::move(column));
  return columns;
}

/// What the first runs of both ran with.
void add_environment(Database& db, const ComparedSide& a, const ComparedSide& b,
                     v1::CompareResponse& message) {
  const auto facts = [&](const ComparedSide& side) -> std::string {
    const auto run_id =
        side.run
            ? side.run
            : db.prepared(R"sql(SELECT t.run_id FROM sweep_trial st
                                     JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
                                     WHERE st.sweep_id = :sweep AND st.row = :row ORDER BY st.seed_index LIMIT 1)sql")
                  .bind(":sweep", side.sweep->id)
                  .bind(":row", *side.row)
                  .one([](const Statement& line) { return static_cast<storage::RunId>(line.integer(0)); });
    if (!run_id) return "";
    const auto run = storage::TrialStore{db}.run(*run_id);
    const auto trial = storage::TrialStore{db}.get(run.trial);
    json all = json::parse(run.environment_json, nullptr, false);
    if (!all.is_object()) all = json::object();
    all.erase("imported");                                        // a note says it
    all["trial_result_version"] = trial.identity.result_version;  // `result_version` is its trainer's
    all["host"] = run.host;
    if (!trial.identity.data_fingerprint.empty()) all["data_fingerprint"] = trial.identity.data_fingerprint;
    return all.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  const std::string ours = facts(a), theirs = facts(b);
  if (ours.empty() || theirs.empty()) return;  // nothing to hold them against
  for (const auto& [key, values] : document_differences(ours, theirs)) {
    auto& setting = *message.add_environment();
    setting.set_key(key);
    setting.set_a(values.first);
    setting.set_b(values.second);
  }
}

void write_settings(const Differences& differences,
                    google::protobuf::RepeatedPtrField<v1::ComparedSetting>& settings) {
  for (const auto& [key, values] : differences) {
    auto& setting = *settings.Add();
    setting.set_key(key);
    setting.set_a(values.first);
    setting.set_b(values.second);
  }
}

/// Why none of these can be tested; empty: some are.
std::string why_no_test(const std::vector<const v1::ComparedMetric*>& metrics) {
  std::set<std::string> reasons;
  for (const auto* metric : metrics) {
    if (metric->has_p()) return "";
    if (!metric->a().runs().empty() && !metric->b().runs().empty()) reasons.insert(metric->why());
  }
  if (reasons.empty()) return "nothing is tested: no metric that a column takes has values on both sides";
  if (reasons.size() == 1 && !reasons.begin()->empty())
    return fmt::format("no test can be made: {}", *reasons.begin());
  return "no test can be made: each metric says why";
}

/// `correction`: where there is one. `no_test`: why nothing is tested, or empty.
std::string legend_of(const Way& way, const std::string& correction, const std::string& no_test) {
  if (!no_test.empty()) return fmt::format("differences are B − A, intervals 95 %; {}", no_test);
  return fmt::format(
      "differences are B − A, intervals 95 %; {}, two-sided, {}, p < {}", words_of(way.compare.test),
      way.compare.correction == protocol::Correction::kHolm ? correction : "not corrected", kAlpha);
}

/// A side of which nothing at all is known, and why.
void note_silence(const ComparedSide& side, const std::set<std::string>& reported,
                  v1::CompareResponse& message) {
  if (!reported.empty()) return;
  if (side.run)
    message.add_notes(fmt::format("run {} reported no metric: it is {}", *side.run, side.said.state()));
  else if (side.said.completed() == 0)
    message.add_notes(
        fmt::format("no trial of {} has completed: there is nothing to compare yet", side.said.name()));
  else
    message.add_notes(fmt::format("the completed runs of {} reported no metric", side.said.name()));
}

/// Throws: Error{kNotFound} for a metric that neither reported.
void compare_values(Database& db, const v1::CompareRequest& request, const ComparedSide& a,
                    const ComparedSide& b, const Way& way, v1::CompareResponse& message) {
  const auto columns = metric_columns(db, a, b);
  std::set<std::string> reported = metrics_of(db, a), theirs = metrics_of(db, b);
  note_silence(a, reported, message);
  note_silence(b, theirs, message);
  reported.merge(theirs);
  std::vector<storage::Column> wanted;
  if (request.metrics().empty()) {
    wanted = columns;
    for (const auto& name : reported)
      if (std::ranges::find(columns, name, &storage::Column::source) == columns.end())
        wanted.push_back(column_for(name, columns));
  }
  for (const auto& name : request.metrics()) {
    if (!reported.contains(name) &&
        std::ranges::find(columns, name, &storage::Column::source) == columns.end()) {
      const std::vector<std::string> names{reported.begin(), reported.end()};
      throw Error{Code::kNotFound, fmt::format("neither {} nor {} reported a metric '{}'{}", a.said.name(),
                                               b.said.name(), name, did_you_mean(name, names))};
    }
    if (std::ranges::find(wanted, name, &storage::Column::source) ==
        wanted.end())  // asked for twice is one test
      wanted.push_back(column_for(name, columns));
  }
  const bool all_tested = columns.empty() || !request.metrics().empty();
  std::vector<v1::ComparedMetric*> family;
  message.mutable_metrics()->Reserve(static_cast<int>(wanted.size()));
  std::uint64_t budget = kMostPointsRead;
  std::size_t left = wanted.size();  // each has its share of the points that may be read
  UnequalSteps unequal;
  for (const auto& column : wanted) {
    const auto id = metric_id(db, column.source);
    const auto values = [&](const ComparedSide& side) {
      return id ? values_of(db, side, side.row.value_or(0), *id) : std::vector<ComparedValue>{};
    };
    const auto cell = [&](const ComparedSide& side, const std::vector<ComparedValue>& of) {
      return cell_of(of, column, side, side.run ? 1 : side.said.trials(),
                     side.run ? 1 : side.said.completed());
    };
    const std::vector<ComparedValue> ours = values(a), others = values(b);
    unequal.add(column.source, column, ours, others);
    const bool is_tested = all_tested || !column.name.empty();
    auto& metric = *message.add_metrics() =
        metric_of(column, cell(a, ours), cell(b, others), way.compare, is_tested);
    if (is_tested) family.push_back(&metric);
    if (is_tested || request.max_points() > 0)
      budget -= add_curves(db, metric, request.max_points(), budget / left);
    --left;
  }
  unequal.add_notes(message);
  judge(family, way.compare);
  const auto tests = std::ranges::count_if(family, [](const auto* metric) { return metric->has_p(); });
  message.set_legend(legend_of(way,
                               fmt::format("Holm's correction over {} test{}", tests, tests == 1 ? "" : "s"),
                               why_no_test({family.begin(), family.end()})));
  if (a.trial && b.trial)
    write_settings(config_differences(db, *a.trial, *b.trial), *message.mutable_settings());
  add_environment(db, a, b, message);
}

/// The first trial of a row, whose configuration is the row's.
std::optional<storage::TrialId> first_trial(Database& db, const ComparedSide& side, int row) {
  return db
      .prepared(
          "SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep AND row = :row ORDER BY seed_index LIMIT "
          "1")
      .bind(":sweep", side.sweep->id)
      .bind(":row", row)
      .one([](const Statement& line) { return static_cast<storage::TrialId>(line.integer(0)); });
}

/// Ids of rows that one sweep has and the other has not, the first few; of so many rows that are in both.
void add_lonely_rows(Database& db, const ComparedSide& one, const ComparedSide& other, std::uint32_t common,
                     google::protobuf::RepeatedPtrField<std::string>& ids) {
  if (common >= one.sweep->rows) return;  // to look through all of them would find none
  for (auto& id : db.prepared(R"sql(
           SELECT id FROM sweep_row a WHERE sweep_id = :one AND other_sweep = ''
             AND NOT EXISTS (SELECT 1 FROM sweep_row b WHERE b.sweep_id = :other AND b.id = a.id AND b.other_sweep = '')
           ORDER BY position LIMIT :most)sql")
                      .bind(":one", one.sweep->id)
                      .bind(":other", other.sweep->id)
                      .bind(":most", kIdsNamed)
                      .all([](const Statement& line) { return line.text(0); }))
    *ids.Add() = std::move(id);
}

struct Pair {
  std::string id, label;
  int a = 0, b = 0;  // positions
};

std::vector<Pair> rows_of_both(Database& db, const ComparedSide& a, const ComparedSide& b,
                               std::uint32_t first, std::uint32_t count) {
  return db
      .prepared(R"sql(
          SELECT a.id, a.label, a.position, b.position FROM sweep_row a
          JOIN sweep_row b ON b.sweep_id = :b AND b.id = a.id AND b.other_sweep = ''
          WHERE a.sweep_id = :a AND a.other_sweep = '' ORDER BY a.position LIMIT :count OFFSET :first)sql")
      .bind(":a", a.sweep->id)
      .bind(":b", b.sweep->id)
      .bind(":first", first)
      .bind(":count", count)
      .all([](const Statement& line) {
        return Pair{line.text(0), line.text(1), static_cast<int>(line.integer(2)),
                    static_cast<int>(line.integer(3))};
      });
}

std::uint32_t count_rows_of_both(Database& db, const ComparedSide& a, const ComparedSide& b) {
  return static_cast<std::uint32_t>(
      db.prepared(
            R"sql(SELECT COUNT(*) FROM sweep_row a JOIN sweep_row b ON b.sweep_id = :b AND b.id = a.id AND b.other_sweep = ''
                        WHERE a.sweep_id = :a AND a.other_sweep = '')sql")
          .bind(":a", a.sweep->id)
          .bind(":b", b.sweep->id)
          .one([](const Statement& line) { return line.integer(0); })
          .value_or(0));
}

struct Ended {
  std::uint32_t trials = 0, completed = 0;
};
Ended count_of(Database& db, const ComparedSide& side, int row) {
  return db
      .prepared(R"sql(SELECT COUNT(*), COALESCE(SUM(t.state = 'completed'), 0) FROM sweep_trial st
                      JOIN trial t ON t.id = st.trial_id WHERE st.sweep_id = :sweep AND st.row = :row)sql")
      .bind(":sweep", side.sweep->id)
      .bind(":row", row)
      .one([](const Statement& line) {
        return Ended{static_cast<std::uint32_t>(line.integer(0)),
                     static_cast<std::uint32_t>(line.integer(1))};
      })
      .value_or(Ended{});
}

/// What differs in the same way in all rows is said once.
void lift_common(const std::vector<Differences>& rows, v1::CompareResponse& message) {
  if (rows.empty()) return;
  Differences common = rows.front();
  for (const Differences& row : rows)
    std::erase_if(common, [&](const auto& each) {
      const auto own = row.find(each.first);
      return own == row.end() || own->second != each.second;
    });
  write_settings(common, *message.mutable_settings());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Differences own = rows[i];
    std::erase_if(own, [&](const auto& each) { return common.contains(each.first); });
    write_settings(own, *message.mutable_rows(static_cast<int>(i))->mutable_settings());
  }
}

/// Throws: Error{kNotFound} for a metric that was asked for, and that no column of both takes.
void expect_columns(const v1::CompareRequest& request, const ComparedSide& a, const ComparedSide& b,
                    const std::vector<storage::Column>& columns) {
  std::vector<std::string> sources;
  for (const auto& column : columns) sources.push_back(column.source);
  for (const auto& name : request.metrics())
    if (std::ranges::find(sources, name) == sources.end())
      throw Error{Code::kNotFound,
                  fmt::format("no column of both {} and {} takes a metric '{}'{}", a.said.name(),
                              b.said.name(), name, did_you_mean(name, sources))};
}

void compare_sweeps(Database& db, const v1::CompareRequest& request, const ComparedSide& a,
                    const ComparedSide& b, const Way& way, v1::CompareResponse& message) {
  std::vector<storage::Column> columns;
  const auto theirs = b.columns(db);
  for (auto& column : a.columns(db)) {
    if (column.kind != protocol::ColumnKind::kMetric) continue;
    const auto same = std::ranges::find_if(theirs, [&](const auto& other) {
      return other.kind == column.kind && other.source == column.source && other.take == column.take;
    });
    if (same == theirs.end())
      message.add_notes(fmt::format("{} has no column that takes the {} {}: {} is not compared",
                                    b.said.name(), name_of(column.take), column.source, column.name));
    else
      columns.push_back(std::move(column));
  }
  expect_columns(request, a, b, columns);
  if (!request.metrics().empty())
    std::erase_if(columns, [&](const storage::Column& column) {
      return std::ranges::find(request.metrics(), column.source) == request.metrics().end();
    });
  const std::uint32_t count =
      request.count() == 0 ? kRowsCompared : std::min(request.count(), kMostRowsCompared);
  const auto common = count_rows_of_both(db, a, b);
  const auto pairs = rows_of_both(db, a, b, request.first(), count);
  message.set_common(common);
  add_lonely_rows(db, a, b, common, *message.mutable_only_a());
  add_lonely_rows(db, b, a, common, *message.mutable_only_b());
  std::vector<std::optional<std::int64_t>> ids;
  for (const auto& column : columns) ids.push_back(metric_id(db, column.source));
  UnequalSteps unequal;
  const auto compared = [&](const Pair& pair, std::size_t i, const Ended& of_a, const Ended& of_b) {
    const auto values = [&](const ComparedSide& side, int position) {
      return ids[i] ? values_of(db, side, position, *ids[i]) : std::vector<ComparedValue>{};
    };
    const std::vector<ComparedValue> ours = values(a, pair.a), others = values(b, pair.b);
    unequal.add(fmt::format("{} of row {}", columns[i].source, pair.id), columns[i], ours, others);
    return metric_of(columns[i], cell_of(ours, columns[i], a, of_a.trials, of_a.completed),
                     cell_of(others, columns[i], b, of_b.trials, of_b.completed), way.compare, true);
  };
  std::vector<Differences> differences;
  message.mutable_rows()->Reserve(static_cast<int>(pairs.size()));
  for (const Pair& pair : pairs) {
    auto& row = *message.add_rows();
    row.set_id(pair.id);
    row.set_label(pair.label);
    const auto ours = first_trial(db, a, pair.a), other = first_trial(db, b, pair.b);
    differences.push_back(ours && other ? config_differences(db, *ours, *other) : Differences{});
    const Ended of_a = count_of(db, a, pair.a), of_b = count_of(db, b, pair.b);
    for (std::size_t i = 0; i < columns.size(); ++i) *row.add_metrics() = compared(pair, i, of_a, of_b);
  }
  unequal.add_notes(message);  // of the rows that are shown
  const bool all_known = common <= kMostRowsTested;
  std::vector<Unshown> unshown(columns.size());
  if (!all_known)
    for (Unshown& each : unshown) each.at_most = common;
  else if (common > pairs.size())
    for (const Pair& pair : rows_of_both(db, a, b, 0, common)) {
      if (std::ranges::find(pairs, pair.id, &Pair::id) != pairs.end()) continue;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto metric = compared(pair, i, {}, {});
        unshown[i].p.push_back(metric.has_p() ? std::optional{metric.p()} : std::nullopt);
      }
    }
  std::vector<const v1::ComparedMetric*> all;
  bool tests_elsewhere = !all_known;  // of rows that this answer has not
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::vector<v1::ComparedMetric*> family;
    for (auto& row : *message.mutable_rows()) family.push_back(row.mutable_metrics(static_cast<int>(i)));
    judge(family, way.compare, unshown[i]);
    all.insert(all.end(), family.begin(), family.end());
    tests_elsewhere |= std::ranges::any_of(unshown[i].p, [](const auto& p) { return p.has_value(); });
  }
  if (request.max_points() > 0) {
    std::uint64_t budget = kMostPointsRead, left = pairs.size() * columns.size();
    for (auto& row : *message.mutable_rows())
      for (auto& metric : *row.mutable_metrics())
        budget -= add_curves(db, metric, request.max_points(), budget / left--);
  }
  lift_common(differences, message);
  const auto shown = request.first() + static_cast<std::uint32_t>(pairs.size());
  message.set_left_out(common - static_cast<std::uint32_t>(pairs.size()));
  message.set_next(!pairs.empty() && shown < common ? shown : 0);
  message.set_legend(
      legend_of(way,
                all_known ? "Holm's correction over the rows of a column"
                          : fmt::format("Bonferroni's correction over the {} rows of a column", common),
                tests_elsewhere ? "" : why_no_test(all)));
}

}  // namespace

v1::CompareResponse compare(Database& db, const v1::CompareRequest& request) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  const ComparedSide a = compared_side(db, request.a()), b = compared_side(db, request.b());
  if (a.is_sweep() != b.is_sweep())
    throw Error{Code::kInvalidArgument,
                fmt::format("cannot compare the {} {} with the {} {}: expected two sweeps, or rows and runs",
                            a.said.kind(), a.said.name(), b.said.kind(), b.said.name())};
  v1::CompareResponse message;
  *message.mutable_a() = a.said;
  *message.mutable_b() = b.said;
  const Way way = way_of(db, request, a, b);
  for (const auto& note : way.notes) message.add_notes(note);
  for (const ComparedSide* side : {&a, &b})
    if (side->trial)
      if (const auto trial = storage::TrialStore{db}.get(*side->trial);
          trial.command_json == storage::kImportedCommand)
        message.add_notes(fmt::format("{} was {}, not measured here", side->said.name(), trial.reason));
  if (a.is_sweep())
    compare_sweeps(db, request, a, b, way, message);
  else
    compare_values(db, request, a, b, way, message);
  return message;
}

extern const Read kCompareRead{
    .path = "compare",
    .about = "Two sweeps, rows or runs side by side: settings, metrics with tests, where curves cross",
    .parameters = {{.name = "a",
                    .about = "A sweep, `SWEEP/ROW`, `SWEEP/ROW/SEED` or a run's number",
                    .needed = true},
                   {.name = "b",
                    .about = "What `a` is compared with: a sweep with a sweep, a row or run with either",
                    .needed = true},
                   {.name = "test",
                    .about = "Test of the differences; by default as the sweep files say",
                    .choices = names_of<protocol::Test>()},
                   {.name = "metric", .about = "Only these metrics", .repeats = true},
                   {.name = "max_points",
                    .about = "Points per mean curve; 0: no curves",
                    .number = Range{.highest = 10'000, .otherwise = 0}},
                   {.name = "first",
                    .about = "Of two sweeps: first row that both have to return, by position; to continue, "
                             "`next` of the last answer",
                    .number = Range{.otherwise = 0}},
                   {.name = "count",
                    .about = "Of two sweeps: rows to return at most",
                    .number = Range{.highest = kMostRowsCompared, .otherwise = kRowsCompared}}},
    .message = v1::CompareResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          v1::CompareRequest request;
          request.set_a(query.text("a"));
          request.set_b(query.text("b"));
          request.set_test(query.text("test"));
          for (const std::string& metric : query.texts("metric")) request.add_metrics(metric);
          request.set_max_points(query.number("max_points"));
          request.set_first(query.number("first"));
          request.set_count(query.number("count"));
          return to_json(compare(stored.db, request));
        },
};

}  // namespace abl::views
