// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

}  // namespace

v1::SweepDetail sweep_detail(storage::Database& db, const std::string& name, const Page& page) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::SweepStore store{db};
  const auto sweep = store.get_brief(name);
  v1::SweepDetail message = sweep_trials(db, sweep, page);
  *message.mutable_summary() = sweep_summary(db, sweep);
  message.set_text(store.text(sweep.id));
  message.set_file(sweep.file);
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
    .parameters = {"first", "count"},
    .answer =
        [](const Query& query, const Stored& stored) {
          return to_json(sweep_detail(stored.db, query.name, query.page_of_rows()));
        },
};

}  // namespace abl::views
