// SPDX-License-Identifier: Apache-2.0
#include "storage/sweep_store.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/nearest_name.h"
#include "base/sha256.h"

namespace abl::storage {
namespace {

/// Sweeps with their texts, or without, of those that `where` chooses, newest first.
std::string select_sweeps(const std::string& texts, const std::string& where) {
  return "SELECT s.id, s.name, s.file, " + texts +
         R"sql(, s.canonical_hash, s.baseline, s.paper_heading, s.state, s.priority,
             COALESCE((SELECT MAX(position) + 1 FROM sweep_row WHERE sweep_id = s.id), 0),
             COALESCE((SELECT MAX(position) + 1 FROM sweep_seed WHERE sweep_id = s.id), 0),
             n.queued, n.leased, n.running, n.completed, n.failed, n.held, n.cancelled, n.unfilled,
             s.created_ms, MAX(s.created_ms, CASE s.state WHEN 'cancelled' THEN s.state_ms ELSE 0 END, n.finished_ms, COALESCE(un.finished_ms, 0)),
             s.owner, s.weight, s.max_running, s.preempts, s.breaker, s.canary, s.held,
             (SELECT json_group_array(held) FROM (SELECT held FROM sweep_level INDEXED BY sweep_level_held
                                                  WHERE sweep_id = s.id AND held <> '' LIMIT 20)),
             (SELECT COUNT(*) FROM sweep_level INDEXED BY sweep_level_held WHERE sweep_id = s.id AND held <> ''),
             s.revision, s.seeds_rule, s.gpu_ms_limit, s.until_ms, s.spent, n.gpu_ms,
             u.by_id, (SELECT name FROM sweep WHERE id = u.by_id), u.rows, u.open, u.failed,
             un.queued, un.leased, un.running, un.completed, un.failed, un.held, un.cancelled,
             (SELECT o.name FROM sweep_tuning ot JOIN sweep o ON o.id = ot.sweep_id WHERE ot.by_id = s.id), s.probes,
             s.tags, s.pinned, s.archived_ms
      FROM sweep s JOIN sweep_count n ON n.sweep_id = s.id
      LEFT JOIN sweep_tuning u ON u.sweep_id = s.id LEFT JOIN sweep_count un ON un.sweep_id = u.by_id
      WHERE )sql" +
         where + " ORDER BY s.id DESC";
}

/// After the first of the `levels` that are held: how many more there are.
void say_more(std::vector<std::string>& holds, std::int64_t levels) {
  constexpr std::int64_t kSaid = 20;
  if (levels > kSaid) holds.push_back(fmt::format("and {} more fail", levels - kSaid));
}

SweepRecord read_sweep(const Statement& row) {
  const auto count = [&](int column) { return static_cast<std::uint32_t>(row.integer(column)); };
  SweepRecord sweep{.id = count(0),
                    .name = row.text(1),
                    .file = row.text(2),
                    .text = row.text(3),
                    .canonical = row.text(4),
                    .canonical_hash = row.text(5),
                    .baseline = row.text(6),
                    .paper_heading = row.text(7),
                    .state = sweep_state(row.text(8)),
                    .priority = static_cast<int>(row.integer(9)),
                    .owner = row.text(22),
                    .weight = row.real(23),
                    .rows = count(10),
                    .seeds = count(11),
                    .trials = {.queued = count(12),
                               .leased = count(13),
                               .running = count(14),
                               .completed = count(15),
                               .failed = count(16),
                               .held = count(17),
                               .cancelled = count(18),
                               .unfilled = count(19)},
                    .created = row.time(20)};
  if (!row.is_null(24)) sweep.max_running = count(24);
  sweep.preempts = row.integer(25) != 0;
  sweep.breaker = row.integer(26) != 0;
  sweep.canary = row.integer(27) != 0;
  if (std::string held = row.text(28); !held.empty()) sweep.holds.push_back(std::move(held));
  if (const std::string levels = row.text(29); levels != "[]")
    for (auto& held : nlohmann::json::parse(levels)) sweep.holds.push_back(held.get<std::string>());
  say_more(sweep.holds, row.integer(30));
  sweep.revision = count(31);
  sweep.seeds_rule = row.text(32);
  if (!row.is_null(33)) sweep.budget.gpu_time = Milliseconds{row.integer(33)};
  if (!row.is_null(34)) sweep.budget.until = row.time(34);
  sweep.spent = row.text(35);
  sweep.gpu_time = Milliseconds{row.integer(36)};
  if (sweep.state == SweepState::kCancelled) sweep.holds.clear();  // nothing of it is held any more
  if (!row.is_null(37))
    sweep.tuning = {.by = count(37),
                    .name = row.text(38),
                    .trials = {.queued = count(42),
                               .leased = count(43),
                               .running = count(44),
                               .completed = count(45),
                               .failed = count(46),
                               .held = count(47),
                               .cancelled = count(48)},
                    .rows = count(39),
                    .open = count(40),
                    .failed = count(41)};
  sweep.tunes = row.text(49);
  sweep.probes = row.text(50);
  if (const std::string tags = row.text(51); tags != "[]") nlohmann::json::parse(tags).get_to(sweep.tags);
  sweep.pinned = row.integer(52) != 0;
  if (!row.is_null(53)) sweep.archived = row.time(53);
  if (!sweep.is_open()) sweep.finished = row.time(21);
  return sweep;
}

}  // namespace

std::vector<SweepRecord> SweepStore::list(std::uint32_t count, SweepId before) const {
  static const std::string sql = select_sweeps(
      "'', ''", "s.id IN (SELECT id FROM sweep WHERE id < :before ORDER BY id DESC LIMIT :count)");
  return db_.prepared(sql.c_str()).bind(":before", before).bind(":count", count).all(read_sweep);
}

std::vector<SweepRecord> SweepStore::list_others(std::uint32_t count, SweepId before) const {
  static const std::string sql =
      select_sweeps("'', ''",
                    "s.id IN (SELECT id FROM sweep WHERE id < :before AND pinned = 0 AND archived_ms IS NULL "
                    "ORDER BY id DESC LIMIT :count)");
  return db_.prepared(sql.c_str()).bind(":before", before).bind(":count", count).all(read_sweep);
}

std::vector<SweepRecord> SweepStore::pinned(std::uint32_t count) const {
  static const std::string sql = select_sweeps(
      "'', ''",
      "s.id IN (SELECT id FROM sweep INDEXED BY sweep_pinned WHERE pinned = 1 AND archived_ms IS "
      "NULL ORDER BY id DESC LIMIT :count)");
  return db_.prepared(sql.c_str()).bind(":count", count).all(read_sweep);
}

std::uint32_t SweepStore::count_archived() const {
  return static_cast<std::uint32_t>(
      db_.prepared("SELECT COUNT(*) FROM sweep INDEXED BY sweep_archived WHERE archived_ms IS NOT NULL")
          .one([](const Statement& row) { return row.integer(0); })
          .value());
}

std::uint32_t SweepStore::count() const {
  return static_cast<std::uint32_t>(db_.prepared("SELECT COUNT(*) FROM sweep")
                                        .one([](const Statement& row) { return row.integer(0); })
                                        .value());
}

SweepId SweepStore::newest_but(std::uint32_t others) const {
  return db_.prepared("SELECT id FROM sweep ORDER BY id DESC LIMIT 1 OFFSET :others")
      .bind(":others", others)
      .one([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); })
      .value_or(0);
}

std::optional<SweepRecord> SweepStore::find(const std::string& name) const {
  static const std::string sql = select_sweeps("s.text, s.canonical", "s.name = :name");
  return db_.prepared(sql.c_str()).bind(":name", name).one(read_sweep);
}

SweepRecord SweepStore::get_brief(const std::string& name) const {
  static const std::string sql = select_sweeps("'', ''", "s.name = :name");
  if (auto sweep = db_.prepared(sql.c_str()).bind(":name", name).one(read_sweep)) return *std::move(sweep);
  return get(name);  // says what there is
}

std::string SweepStore::text(SweepId sweep) const {
  return db_.prepared("SELECT text FROM sweep WHERE id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.text(0); })
      .value_or("");
}

SweepRecord SweepStore::get(const std::string& name) const {
  if (auto sweep = find(name)) return *sweep;
  const auto names = db_.prepared("SELECT name FROM sweep ORDER BY id DESC").all([](const Statement& row) {
    return row.text(0);
  });
  std::string hint = did_you_mean(name, names);
  if (hint.empty())
    hint = names.empty() ? "; none was submitted yet" : "; the newest is '" + names.front() + "'";
  throw Error{Code::kNotFound, "unknown sweep '" + name + "'" + hint};
}

void SweepStore::rename(SweepId sweep, const std::string& name, const std::string& canonical) {
  if (find(name)) throw Error{Code::kAlreadyExists, "a sweep named '" + name + "' is in the store already"};
  db_.prepared(
         "UPDATE sweep SET name = :name, canonical = :canonical, canonical_hash = :hash, state = state WHERE "
         "id = :sweep")
      .bind(":name", name)
      .bind(":canonical", canonical)
      .bind(":hash", sha256_hex(canonical))
      .bind(":sweep", sweep)
      .run();
}

std::optional<std::string> SweepStore::name_of(SweepId sweep) const {
  return db_.prepared("SELECT name FROM sweep WHERE id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.text(0); });
}

void SweepStore::set_state(SweepId sweep, SweepState state, Time now) {
  db_.prepared("UPDATE sweep SET state = :state, state_ms = :now WHERE id = :sweep")
      .bind(":state", to_text(state))
      .bind(":now", now)
      .bind(":sweep", sweep)
      .run();
}

void SweepStore::set_priority(SweepId sweep, int priority) {
  db_.prepared("UPDATE sweep SET priority = :priority WHERE id = :sweep")
      .bind(":priority", priority)
      .bind(":sweep", sweep)
      .run();
}

void SweepStore::set_weight(SweepId sweep, double weight) {
  db_.prepared("UPDATE sweep SET weight = :weight WHERE id = :sweep")
      .bind(":weight", weight)
      .bind(":sweep", sweep)
      .run();
}

void SweepStore::set_preempts(SweepId sweep, bool preempts) {
  db_.prepared("UPDATE sweep SET preempts = :preempts WHERE id = :sweep")
      .bind(":preempts", preempts)
      .bind(":sweep", sweep)
      .run();
}

std::vector<std::string> SweepStore::holds(SweepId sweep) const {
  auto holds = db_.prepared(R"sql(
      SELECT held FROM sweep WHERE id = :sweep AND held <> '' AND state <> 'cancelled' UNION ALL
      SELECT held FROM (SELECT held FROM sweep_level INDEXED BY sweep_level_held
                        WHERE sweep_id = :sweep AND held <> '' LIMIT 20)
      WHERE (SELECT state FROM sweep WHERE id = :sweep) <> 'cancelled')sql")
                   .bind(":sweep", sweep)
                   .all([](const Statement& row) { return row.text(0); });
  if (holds.size() >= 20)
    say_more(holds, db_.prepared("SELECT COUNT(*) FROM sweep_level INDEXED BY sweep_level_held WHERE "
                                 "sweep_id = :sweep AND held <> ''")
                        .bind(":sweep", sweep)
                        .one([](const Statement& row) { return row.integer(0); })
                        .value_or(0));
  return holds;
}

void SweepStore::set_breaker(SweepId sweep, bool breaker) {
  db_.prepared("UPDATE sweep SET breaker = :breaker, canary = canary AND :breaker WHERE id = :sweep")
      .bind(":breaker", breaker)
      .bind(":sweep", sweep)
      .run();
}

void SweepStore::set_max_running(SweepId sweep, std::optional<std::uint32_t> trials) {
  db_.prepared("UPDATE sweep SET max_running = :trials WHERE id = :sweep")
      .bind(":trials", trials)
      .bind(":sweep", sweep)
      .run();
}

}  // namespace abl::storage
