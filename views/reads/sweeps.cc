// SPDX-License-Identifier: Apache-2.0
#include "storage/sweep_store.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

constexpr std::uint32_t kMostSweeps = 500;

}  // namespace

v1::ListSweepsResponse list_sweeps(storage::Database& db, const Page& page, const std::string& after) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::SweepStore store{db};
  const auto before = after.empty() ? storage::SweepStore::kNewest : store.get(after).id;
  v1::ListSweepsResponse message;
  for (const auto& sweep : store.list(page.first, page.count, before))
    *message.add_sweeps() = sweep_summary(db, sweep);
  const auto listed = static_cast<std::uint32_t>(message.sweeps_size());
  message.set_left_out(store.count() - listed);
  if (listed > 0 && page.first + listed < store.count(before))
    message.set_next(message.sweeps().rbegin()->name());
  return message;
}

extern const Read kSweepsRead{
    .path = "sweeps",
    .parameters = {"first", "count"},
    .answer =
        [](const Query& query, const Stored& stored) {
          return to_json(list_sweeps(stored.db, query.page(kMostSweeps, kMostSweeps)));
        },
};

}  // namespace abl::views
