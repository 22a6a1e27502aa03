// SPDX-License-Identifier: Apache-2.0
#include "views/compared_side.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/nearest_name.h"
#include "storage/table.h"
#include "storage/trial_store.h"
#include "views/convert.h"

namespace abl::views {
using storage::Database;
using storage::Statement;
namespace {

constexpr std::size_t kNamesSearched = 20'000;  // for the nearest

[[noreturn]] void refuse_row(Database& db, const storage::SweepRecord& sweep, const std::string& row) {
  const auto ids =
      db.prepared("SELECT id FROM sweep_row WHERE sweep_id = :sweep AND other_sweep = '' LIMIT :most")
          .bind(":sweep", sweep.id)
          .bind(":most", static_cast<std::int64_t>(kNamesSearched))
          .all([](const Statement& line) { return line.text(0); });
  throw Error{Code::kNotFound,
              fmt::format("sweep {} has no row '{}'{}", sweep.name, row, did_you_mean(row, ids))};
}

void count_trials(Database& db, ComparedSide& side) {
  std::uint32_t total = 0, completed = 0;
  for (const auto& claim : storage::SweepStore{db}.claims(
           side.sweep->id, {.first = static_cast<std::uint32_t>(*side.row), .count = 1, .values = 0})) {
    ++total;
    completed += claim.state == storage::TrialState::kCompleted;
    if (!side.trial) side.trial = claim.trial;
  }
  side.said.set_trials(total);
  side.said.set_completed(completed);
}

ComparedSide row_side(Database& db, ComparedSide side, const std::string& row, int position) {
  side.said.set_kind("row");
  side.said.set_row(row);
  side.row = position;
  side.said.set_label(db.prepared("SELECT label FROM sweep_row WHERE sweep_id = :sweep AND position = :row")
                          .bind(":sweep", side.sweep->id)
                          .bind(":row", position)
                          .one([](const Statement& line) { return line.text(0); })
                          .value_or(""));
  count_trials(db, side);
  return side;
}

ComparedSide run_side(Database& db, ComparedSide side, storage::RunId id) {
  const auto run = storage::TrialStore{db}.run(id);
  side.run = id;
  side.trial = run.trial;
  side.said.set_kind("run");
  side.said.set_run(id);
  side.said.set_state(std::string{to_text(run.state)});
  const auto places = storage::SweepStore{db}.positions(run.trial);
  const auto own = std::ranges::find_if(places, [&](const auto& place) {
    return side.sweep && place.sweep == side.sweep->name &&
           (side.said.row().empty() || place.row == side.said.row());
  });
  const auto* const place = own != places.end() ? &*own : (places.empty() ? nullptr : &places.front());
  side.said.set_seed(storage::TrialStore{db}.get(run.trial).seed);
  if (!place) return side;
  side.sweep = storage::SweepStore{db}.get_brief(place->sweep);
  side.said.set_sweep(place->sweep);
  side.said.set_row(place->row);
  side.said.set_label(place->label);
  side.said.set_seed(place->seed);
  return side;
}

/// The newest run of a row's seed.
ComparedSide seed_side(Database& db, ComparedSide side, const std::string& row, int position,
                       const std::string& seed) {
  std::vector<std::string> seeds;
  for (const auto& claim : storage::SweepStore{db}.claims(
           side.sweep->id, {.first = static_cast<std::uint32_t>(position), .count = 1, .values = 0})) {
    seeds.push_back(fmt::format("{}", claim.seed));
    if (seeds.back() != seed) continue;
    side.said.set_row(row);
    if (claim.run) return run_side(db, std::move(side), *claim.run);
    throw Error{Code::kFailedPrecondition,
                fmt::format("{} has no run yet: it is {}", side.said.name(), to_text(claim.state))};
  }
  throw Error{Code::kNotFound, fmt::format("row {} of sweep {} has no seed '{}': it has {}", row,
                                           side.sweep->name, seed, fmt::join(seeds, ", "))};
}

}  // namespace

std::vector<storage::Column> ComparedSide::columns(Database& db) const {
  return sweep ? storage::read_columns(db, sweep->id) : std::vector<storage::Column>{};
}

ComparedSide compared_side(Database& db, const std::string& name) {
  ComparedSide side;
  side.said.set_name(name);
  if (name.empty())
    throw Error{Code::kInvalidArgument,
                "nothing to compare: expected SWEEP, SWEEP/ROW, SWEEP/ROW/SEED or a run's number"};
  storage::RunId run = 0;
  const char* const last_letter = name.data() + name.size();
  if (const auto [end, error] = std::from_chars(name.data(), last_letter, run);
      error == std::errc{} && end == last_letter)
    return run_side(db, std::move(side), run);
  const storage::SweepStore sweeps{db};
  const auto slash = name.find('/');
  side.sweep = sweeps.get_brief(name.substr(0, slash));
  side.said.set_sweep(side.sweep->name);
  if (slash == std::string::npos) {
    side.said.set_kind("sweep");
    side.said.set_rows(side.sweep->rows);
    side.said.set_trials(side.sweep->trials.total());
    side.said.set_completed(side.sweep->trials.completed);
    return side;
  }
  const std::string row = name.substr(slash + 1);
  if (const auto position = sweeps.row(side.sweep->id, row))
    return row_side(db, std::move(side), row, *position);
  const auto last = row.rfind('/');
  if (last == std::string::npos) refuse_row(db, *side.sweep, row);
  const std::string id = row.substr(0, last);
  const auto position = sweeps.row(side.sweep->id, id);
  if (!position) refuse_row(db, *side.sweep, id);
  return seed_side(db, std::move(side), id, *position, row.substr(last + 1));
}

}  // namespace abl::views
