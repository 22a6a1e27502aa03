// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "storage/annotation_store.h"
#include "storage/probe_store.h"
#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

/// How the sweep came to be what it is.
void add_growth(storage::Database& db, const storage::SweepRecord& sweep, v1::SweepDetail& message) {
  constexpr std::uint32_t kMostFormer = 1000;
  const storage::SweepStore store{db};
  for (const auto& stored : store.revisions(sweep.id)) *message.add_revisions() = to_proto(stored);
  for (const auto& stored : store.former(sweep.id, kMostFormer)) {
    v1::FormerTrial& former = *message.add_former();
    former.set_row(stored.row);
    former.set_label(stored.label);
    former.set_seed(stored.seed);
    former.set_trial(stored.trial);
    former.set_state(to_proto(stored.state));
    former.set_run(stored.run.value_or(0));
    former.set_revision(stored.revision);
    former.set_why(stored.why);
  }
  if (sweep.seeds_rule.empty()) return;
  const auto rule = nlohmann::json::parse(sweep.seeds_rule);
  v1::Seeding& seeding = *message.mutable_seeding();
  seeding.set_min(rule.at("min").get<std::uint32_t>());
  seeding.set_max(rule.at("max").get<std::uint32_t>());
  seeding.set_until(rule.at("until").get<std::string>());
  for (const auto& stored : store.growth(sweep.id)) {
    v1::SeededRow& row = *seeding.add_rows();
    row.set_row(stored.row);
    row.set_seeds(stored.seeds);
    row.set_open(stored.open);
    row.set_why(stored.why);
  }
}

}  // namespace

v1::SweepDetail sweep_detail(storage::Database& db, const std::string& name, const Page& page) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::SweepStore store{db};
  const auto sweep = store.get_brief(name);
  v1::SweepDetail message = sweep_trials(db, sweep, page);
  *message.mutable_summary() = sweep_summary(db, sweep);
  message.set_text(store.text(sweep.id));
  message.set_file(sweep.file);
  if (page.first > 0) return message;
  add_growth(db, sweep, message);
  message.set_notes(storage::AnnotationStore{db}.notes(sweep.id));
  for (const auto& probe : storage::probes_of(sweep.probes)) message.add_probes(protocol::to_text(probe));
  return message;
}

v1::SweepDetail sweep_trials(storage::Database& db, const storage::SweepRecord& sweep, const Page& page) {
  const storage::SweepStore store{db};
  v1::SweepDetail message;
  const auto claims =
      store.claims(sweep.id, {.first = page.first, .count = page.count, .most_trials = page.most_trials});
  if (page.with_baseline)
    if (const auto row = store.row(sweep.id, sweep.baseline);
        row && std::ranges::find(claims, *row, &storage::ClaimRecord::row) == claims.end())
      for (const auto& claim :
           store.claims(sweep.id, {.first = static_cast<std::uint32_t>(*row), .count = 1}))
        *message.add_trials() = to_proto(claim);
  for (const auto& claim : claims) *message.add_trials() = to_proto(claim);
  if (const auto next = claims.empty() ? 0 : static_cast<std::uint32_t>(claims.back().row) + 1;
      next < sweep.rows)
    message.set_next(next);
  message.set_left_out(sweep.trials.total() - static_cast<std::uint32_t>(message.trials_size()));
  return message;
}

extern const Read kSweepRead{
    .path = "sweeps/*",
    .of = &kSweepOfPath,
    .about = "The sweep, its file, and its trials with their newest runs",
    .parameters = {kFirstRow, kRowCount},
    .message = v1::SweepDetail::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          return to_json(sweep_detail(stored.db, query.name, query.page_of_rows()));
        },
};

}  // namespace abl::views
