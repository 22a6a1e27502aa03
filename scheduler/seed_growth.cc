// SPDX-License-Identifier: Apache-2.0
// Which rows are looked at when, and what is stored of that.
#include "scheduler/seed_growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "config/document/trial_document.h"
#include "config/json.h"
#include "scheduler/apart.h"
#include "scheduler/budget.h"
#include "scheduler/renewal.h"
#include "storage/sweep_store.h"

namespace abl::scheduler {
namespace {

using storage::Database;
using storage::Statement;
using storage::SweepId;
using sweeps::SeedRule;

/// So many rows are looked at in one commit, about; it takes milliseconds.
constexpr int kLooksAtOnce = 64;

/// As the sweep's file gives it today (sweeps::expand), though the trial may be from before a correction.
storage::RenewedTrial with_seed(const storage::TrialRecord& trial, std::int64_t seed) {
  const storage::RenewedTrial today = renewed(trial);
  nlohmann::json document = nlohmann::json::parse(today.config);
  document["seed"] = seed;
  const std::string config = config::canonical_json(document);
  return {config, config::config_hash(config), today.result_version};
}

protocol::Compare read_compare(const std::string& json) {
  const protocol::Compare usual;
  const auto words = nlohmann::json::parse(json);
  const auto word = [&](const char* key, auto otherwise) {
    return value_named<decltype(otherwise)>(words.value(key, "")).value_or(otherwise);
  };
  return {.test = word("test", usual.test),
          .interval = word("interval", usual.interval),
          .correction = word("correction", usual.correction)};
}

/// A row as `sweep_growth` has it.
struct Known {
  std::string id, baseline, twin;
  int position = 0;
  bool planned = false, decided = false, open = true;
  std::optional<double> p;
  std::uint32_t looked = 0, seeds = 0;
  std::string why;
};
constexpr const char* kKnown =
    "SELECT row, baseline, twin, position, planned, decided, open, p, looked, seeds, why FROM sweep_growth ";

Known read_known(const Statement& line) {
  Known known{.id = line.text(0),
              .baseline = line.text(1),
              .twin = line.text(2),
              .position = static_cast<int>(line.integer(3)),
              .planned = line.integer(4) != 0,
              .decided = line.integer(5) != 0,
              .open = line.integer(6) != 0,
              .looked = static_cast<std::uint32_t>(line.integer(8)),
              .seeds = static_cast<std::uint32_t>(line.integer(9)),
              .why = line.text(10)};
  if (!line.is_null(7)) known.p = line.real(7);
  return known;
}

void forget_dues(Database& db, SweepId sweep) {
  db.prepared("DELETE FROM growth_due WHERE sweep_id = :sweep").bind(":sweep", sweep).run();
}

/// Nothing of it is trained any more.
bool is_idle(Database& db, SweepId sweep) {
  return db.prepared("SELECT queued + leased + running = 0 FROM sweep_count WHERE sweep_id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.integer(0) != 0; })
      .value_or(true);
}

/// Of one sweep with a rule, while its rows are looked at.
class Growing {
 public:
  /// Nothing for a sweep without a rule, and for one that is cancelled.
  static std::optional<Growing> open(Database& db, SweepId sweep, Time now) {
    const auto rule =
        db.prepared(
              "SELECT name, seeds_rule, revision FROM sweep WHERE id = :sweep AND seeds_rule <> '' AND state "
              "<> 'cancelled'")
            .bind(":sweep", sweep)
            .one([](const Statement& row) {
              return std::tuple{row.text(0), row.text(1), row.integer(2)};
            });
    if (!rule) return std::nullopt;
    const auto& [name, text, revision] = *rule;
    Growing growing{db, sweep, SeedRule::parse(text), now};
    growing.is_begun_ = growing.read_rule(revision);
    if (!growing.is_begun_) {
      growing.begin(name, revision);
      growing.read_rule(revision);
    }
    return growing;
  }
  /// Whether it was looked at before, since it has this content.
  bool is_begun() const { return is_begun_; }
  bool has_grown() const { return grown_; }

  void look_at_all() {
    forget_dues(db_, sweep_);  // seeds that are added are due again: they may be stored already
    const auto rows =
        db_.prepared("SELECT position FROM sweep_growth WHERE sweep_id = :sweep ORDER BY position")
            .bind(":sweep", sweep_)
            .all([](const Statement& row) { return static_cast<int>(row.integer(0)); });
    if (compares())
      for (const int row : rows) test(row);
    settle();
    for (const int row : rows) finish(row);
  }

  /// Goes on with what is due of a row. A seed that is added meanwhile makes its row due again, from the
  /// start: it may be stored already. Returns: how many rows were looked at.
  int go_on(int row, int pass, int next) {
    db_.prepared("DELETE FROM growth_due WHERE sweep_id = :sweep AND row = :row")
        .bind(":sweep", sweep_)
        .bind(":row", row)
        .run();
    if (pass == 0) {
      test(row);
      settle();
      finish(row);
      if (const auto known = this->known(row); known && is_baseline(known->id)) set_due(row, 1, 0);
      return 1;
    }
    const auto known = this->known(row);
    if (!known) return 1;
    const auto rows = db_.prepared(R"sql(
        SELECT position FROM sweep_growth INDEXED BY sweep_growth_undecided
        WHERE sweep_id = :sweep AND baseline = :baseline AND decided = 0 AND position >= :next ORDER BY position LIMIT :most)sql")
                          .bind(":sweep", sweep_)
                          .bind(":baseline", known->id)
                          .bind(":next", next)
                          .bind(":most", kLooksAtOnce / 2)
                          .all([](const Statement& line) { return static_cast<int>(line.integer(0)); });
    const bool idle = pass == 1 && is_idle(db_, sweep_);  // it looks finished until one of them gets a seed
    for (const int one : rows) {
      if (pass == 1) test(one);
      if (idle && !grown_) settle();
      if (pass == 2 || (idle && !grown_)) finish(one);
    }
    if (!rows.empty())
      set_due(row, pass, rows.back() + 1);
    else if (settle(); pass == 1)
      set_due(row, 2, 0);
    return static_cast<int>(rows.size()) + 1;
  }

 private:
  Growing(Database& db, SweepId sweep, const SeedRule& rule, Time now)
      : db_{db},
        sweep_{sweep},
        now_{now},
        judge_{rule,
               {},
               db.prepared("SELECT seed FROM sweep_seed WHERE sweep_id = :sweep ORDER BY position")
                   .bind(":sweep", sweep)
                   .all([](const Statement& row) { return row.integer(0); })} {}

  bool compares() const { return judge_.rule.until == SeedRule::Until::kDecided; }

  /// False where it was stored of another content, or never.
  bool read_rule(std::int64_t revision) {
    return db_
        .prepared(
            "SELECT source, take, better, compare, tests, decided FROM growth_rule WHERE sweep_id = :sweep "
            "AND revision = :revision")
        .bind(":sweep", sweep_)
        .bind(":revision", revision)
        .one([&](const Statement& row) {
          column_ = {.name = judge_.rule.column,
                     .source = row.text(0),
                     .take = value_named<protocol::Take>(row.text(1)).value_or(protocol::Take::kLast),
                     .better = value_named<protocol::Better>(row.text(2)).value_or(protocol::Better::kNone)};
          judge_.compare = read_compare(row.text(3));
          tests_ = static_cast<std::uint32_t>(row.integer(4));
          decided_ = static_cast<std::uint32_t>(row.integer(5));
          return true;
        })
        .value_or(false);
  }

  /// Which comparisons there are: the family that is corrected for, here and in the table. A row of the
  /// baseline's trials is none, and of rows with the same trials the first stands for the others.
  void begin(const std::string& name, std::int64_t revision) {
    struct Row {
      std::string id;
      int position = 0;
      storage::TrialId trial = 0;  // of its first seed; 0: it has none yet, for it is tuned first
      std::uint32_t seeds = 0;
    };
    const auto rows = db_.prepared(R"sql(
        SELECT r.id, r.position,
               COALESCE((SELECT trial_id FROM sweep_trial st WHERE st.sweep_id = r.sweep_id AND st.row = r.position ORDER BY seed_index LIMIT 1), 0),
               (SELECT COUNT(*) FROM sweep_seed p WHERE p.sweep_id = r.sweep_id AND p.position < COALESCE(
                  (SELECT MIN(q.position) FROM sweep_seed q WHERE q.sweep_id = r.sweep_id AND NOT EXISTS (
                     SELECT 1 FROM sweep_trial st WHERE st.sweep_id = r.sweep_id AND st.row = r.position AND st.seed_index = q.position)), 1000000))
        FROM sweep_row r WHERE r.sweep_id = :sweep AND r.not_trained = '' AND r.other_sweep = '' ORDER BY r.position)sql")
                          .bind(":sweep", sweep_)
                          .all([](const Statement& line) {
                            return Row{line.text(0), static_cast<int>(line.integer(1)),
                                       static_cast<storage::TrialId>(line.integer(2)),
                                       static_cast<std::uint32_t>(line.integer(3))};
                          });
    const auto baselines = storage::baselines_of(db_, name);
    std::map<std::string, storage::TrialId> trials;
    for (const Row& row : rows) trials.emplace(row.id, row.trial);
    db_.prepared("DELETE FROM sweep_growth WHERE sweep_id = :sweep").bind(":sweep", sweep_).run();
    std::map<std::pair<storage::TrialId, storage::TrialId>, std::string> known;
    std::uint32_t tests = 0;
    for (const Row& row : rows) {
      std::string baseline = baselines.at(static_cast<std::size_t>(row.position)), twin, why;
      const auto other = trials.find(baseline);
      const bool compared = other != trials.end() && baseline != row.id;
      if (!compared) baseline.clear();
      if (compared && row.trial != 0 && other->second == row.trial) {
        why = fmt::format("it has the trials of row {}, its baseline: there is nothing to compare", baseline);
        twin = std::exchange(baseline, {});
      }
      bool planned = !baseline.empty();
      if (planned && row.trial != 0) {
        const auto [first, is_new] = known.emplace(std::pair{row.trial, other->second}, row.id);
        planned = is_new;
        if (!is_new) twin = first->second;
      }
      tests += planned ? 1 : 0;
      if (!compares()) baseline.clear(), twin.clear(), why.clear();
      db_.prepared(R"sql(
          INSERT INTO sweep_growth (sweep_id, row, seeds, open, why, time_ms, position, baseline, twin, planned)
          VALUES (:sweep, :row, :seeds, :open, :why, :now, :position, :baseline, :twin, :planned))sql")
          .bind(":sweep", sweep_)
          .bind(":row", row.id)
          .bind(":seeds", row.seeds)
          .bind(":open", why.empty())
          .bind(":why", why)
          .bind(":now", now_)
          .bind(":position", row.position)
          .bind(":baseline", baseline)
          .bind(":twin", twin)
          .bind(":planned", planned)
          .run();
    }
    db_.prepared(R"sql(
        INSERT OR REPLACE INTO growth_rule (sweep_id, revision, source, take, better, compare, tests, decided)
        SELECT s.id, :revision, c.source, c.take, c.better, COALESCE(CASE WHEN json_valid(s.canonical) THEN s.canonical -> '$.table.compare' END, '{}'), :tests, 0
        FROM sweep s JOIN sweep_column c ON c.sweep_id = s.id AND c.name = :column WHERE s.id = :sweep)sql")
        .bind(":sweep", sweep_)
        .bind(":revision", revision)
        .bind(":column", judge_.rule.column)
        .bind(":tests", tests)
        .run();
    if (db_.changes() == 0)
      throw Error{Code::kInvalidArgument, fmt::format("it has no column '{}'", judge_.rule.column)};
  }

  std::optional<Known> known(int position) const {
    static const std::string sql =
        std::string{kKnown} +
        "WHERE sweep_id = :sweep AND row = (SELECT id FROM sweep_row WHERE sweep_id = :sweep AND position = "
        ":position)";
    return db_.prepared(sql.c_str()).bind(":sweep", sweep_).bind(":position", position).one(read_known);
  }
  std::optional<Known> known(const std::string& id) const {
    static const std::string sql = std::string{kKnown} + "WHERE sweep_id = :sweep AND row = :row";
    return db_.prepared(sql.c_str()).bind(":sweep", sweep_).bind(":row", id).one(read_known);
  }
  SeededRow read(const std::string& id, int position) const {
    return {id, storage::read_seeds(db_, sweep_, position, column_)};
  }
  bool is_baseline(const std::string& id) const {
    return db_
        .prepared(
            "SELECT 1 FROM sweep_growth INDEXED BY sweep_growth_undecided WHERE sweep_id = :sweep AND "
            "baseline = :row AND decided = 0 LIMIT 1")
        .bind(":sweep", sweep_)
        .bind(":row", id)
        .one([](const Statement&) { return true; })
        .has_value();
  }

  void set_due(int row, int pass, int next) {
    db_.prepared(
           "INSERT INTO growth_due (sweep_id, row, pass, next) VALUES (:sweep, :row, :pass, :next) "
           "ON CONFLICT DO NOTHING")
        .bind(":sweep", sweep_)
        .bind(":row", row)
        .bind(":pass", pass)
        .bind(":next", next)
        .run();
  }

  /// Computes the p of a row's comparison, where it has one.
  void test(int position) {
    const auto known = this->known(position);
    if (!known || known->baseline.empty()) return;
    const auto other = this->known(known->baseline);
    if (!other) return;
    const SeedLook now = look(judge_, read(known->id, position), read(other->id, other->position));
    if (now.p == known->p && now.looked == known->looked) return;
    db_.prepared("UPDATE sweep_growth SET p = :p, looked = :looked WHERE sweep_id = :sweep AND row = :row")
        .bind(":p", now.p)
        .bind(":looked", now.looked)
        .bind(":sweep", sweep_)
        .bind(":row", known->id)
        .run();
    // a value was taken away, or one came into the gap before others: which are decided follows anew
    if (known->decided && known->planned && now.p.value_or(2) > known->p.value_or(0)) undecide();
  }

  double below() const {
    return judge_.compare.correction == protocol::Correction::kHolm && tests_ > decided_
               ? views::kAlpha / (tests_ - decided_)
               : views::kAlpha;
  }

  /// Holm's procedure from where it stands: the least p is held against α by the number of comparisons that
  /// are not decided, and so on while one is. As looks only lower p, this is what it gives from the start.
  void settle() {
    while (compares()) {
      const auto next = db_.prepared(R"sql(
          SELECT position, p FROM sweep_growth INDEXED BY sweep_growth_p
          WHERE sweep_id = :sweep AND planned = 1 AND decided = 0 AND p IS NOT NULL ORDER BY p LIMIT 1)sql")
                            .bind(":sweep", sweep_)
                            .one([](const Statement& line) {
                              return std::pair{static_cast<int>(line.integer(0)), line.real(1)};
                            });
      const double times = judge_.compare.correction == protocol::Correction::kHolm
                               ? static_cast<double>(tests_ - decided_)
                               : 1;
      if (!next || !(times * next->second < views::kAlpha)) return;  // as statistics::holm multiplies
      db_.prepared("UPDATE sweep_growth SET decided = 1 WHERE sweep_id = :sweep AND position = :position")
          .bind(":sweep", sweep_)
          .bind(":position", next->first)
          .run();
      set_decided(decided_ + 1);
      finish(next->first);
    }
  }
  void undecide() {
    db_.prepared(R"sql(
        INSERT INTO growth_due (sweep_id, row) SELECT sweep_id, position FROM sweep_growth WHERE sweep_id = :sweep AND decided = 1
        ON CONFLICT DO UPDATE SET pass = 0, next = 0)sql")
        .bind(":sweep", sweep_)
        .run();
    db_.prepared("UPDATE sweep_growth SET decided = 0 WHERE sweep_id = :sweep AND decided = 1")
        .bind(":sweep", sweep_)
        .run();
    set_decided(0);
  }
  void set_decided(std::uint32_t decided) {
    decided_ = decided;
    db_.prepared("UPDATE growth_rule SET decided = :decided WHERE sweep_id = :sweep")
        .bind(":decided", decided)
        .bind(":sweep", sweep_)
        .run();
  }

  /// Decides what becomes of a row by what is known of it, and does it.
  void finish(int position) {
    const auto known = this->known(position);
    if (!known) return;
    if (!compares()) {
      const SeededRow row = read(known->id, position);
      return apply(*known, row, decide(judge_, row));
    }
    if (known->baseline.empty() && !known->twin.empty()) {  // the baseline's trials: it has all of them
      const auto twin = this->known(known->twin);
      if (twin) add_seeds(*known, read(known->id, position), twin->seeds, 1);
      return;
    }
    if (known->baseline.empty()) return refresh_baseline(known->id);
    const auto other = this->known(known->baseline);
    if (!other) return;
    bool decided = known->decided;
    if (!known->twin.empty())  // its p is the other's
      if (const auto twin = this->known(known->twin)) decided = twin->decided;
    const SeededRow row = read(known->id, position), baseline = read(other->id, other->position);
    const SeedLook look{known->p, known->looked};
    const SeedDecision decision =
        decide(judge_, row, baseline, look, decided ? std::nullopt : std::optional{below()});
    // of two that wait for each other's seeds the baseline's is worth most: others are compared with it too
    add_seeds(*other, baseline, decision.seeds, std::min(decision.turn, 1e-9));
    apply(*known, row, decision);
    if (known->twin.empty())
      db_.prepared(R"sql(
          INSERT INTO growth_due (sweep_id, row) SELECT sweep_id, position FROM sweep_growth INDEXED BY sweep_growth_twin
          WHERE sweep_id = :sweep AND twin = :row AND twin <> '' AND decided <> :decided ON CONFLICT DO NOTHING)sql")
          .bind(":sweep", sweep_)
          .bind(":row", known->id)
          .bind(":decided", decided)
          .run();
    else if (decided != known->decided)
      db_.prepared("UPDATE sweep_growth SET decided = :decided WHERE sweep_id = :sweep AND row = :row")
          .bind(":decided", decided)
          .bind(":sweep", sweep_)
          .bind(":row", known->id)
          .run();
    refresh_baseline(other->id);
  }

  void apply(const Known& known, const SeededRow& row, const SeedDecision& decision) {
    const std::uint32_t seeds = add_seeds(known, row, decision.seeds, decision.turn);
    write(known, {.row = known.id, .seeds = seeds, .open = decision.open, .why = decision.why});
  }
  /// Returns: how many it has then.
  std::uint32_t add_seeds(const Known& known, const SeededRow& row, std::uint32_t seeds, double turn) {
    seeds = std::max(row.claimed, std::min(seeds, judge_.rule.max));
    for (std::uint32_t seed = row.claimed; seed < seeds; ++seed, grown_ = true)
      storage::SweepStore{db_}.add_seed(sweep_, known.id, static_cast<int>(seed), now_, with_seed, turn);
    if (seeds != known.seeds)
      db_.prepared("UPDATE sweep_growth SET seeds = :seeds WHERE sweep_id = :sweep AND row = :row")
          .bind(":seeds", seeds)
          .bind(":sweep", sweep_)
          .bind(":row", known.id)
          .run();
    if (seeds > row.claimed)  // rows of the same trials have them too
      db_.prepared(R"sql(
          INSERT INTO growth_due (sweep_id, row) SELECT sweep_id, position FROM sweep_growth INDEXED BY sweep_growth_twin
          WHERE sweep_id = :sweep AND twin = :row AND twin <> '' ON CONFLICT DO NOTHING)sql")
          .bind(":sweep", sweep_)
          .bind(":row", known.id)
          .run();
    return seeds;
  }
  void write(const Known& known, const storage::RowGrowth& growth) {
    if (growth != storage::RowGrowth{known.id, known.seeds, known.open, known.why})
      storage::SweepStore{db_}.set_growth(sweep_, growth, now_);
  }

  /// A baseline may get more while a row that is compared with it may.
  void refresh_baseline(const std::string& id) {
    const auto baseline = known(id);
    if (!baseline || !baseline->baseline.empty()) return;
    struct First {
      std::string id, why;
    };
    const auto first = db_.prepared(R"sql(
        SELECT row, why FROM sweep_growth INDEXED BY sweep_growth_open
        WHERE sweep_id = :sweep AND baseline = :row AND open = 1 ORDER BY position LIMIT 1)sql")
                           .bind(":sweep", sweep_)
                           .bind(":row", id)
                           .one([](const Statement& line) {
                             return First{line.text(0), line.text(1)};
                           });
    storage::RowGrowth growth{.row = id, .seeds = baseline->seeds, .open = first.has_value()};
    if (first && !first->why.empty())
      growth.why = fmt::format("row {} is compared with it and not decided", first->id);
    else if (!first)
      growth.why = is_compared_with(id) ? "every row that is compared with it is settled"
                                        : "it is compared with no other row";
    write(*baseline, growth);
  }
  bool is_compared_with(const std::string& id) const {
    return db_
        .prepared(
            "SELECT 1 FROM sweep_growth INDEXED BY sweep_growth_compared WHERE sweep_id = :sweep AND "
            "baseline = :row AND baseline <> '' LIMIT 1")
        .bind(":sweep", sweep_)
        .bind(":row", id)
        .one([](const Statement&) { return true; })
        .has_value();
  }

  Database& db_;
  SweepId sweep_;
  Time now_;
  SeedJudge judge_;
  storage::Column column_;
  std::uint32_t tests_ = 0, decided_ = 0;
  bool is_begun_ = false, grown_ = false;
};

struct Due {
  SweepId sweep = 0;
  int row = 0, pass = 0, next = 0;
};
std::optional<Due> next_due(Database& db, std::optional<SweepId> sweep = std::nullopt) {
  return db
      .prepared(
          "SELECT sweep_id, row, pass, next FROM growth_due WHERE sweep_id >= :first AND sweep_id <= :last "
          "ORDER BY sweep_id, row LIMIT 1")
      .bind(":first", sweep.value_or(0))
      .bind(":last", sweep.value_or(storage::SweepStore::kNewest))
      .one([](const Statement& line) {
        return Due{static_cast<SweepId>(line.integer(0)), static_cast<int>(line.integer(1)),
                   static_cast<int>(line.integer(2)), static_cast<int>(line.integer(3))};
      });
}

/// Returns: how many rows were looked at.
int go_on(Database& db, const Due& due, Time now) {
  auto growing = Growing::open(db, due.sweep, now);
  if (!growing) return forget_dues(db, due.sweep), 1;
  if (!growing->is_begun()) growing->look_at_all();  // of an older version, or imported
  const int looks = growing->go_on(due.row, due.pass, due.next);
  if (growing->has_grown()) refresh_budget(db, due.sweep, now);  // before one of them can be leased
  return looks;
}

}  // namespace

void grow_seeds(Database& db, SweepId sweep, Time now) {
  auto growing = Growing::open(db, sweep, now);
  if (!growing) return forget_dues(db, sweep);
  growing->look_at_all();
  if (growing->has_grown()) refresh_budget(db, sweep, now);
  while (const auto due = next_due(db, sweep)) go_on(db, *due, now);  // seeds that are stored already
}

bool grow_due(Database& db, Time now) {
  auto due = next_due(db);
  for (int looks = 0; due; due = next_due(db)) {
    // one that might get seeds looks finished otherwise
    if (looks >= kLooksAtOnce && !is_idle(db, due->sweep)) break;
    if (const auto why = make_apart(db, [&] { looks += go_on(db, *due, now); })) {
      log_error("no seeds are added to sweep {}: {}", due->sweep, *why);
      forget_dues(db, due->sweep);
    }
  }
  return due.has_value();
}

}  // namespace abl::scheduler
