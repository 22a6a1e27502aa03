// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ablate/v1/pages.pb.h"
#include "protocol/metrics.h"
#include "storage/sweep_store.h"
#include "views/read.h"
#include "views/sweep_query.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Database;
using storage::Statement;
using storage::SweepRecord;

constexpr std::uint32_t kMostShown = 500, kShownUnlessSaid = 100;
/// Sweeps that are looked at, the newest; their columns' names are known of fewer, and their values are
/// read of no more trials than that.
constexpr std::uint32_t kMostSearched = 10'000, kBlock = 500, kNewestWithColumns = 1000;
constexpr std::uint64_t kMostTrialsRead = 100'000;

std::vector<std::string> column_names(Database& db) {
  return db
      .prepared(R"sql(SELECT DISTINCT c.name FROM (SELECT id FROM sweep ORDER BY id DESC LIMIT :newest) s
                      CROSS JOIN sweep_column c ON c.sweep_id = s.id AND c.kind IN ('metric', 'count') LIMIT 1000)sql")
      .bind(":newest", kNewestWithColumns)
      .all([](const Statement& row) { return row.text(0); });
}

/// What units of texts are of what is stored.
double scale_of(const std::string& unit) { return unit == "M" ? 1e6 : unit == "G" ? 1e9 : 1; }

/// Whether a row's mean in the column meets a test; nothing where there is no such column, or no row has a
/// mean.
std::optional<bool> meets(Database& db, RowMeans::Search& means, const SweepRecord& sweep,
                          const SweepQuery::ColumnTest& test) {
  struct Column {
    int position = 0;
    bool is_count = false;
    double scale = 1;
  };
  const auto column =
      db.prepared(
            "SELECT position, kind, unit FROM sweep_column WHERE sweep_id = :sweep AND name = :name "
            "AND kind IN ('metric', 'count')")
          .bind(":sweep", sweep.id)
          .bind(":name", test.column)
          .one([](const Statement& row) {
            return Column{static_cast<int>(row.integer(0)), row.text(1) == "count", scale_of(row.text(2))};
          });
  if (!column) return std::nullopt;
  constexpr const char* kCounts = R"sql(
      SELECT mc.value FROM sweep_column c CROSS JOIN sweep_row r ON r.sweep_id = c.sweep_id
      CROSS JOIN model_count mc ON mc.model_hash = r.model_hash AND mc.mode = c.source
        AND mc.version = (SELECT MAX(version) FROM model_count WHERE model_hash = r.model_hash AND mode = c.source)
      WHERE c.sweep_id = :sweep AND c.position = :column)sql";
  std::optional<bool> met;
  const auto look = [&](double mean) {
    if (!std::isnan(mean)) met = met.value_or(false) || holds(test.op, mean / column->scale, test.value);
  };
  if (column->is_count) {
    for (const double count :
         db.prepared(kCounts)
             .bind(":sweep", sweep.id)
             .bind(":column", column->position)
             .all([](const Statement& row) { return row.is_null(0) ? std::nan("") : row.real(0); }))
      look(count);
  } else {
    for (const double mean : means.of(db, sweep, column->position)) look(mean);
  }
  return met;
}

/// Those of a query among the newest sweeps, newest first; what was not looked at becomes a note.
std::vector<SweepRecord> found(Database& db, RowMeans::Search* means, const SweepQuery& query, Time now,
                               v1::SearchResponse& message) {
  const storage::SweepStore store{db};
  std::vector<SweepRecord> sweeps;
  auto before = storage::SweepStore::kNewest;
  std::uint32_t looked_at = 0;
  while (looked_at < kMostSearched) {
    auto block = store.list(kBlock, before);
    looked_at += static_cast<std::uint32_t>(block.size());
    if (!block.empty()) before = block.back().id;
    const bool is_last = block.size() < kBlock;
    for (auto& sweep : block)
      if (query.matches(sweep, now)) sweeps.push_back(std::move(sweep));
    if (is_last) break;
  }
  if (looked_at == kMostSearched && store.count() > looked_at)
    message.add_notes(fmt::format("only the newest {} of {} sweeps were searched", looked_at, store.count()));
  if (!means) return sweeps;
  std::uint64_t trials = 0;
  std::uint32_t passed_over = 0;
  std::erase_if(sweeps, [&](const SweepRecord& sweep) {
    trials += sweep.trials.total();
    if (trials > kMostTrialsRead) return ++passed_over, true;
    return !std::ranges::all_of(query.columns(), [&](const SweepQuery::ColumnTest& test) {
      const auto met = meets(db, *means, sweep, test);
      return met && *met != test.negated;  // without a value it is neither
    });
  });
  if (passed_over > 0)
    message.add_notes(
        fmt::format("the tables of {} older sweep{} were not searched; narrow the query with name: or state:",
                    passed_over, passed_over == 1 ? "" : "s"));
  return sweeps;
}

v1::SearchResponse search(Database& db, RowMeans& kept, const std::string& text, const std::string& sort,
                          const std::string& after, std::uint32_t count) {
  const Time now = SystemClock{}.now();
  const SweepQuery query{text, [&] { return column_names(db); }};
  std::optional<RowMeans::Search> means;
  if (!query.columns().empty()) means.emplace(kept.begin(db));
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  v1::SearchResponse message;
  std::vector<SweepRecord> sweeps = found(db, means ? &*means : nullptr, query, now, message);
  means.reset();
  if (!query.asks_for_archived())
    message.set_archived(static_cast<std::uint32_t>(
        std::erase_if(sweeps, [](const SweepRecord& sweep) { return sweep.archived.has_value(); })));
  const auto order = sweep_order(sort, now);
  std::ranges::sort(sweeps, order);
  message.set_matching(static_cast<std::uint32_t>(sweeps.size()));
  auto first = sweeps.begin();
  if (!after.empty())  // which may have ceased to match
    first = std::ranges::upper_bound(sweeps, storage::SweepStore{db}.get_brief(after), order);
  const auto left = static_cast<std::size_t>(sweeps.end() - first);
  const std::vector<SweepRecord> shown(
      first, first + static_cast<std::ptrdiff_t>(std::min<std::size_t>(left, count)));
  for (auto& summary : sweep_summaries(db, shown, now)) *message.add_sweeps() = std::move(summary);
  if (left > count) message.set_next(shown.back().name);
  return message;
}

}  // namespace

extern const Read kSearchRead{
    .path = "search",
    .about = "Sweeps that match a query, pinned ones first, then newest first, among the newest 10,000",
    .parameters = {{.name = "query", .about = "Terms that must all match, such as `state:failed age<7d`"},
                   {.name = "sort", .about = "Sort key; a `-` before it reverses the order"},
                   {.name = "after",
                    .about = "Only sweeps after this one; to continue, `next` of the last answer"},
                   {.name = "count",
                    .about = "Sweeps to return at most",
                    .number = Range{.lowest = 1, .highest = kMostShown, .otherwise = kShownUnlessSaid}}},
    .message = v1::SearchResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          return to_json(search(stored.db, stored.tables.means(), query.text("query"), query.text("sort"),
                                query.text("after"), query.number("count")));
        },
};

}  // namespace abl::views
