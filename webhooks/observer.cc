// SPDX-License-Identifier: Apache-2.0
#include "webhooks/observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/last_lines.h"
#include "storage/sweep_store.h"

namespace abl::webhooks {
namespace {

using nlohmann::ordered_json;
using storage::Statement;
using storage::SweepId;
using storage::SweepRecord;

struct Step {
  std::int64_t id = 0, trial = 0;
  std::string state;
  Time time{};
};

std::vector<Step> steps_after(storage::Database& db, const Told& told) {
  return db
      .prepared(
          "SELECT id, trial_id, state, time_ms FROM transition "
          "WHERE id > :after AND id <= :until ORDER BY id LIMIT :most")
      .bind(":after", told.upto)
      .bind(":until", told.until > 0 ? told.until : std::numeric_limits<std::int64_t>::max())
      .bind(":most", kStepsARound)
      .all([](const Statement& row) {
        return Step{row.integer(0), row.integer(1), row.text(2), row.time(3)};
      });
}

/// A trial that failed for good, or is held, and is so still.
struct Failed {
  std::string row;
  std::int64_t seed = 0, run = 0;
  std::string state, reason;
};

/// What a round has found of one sweep.
struct Found {
  std::int64_t step = 0;  // the last of it
  Time time{};
  bool completed = false;      // a trial of it has
  std::vector<Failed> failed;  // and held, kNamed at most
  std::size_t failures = 0, holds = 0;
};

std::string reason_of(const std::string& said) {
  constexpr std::size_t kLongest = 300;
  const std::string line = first_line(said, kLongest);
  return line.empty() ? "no reason was given" : line;
}

/// A cell that its table tells from its baseline's.
struct Significant {
  std::string row, column, baseline;
  const char* word = nullptr;
  ablate::v1::Cell cell;
};

/// Null: it is not told from it.
const char* word_of(ablate::v1::Comparison::Verdict verdict) {
  using Comparison = ablate::v1::Comparison;
  return verdict == Comparison::VERDICT_BETTER      ? "better"
         : verdict == Comparison::VERDICT_WORSE     ? "worse"
         : verdict == Comparison::VERDICT_DIFFERENT ? "different"
                                                    : nullptr;
}

class Look {
 public:
  Look(storage::Database& db, views::TableCache& tables, const Webhook& webhook, const Told& told)
      : db_{db}, tables_{tables}, webhook_{webhook}, round_{.happenings = {}, .told = told} {}

  Round take(const std::vector<Step>& steps) {
    Told& told = round_.told;
    const auto oldest = db_.prepared("SELECT MIN(id) FROM transition")
                            .one([](const Statement& row) { return row.integer(0); })
                            .value_or(0);
    round_.lost = std::max<std::int64_t>(0, oldest - told.upto - 1);
    std::map<SweepId, Found> found;
    std::set<std::int64_t> seen;  // trials: what became of one is read as it is now
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
      if (step->state != "leased" && step->state != "running" && step->state != "queued" &&
          seen.insert(step->trial).second)
        note(*step, found);
    round_.more = steps.size() == static_cast<std::size_t>(kStepsARound) || told.until > 0;
    told.upto = std::max(told.until, steps.empty() ? 0 : steps.back().id);
    told.until = 0;
    for (auto& [id, of_sweep] : found) tell(id, of_sweep);
    return std::move(round_);
  }

 private:
  void note(const Step& step, std::map<SweepId, Found>& found) {
    auto& claims = db_.prepared(R"sql(
        SELECT st.sweep_id, r.id, st.seed, COALESCE(t.run_id, 0), t.state, t.reason, st.withdrawn
        FROM sweep_trial st JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
          JOIN trial t ON t.id = st.trial_id
        WHERE st.trial_id = :trial)sql");
    claims.bind(":trial", step.trial).all([&](const Statement& row) {
      Found& of_sweep = found[static_cast<SweepId>(row.integer(0))];
      of_sweep.step = std::max(of_sweep.step, step.id);
      of_sweep.time = std::max(of_sweep.time, step.time);
      const std::string state = row.text(4);
      const bool wanted = row.integer(6) == 0;
      if (wanted && (state == "failed" || state == "held")) {  // and nobody has retried it since
        ++(state == "failed" ? of_sweep.failures : of_sweep.holds);
        if (of_sweep.failed.size() < kNamed)
          of_sweep.failed.push_back(
              {row.text(1), row.integer(2), row.integer(3), state, reason_of(row.text(5))});
      }
      return 0;
    });
  }

  void tell(SweepId id, const Found& found) {
    storage::SweepStore sweeps{db_};
    const auto name = sweeps.name_of(id);
    if (!name) return;  // removed meanwhile
    std::optional<SweepRecord> sweep;
    try {
      sweep = sweeps.get_brief(*name);
    } catch (const Error& error) {
      if (error.code() == Code::kNotFound) return;  // renamed or removed meanwhile
      throw;
    }
    if (found.failures + found.holds > 0) tell_failed(*sweep, found);
    tell_significant(*sweep, found);
    tell_complete(*sweep, found);
    if (sweep->tunes.empty()) return;
    if (const auto tuned = sweeps.find(sweep->tunes)) tell_complete(*tuned, found);
  }

  void add(Event event, const SweepRecord& sweep, const Found& found, std::string text, std::string page,
           ordered_json details) {
    round_.happenings.push_back({.event = event,
                                 .sweep = sweep.name,
                                 .owner = sweep.owner,
                                 .text = std::move(text),
                                 .page = std::move(page),
                                 .time = found.time,
                                 .details = std::move(details),
                                 .id = fmt::format("{}-{}-{}-{}", db_.store_id().substr(0, 8), found.step,
                                                   sweep.id, name_of(event))});
  }

  void tell_failed(const SweepRecord& sweep, Found found) {
    if (!webhook_.wants(Event::kRowFailed, sweep.name)) return;
    std::ranges::sort(found.failed, {}, [](const Failed& one) { return std::pair{one.row, one.seed}; });
    auto trials = ordered_json::array();
    const std::size_t all = found.failures + found.holds;
    std::string text = sweep.name + ": ";
    if (found.failures > 0)
      text += found.failures == 1 ? "a trial failed" : fmt::format("{} trials failed", found.failures);
    if (found.failures > 0 && found.holds > 0) text += ", ";
    if (found.holds > 0)
      text += found.holds == 1 ? "a trial is held" : fmt::format("{} trials are held", found.holds);
    for (const Failed& failed : found.failed) {
      trials.push_back(
          {{"row", failed.row}, {"seed", failed.seed}, {"state", failed.state}, {"reason", failed.reason}});
      if (failed.run > 0) trials.back()["run"] = failed.run;
      text += fmt::format("\n{}, seed {}{}: {}", failed.row, failed.seed,
                          failed.state == "held" ? ", held" : "", failed.reason);
    }
    if (all > found.failed.size()) text += fmt::format("\nand {} more", all - found.failed.size());
    const std::string page = all == 1 && found.failed.front().run > 0
                                 ? fmt::format("/runs/{}", found.failed.front().run)
                                 : fmt::format("/sweeps/{}/failures", sweep.name);
    add(Event::kRowFailed, sweep, found, std::move(text), page,
        {{"failed", found.failures}, {"held", found.holds}, {"trials", std::move(trials)}});
  }

  void tell_complete(const SweepRecord& sweep, const Found& found) {
    if (!webhook_.wants(Event::kSweepComplete, sweep.name) || !sweep.tunes.empty()) return;
    const storage::TrialCounts& own = sweep.trials;
    if (sweep.is_open() || own.held > 0 || sweep.state == storage::SweepState::kCancelled) return;
    const std::uint32_t tuned = sweep.tuning ? sweep.tuning->trials.completed : 0;
    if (own.completed + tuned + own.failed == 0) return;  // cancelled, one by one
    // the same again after a retry is news; the same of another round is none
    const auto finished = sweep.finished ? sweep.finished->time_since_epoch().count() : 0;
    const std::string with = fmt::format("{} {} {} {}", own.total(), own.completed, tuned, finished);
    auto& told = round_.told.complete[sweep.id];
    if (told == with) return;
    told = with;
    std::string text =
        fmt::format("{} is complete: {} of {} trials completed", sweep.name, own.completed, own.total());
    if (own.total() == 0)
      text = fmt::format("{} is complete: {} trials of its search completed", sweep.name, tuned);
    for (const auto& [count, what] : {std::pair{own.failed, "failed"}, std::pair{own.cancelled, "cancelled"}})
      if (count > 0) text += fmt::format(", {} {}", count, what);
    if (own.unfilled > 0)
      text += fmt::format("; of the completed, {} lack a metric of the table", own.unfilled);
    add(Event::kSweepComplete, sweep, found, std::move(text), fmt::format("/sweeps/{}", sweep.name),
        {{"trials",
          {{"total", own.total()},
           {"completed", own.completed},
           {"failed", own.failed},
           {"cancelled", own.cancelled},
           {"unfilled", own.unfilled}}}});
  }

  /// The test and its correction are the table's own: a cell is one that the table would colour.
  void tell_significant(const SweepRecord& sweep, const Found& found) {
    if (!webhook_.wants(Event::kCellSignificant, sweep.name)) return;
    std::shared_ptr<const views::PackedTable> table;
    try {
      table = tables_.table(db_, sweep.name, /*long_form=*/true);
    } catch (const Error& error) {
      if (error.code() == Code::kNotFound) return;
      throw;
    }
    const bool known = round_.told.cells.contains(sweep.id);
    std::set<std::string>& told = round_.told.cells[sweep.id];
    const bool silent = !known && sweep.created < round_.told.since;  // it may have been so for long
    std::vector<Significant> candidates;
    std::set<std::string>
        unsettled;  // rows to which seeds may still be added: what their cells say may change
    constexpr std::uint32_t kPart = 500;
    for (std::uint32_t first = 0; first < table->rows(); first += kPart) {
      const auto part = table->part({.first = first, .count = kPart});
      for (const auto& row : part.rows()) {
        const bool open = row.trials().queued() + row.trials().leased() + row.trials().running() > 0;
        if (open && !part.has_sequential()) unsettled.insert(row.id());  // there the test allows for looks
        for (int i = 0; i < std::min(row.cells_size(), part.columns_size()); ++i)
          if (const char* const word = word_of(row.cells(i).comparison().verdict());
              word && candidates.size() < kMostCells &&
              !told.contains(row.id() + '/' + part.columns(i).name()))
            candidates.push_back({.row = row.id(),
                                  .column = part.columns(i).name(),
                                  .baseline = row.baseline(),
                                  .word = word,
                                  .cell = row.cells(i)});
      }
    }
    std::erase_if(candidates, [&](const Significant& one) {
      return unsettled.contains(one.row) || unsettled.contains(one.baseline);
    });
    auto cells = ordered_json::array();
    std::string text;
    std::size_t news = 0;
    for (const auto& [row, column, baseline, word, cell] : candidates) {
      if (told.size() >= kMostCells) break;
      told.insert(row + '/' + column);
      if (silent) continue;
      ++news;
      if (cells.size() >= kNamed) continue;
      cells.push_back({{"row", row},
                       {"column", column},
                       {"verdict", word},
                       {"baseline", baseline},
                       {"text", cell.text()},
                       {"n", cell.n()},
                       {"why", cell.comparison().why()}});
      if (cell.has_mean()) cells.back()["mean"] = cell.mean();
      if (cell.has_p_corrected()) cells.back()["p_corrected"] = cell.p_corrected();
      text += fmt::format("\n{} of {}: {}, {} than {} ({})", column, row, cell.text(), word, baseline,
                          cell.comparison().why());
    }
    if (news == 0) return;
    text = fmt::format("{}: {} significant{}", sweep.name,
                       news == 1 ? "a difference is" : fmt::format("{} differences are", news), text);
    if (news > cells.size()) text += fmt::format("\nand {} more", news - cells.size());
    add(Event::kCellSignificant, sweep, found, std::move(text), fmt::format("/sweeps/{}", sweep.name),
        {{"significant", news}, {"cells", std::move(cells)}});
  }

  storage::Database& db_;
  views::TableCache& tables_;
  const Webhook& webhook_;
  Round round_;
};

}  // namespace

Told told_nothing(storage::Database& db, Time now) {
  const storage::Reading reading{db};
  return {.upto = db.prepared("SELECT COALESCE(MAX(id), 0) FROM transition")
                      .one([](const Statement& row) { return row.integer(0); })
                      .value_or(0),
          .since = now};
}

void forget_removed(storage::Database& db, Told& told) {
  const storage::Reading reading{db};
  const storage::SweepStore sweeps{db};
  const auto is_removed = [&](const auto& one) { return !sweeps.name_of(one.first); };
  std::erase_if(told.complete, is_removed);
  std::erase_if(told.cells, is_removed);
}

Round look(storage::Database& db, views::TableCache& tables, const Webhook& webhook, const Told& told) {
  const storage::Reading reading{db};
  const auto steps = steps_after(db, told);
  if (steps.empty() && told.until == 0) return {.happenings = {}, .told = {.upto = told.upto}};
  return Look{db, tables, webhook, told}.take(steps);
}

}  // namespace abl::webhooks
