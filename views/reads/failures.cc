// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "ablate/v1/pages.pb.h"
#include "base/enum_names.h"
#include "base/last_lines.h"
#include "protocol/failure.h"
#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Database;
using storage::Statement;

constexpr std::uint32_t kMostFailed = 1000;
constexpr int kMostGroups = 50, kMostExamples = 20, kMostLevels = 50;
/// State changes that are looked back at for what failed since a time: some minutes of a busy fleet at least.
constexpr std::int64_t kLookedBack = 20'000;
/// Rows of a sweep up to which what they set is looked at.
constexpr std::uint32_t kMostRowsLookedAt = 5000;
constexpr std::size_t kLongestLine = 500;

/// A trial that has failed, or is held.
struct Failed {
  storage::TrialId trial = 0;
  storage::RunId run = 0;
  v1::TrialState state = v1::TRIAL_STATE_FAILED;
  std::optional<protocol::FailureClass> failure;
  std::string reason, worker;
  Time time{};
  std::int64_t seed = 0;
  std::optional<int> row{};  // of the sweep that is asked for
};

Failed read_failed(const Statement& line) {
  Failed failed{.trial = static_cast<storage::TrialId>(line.integer(0)),
                .run = static_cast<storage::RunId>(line.integer(1)),
                .state = line.text(2) == "held" ? v1::TRIAL_STATE_HELD : v1::TRIAL_STATE_FAILED,
                .failure = value_named<protocol::FailureClass>(line.text(3)),
                .reason = line.text(4),
                .worker = line.text(5),
                .time = line.time(6),
                .seed = line.integer(7)};
  if (!line.is_null(8)) failed.row = static_cast<int>(line.integer(8));
  return failed;
}

/// Of one sweep, the newest first. Passes over its claims, 100,000 at most, and not where none failed.
std::vector<Failed> failed_of(Database& db, const storage::SweepRecord& sweep) {
  if (sweep.trials.failed + sweep.trials.held == 0) return {};
  return db
      .prepared(R"sql(
          SELECT t.id, COALESCE(t.run_id, 0), t.state, COALESCE(run.failure, ''), t.reason, COALESCE(run.worker, ''),
                 COALESCE(t.finished_ms, run.ended_ms, 0) AS ended, st.seed, st.row
          FROM sweep_trial st CROSS JOIN trial t ON t.id = st.trial_id AND t.state IN ('failed', 'held')
          LEFT JOIN run ON run.id = t.run_id
          WHERE st.sweep_id = :sweep AND st.withdrawn = 0 ORDER BY ended DESC, t.id DESC LIMIT :most)sql")
      .bind(":sweep", sweep.id)
      .bind(":most", kMostFailed + 1)
      .all(read_failed);
}

/// Of all sweeps, those that failed since a time and have not been retried.
std::vector<Failed> failed_since(Database& db, Time since) {
  return db
      .prepared(R"sql(
          SELECT t.id, COALESCE(t.run_id, 0), t.state, COALESCE(run.failure, ''), t.reason, COALESCE(run.worker, ''),
                 MAX(n.time_ms) AS ended, t.seed, NULL
          FROM transition n CROSS JOIN trial t ON t.id = n.trial_id AND t.state IN ('failed', 'held')
          LEFT JOIN run ON run.id = t.run_id
          WHERE n.id > (SELECT MAX(id) FROM transition) - :back AND n.time_ms > :since AND n.state IN ('failed', 'held')
          GROUP BY t.id ORDER BY ended DESC, t.id DESC LIMIT :most)sql")
      .bind(":back", kLookedBack)
      .bind(":since", since)
      .bind(":most", kMostFailed + 1)
      .all(read_failed);
}

/// Alike for lines that differ in numbers alone: steps, sizes, addresses.
std::string shape_of(const std::string& line) {
  std::string shape;
  for (const char letter : line)
    if (letter < '0' || letter > '9')
      shape += letter;
    else if (!shape.ends_with('#'))
      shape += '#';
  return shape;
}

/// "model.attention.groups" -> "8", of each row, by its position.
using Settings = std::map<int, std::map<std::string, std::string>>;
Settings settings_of(Database& db, const storage::SweepRecord& sweep) {
  Settings settings;
  if (sweep.rows > kMostRowsLookedAt) return settings;
  auto& rows = db.prepared(
      "SELECT position, set_json FROM sweep_row WHERE sweep_id = :sweep AND other_sweep = '' AND not_trained "
      "= ''");
  for (const auto& [position, text] : rows.bind(":sweep", sweep.id).all([](const Statement& row) {
         return std::pair{static_cast<int>(row.integer(0)), row.text(1)};
       })) {
    auto& own = settings[position];
    const auto set = nlohmann::json::parse(text, nullptr, false);
    if (!set.is_object()) continue;
    for (const auto& [key, value] : set.items())
      own[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return settings;
}

/// Of what rows set: how many trials have it, and how many of them failed.
using Levels = std::map<std::pair<std::string, std::string>, v1::FailureLevel>;
Levels levels_of(Database& db, const storage::SweepRecord& sweep, const Settings& settings,
                 const std::vector<Failed>& failed) {
  Levels levels;
  const auto add = [&](int row, std::uint32_t trials, std::uint32_t failures) {
    const auto own = settings.find(row);
    if (own == settings.end()) return;
    for (const auto& setting : own->second) {
      v1::FailureLevel& level = levels[setting];
      level.set_trials(level.trials() + trials);
      level.set_failed(level.failed() + failures);
    }
  };
  if (settings.empty()) return levels;
  for (const auto& [row, trials] :
       db.prepared(
             "SELECT row, COUNT(*) FROM sweep_trial WHERE sweep_id = :sweep AND withdrawn = 0 GROUP BY row")
           .bind(":sweep", sweep.id)
           .all([](const Statement& line) {
             return std::pair{static_cast<int>(line.integer(0)), static_cast<std::uint32_t>(line.integer(1))};
           }))
    add(row, trials, 0);
  for (const Failed& trial : failed) add(trial.row.value_or(-1), 0, 1);
  return levels;
}

/// What all rows of a group set alike, where other rows of the sweep set something else.
void add_common(const std::set<int>& rows, const Settings& settings, v1::FailureGroup& group) {
  if (rows.empty() || rows.size() == settings.size()) return;
  const auto first = settings.find(*rows.begin());
  if (first == settings.end()) return;
  const auto has = [](const auto& own, const auto& setting) {
    const auto found = own.find(setting.first);
    return found != own.end() && found->second == setting.second;
  };
  for (const auto& setting : first->second) {
    bool is_common = true, is_everywhere = true;
    for (const auto& [row, own] : settings) {
      if (has(own, setting)) continue;
      is_everywhere = false;
      is_common = !rows.contains(row);
      if (!is_common) break;
    }
    if (is_common && !is_everywhere) group.add_common(fmt::format("{}={}", setting.first, setting.second));
  }
}

void add_example(Database& db, const Failed& trial, const std::optional<storage::SweepRecord>& sweep,
                 v1::FailureGroup& group) {
  auto& example = *group.add_examples();
  example.set_trial(trial.trial);
  example.set_run(trial.run);
  example.set_seed(trial.seed);
  example.set_worker(trial.worker);
  if (trial.time > Time{}) *example.mutable_time() = to_proto(trial.time);
  db.prepared(R"sql(
        SELECT s.name, r.id, r.label FROM sweep_trial st INDEXED BY sweep_trial_trial
        CROSS JOIN sweep s ON s.id = st.sweep_id CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
        WHERE st.trial_id = :trial AND (:sweep IS NULL OR st.sweep_id = :sweep) AND (:row IS NULL OR st.row = :row)
        ORDER BY st.withdrawn, s.id LIMIT 1)sql")
      .bind(":trial", trial.trial)
      .bind(":sweep", sweep ? std::optional{std::int64_t{sweep->id}} : std::nullopt)
      .bind(":row", trial.row)
      .one([&](const Statement& row) {
        example.set_sweep(row.text(0));
        example.set_row(row.text(1));
        example.set_label(row.text(2));
        return true;
      });
}

void add_groups(Database& db, const std::vector<Failed>& failed,
                const std::optional<storage::SweepRecord>& sweep, const Settings& settings,
                v1::FailuresResponse& message) {
  struct Group {
    std::vector<const Failed*> trials;  // newest first
    std::set<int> rows;
  };
  std::map<std::tuple<v1::FailureClass, v1::TrialState, std::string>, Group> by_kind;
  for (const Failed& trial : failed) {
    Group& group =
        by_kind[{to_proto(trial.failure), trial.state, shape_of(first_line(trial.reason, kLongestLine))}];
    group.trials.push_back(&trial);
    if (trial.row) group.rows.insert(*trial.row);
  }
  std::vector<std::pair<v1::FailureClass, const Group*>> groups;
  for (const auto& [kind, group] : by_kind) groups.emplace_back(std::get<0>(kind), &group);
  std::ranges::stable_sort(groups, std::ranges::greater{},
                           [](const auto& each) { return each.second->trials.size(); });
  for (const auto& [failure, group] : groups) {
    if (message.groups_size() == kMostGroups) break;
    v1::FailureGroup& said = *message.add_groups();
    const Failed& newest = *group->trials.front();
    said.set_failure(failure);
    said.set_state(newest.state);
    said.set_line(first_line(newest.reason, kLongestLine));
    said.set_trials(static_cast<std::uint32_t>(group->trials.size()));
    if (newest.time > Time{}) *said.mutable_newest() = to_proto(newest.time);
    for (const Failed* trial : group->trials) {
      if (said.examples_size() == kMostExamples) break;
      add_example(db, *trial, sweep, said);
    }
    add_common(group->rows, settings, said);
  }
  message.set_groups_left_out(static_cast<std::uint32_t>(groups.size()) -
                              static_cast<std::uint32_t>(message.groups_size()));
}

void add_levels(Levels levels, v1::FailuresResponse& message) {
  std::vector<v1::FailureLevel> some;
  for (auto& [setting, level] : levels) {
    if (level.failed() == 0) continue;
    level.set_key(setting.first);
    level.set_value(setting.second);
    some.push_back(std::move(level));
  }
  const auto share = [](const v1::FailureLevel& level) {
    return static_cast<double>(level.failed()) / std::max(1u, level.trials());
  };
  std::ranges::stable_sort(some, [&](const auto& a, const auto& b) {
    return share(a) != share(b) ? share(a) > share(b) : a.failed() > b.failed();
  });
  for (auto& level : some)
    if (message.levels_size() < kMostLevels) *message.add_levels() = std::move(level);
}

/// Of one sweep where it is named, otherwise of all since a time.
v1::FailuresResponse failures(Database& db, const std::string& name, Time since) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  v1::FailuresResponse message;
  std::optional<storage::SweepRecord> sweep;
  if (!name.empty()) sweep = storage::SweepStore{db}.get_brief(name);
  std::vector<Failed> failed = sweep ? failed_of(db, *sweep) : failed_since(db, since);
  message.set_more(failed.size() > kMostFailed);
  if (message.more()) failed.pop_back();
  message.set_trials(static_cast<std::uint32_t>(failed.size()));
  if (failed.empty()) return message;
  const Settings settings = sweep ? settings_of(db, *sweep) : Settings{};
  add_groups(db, failed, sweep, settings, message);
  if (sweep) add_levels(levels_of(db, *sweep, settings, failed), message);
  return message;
}

}  // namespace

extern const Read kFailuresRead{
    .path = "failures",
    .about =
        "Failed and held trials, the newest 1000, by class and first line of the reason; of one sweep also "
        "by "
        "the settings of its rows",
    .parameters = {{.name = "sweep", .about = "Trials of this sweep; either this or `since` is required"},
                   {.name = "since",
                    .about = "Trials of all sweeps that failed after this time, in ms since 1970",
                    .number = Range{.highest = 1ULL << 52}}},
    .message = v1::FailuresResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          const std::string sweep = query.text("sweep");
          if (sweep.empty() == !query.has("since"))
            throw Error{Code::kInvalidArgument,
                        "failures: expected either ?sweep=NAME or, for all sweeps, ?since=MS (since 1970)"};
          return to_json(failures(stored.db, sweep,
                                  Time{Milliseconds{static_cast<std::int64_t>(query.long_number("since"))}}));
        },
};

}  // namespace abl::views
