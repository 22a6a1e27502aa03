// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "storage/sweep_store.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

constexpr std::uint32_t kMostSweeps = 500, kMostPinned = 100;

/// As people see the list: pinned sweeps first, however old, and no archived ones.
v1::ListSweepsResponse listed_sweeps(storage::Database& db, std::uint32_t count, const std::string& after) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::SweepStore store{db};
  std::vector<storage::SweepRecord> sweeps;
  if (after.empty()) sweeps = store.pinned(kMostPinned);
  auto others =
      store.list_others(count + 1, after.empty() ? storage::SweepStore::kNewest : store.get_brief(after).id);
  v1::ListSweepsResponse message;
  if (others.size() > count) {
    others.pop_back();
    message.set_next(others.empty() ? after : others.back().name);
  }
  sweeps.insert(sweeps.end(), others.begin(), others.end());
  for (auto& summary : sweep_summaries(db, sweeps)) *message.add_sweeps() = std::move(summary);
  message.set_archived(store.count_archived());
  const auto all = store.count() - message.archived();
  message.set_left_out(all - std::min<std::uint32_t>(all, static_cast<std::uint32_t>(sweeps.size())));
  return message;
}

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
                    .number = Range{.highest = kMostSweeps, .otherwise = kMostSweeps}},
                   {.name = "listed",
                    .about = "1: as people see the list: pinned sweeps first (the newest 100 of them, beside "
                             "`count`), and no archived ones. Not with `first`",
                    .number = Range{.highest = 1, .otherwise = 0}}},
    .message = v1::ListSweepsResponse::descriptor,
    .quick = true,
    .answer =
        [](const Query& query, const Stored& stored) {
          const std::string after = query.text("after");
          if (!after.empty() && query.has("first"))
            throw Error{Code::kInvalidArgument, "'after' and 'first' cannot be combined"};
          if (query.number("listed") == 1) {
            if (query.has("first"))
              throw Error{Code::kInvalidArgument, "'listed' and 'first' cannot be combined"};
            return to_json(listed_sweeps(stored.db, query.number("count"), after));
          }
          return to_json(list_sweeps(stored.db, query.page(), after));
        },
};

}  // namespace abl::views
