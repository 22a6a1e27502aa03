// SPDX-License-Identifier: Apache-2.0
#include <limits>

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
  const auto before = !after.empty()   ? store.get_brief(after).id
                      : page.first > 0 ? store.newest_but(page.first - 1)
                                       : storage::SweepStore::kNewest;
  const std::uint32_t more = page.count == std::numeric_limits<std::uint32_t>::max() ? 0 : 1;
  auto sweeps = store.list(page.count + more, before);
  const bool is_last = sweeps.size() <= page.count;
  if (!is_last) sweeps.pop_back();
  v1::ListSweepsResponse message;
  for (auto& summary : sweep_summaries(db, sweeps)) *message.add_sweeps() = std::move(summary);
  if (!is_last && !sweeps.empty()) message.set_next(sweeps.back().name);
  const bool is_all = is_last && before == storage::SweepStore::kNewest;
  if (!is_all) message.set_left_out(store.count() - static_cast<std::uint32_t>(sweeps.size()));
  return message;
}

extern const Read kSweepsRead{
    .path = "sweeps",
    .about = "Sweeps, newest first",
    .parameters = {{.name = "after",
                    .about = "Only sweeps submitted before this one; to continue, `next` of the last answer. "
                             "Not with `first`"},
                   {.name = "first", .about = "Sweeps to skip", .number = Range{.otherwise = 0}},
                   {.name = "count",
                    .about = "Sweeps to return at most",
                    .number = Range{.highest = kMostSweeps, .otherwise = kMostSweeps}}},
    .message = v1::ListSweepsResponse::descriptor,
    .quick = true,
    .answer =
        [](const Query& query, const Stored& stored) {
          const std::string after = query.text("after");
          if (!after.empty() && query.has("first"))
            throw Error{Code::kInvalidArgument, "'after' and 'first' cannot be combined"};
          return to_json(list_sweeps(stored.db, query.page(), after));
        },
};

}  // namespace abl::views
