// SPDX-License-Identifier: Apache-2.0
#include "views/table_cache.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/table_notes.h"

namespace abl::views {

std::shared_ptr<const PackedTable> TableCache::table(storage::Database& db, const std::string& sweep,
                                                     bool long_form) {
  if (db.in_transaction())
    throw Error{Code::kInternal, "a table is kept as of now, not as of the transaction that is open"};
  std::unique_lock lock{mutex_};
  const std::int64_t asked = watched_.data_version();
  for (;; computed_.wait(lock)) {
    if (const auto kept = find(sweep); kept != kept_.end() && is_new(*kept, asked))
      return kept->form(long_form);
    if (!under_way_.contains(sweep)) break;
  }
  under_way_.insert(sweep);
  Kept next{.sweep = sweep};
  if (const auto kept = find(sweep); kept != kept_.end()) next = *kept;
  next.version = watched_.data_version();  // before the reading begins: it sees that, or more
  lock.unlock();
  std::exception_ptr error;  // of this caller alone, who may have left: the next one tries by itself
  try {
    next = compute(db, sweep, std::move(next));
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  under_way_.erase(sweep);
  if (error)
    forget(sweep);  // what it was made of may have been changed by half
  else
    keep(next);
  computed_.notify_all();
  if (error) std::rethrow_exception(error);
  return next.form(long_form);
}

std::shared_ptr<const PackedTable> TableCache::pivoted(storage::Database& db, const std::string& sweep,
                                                       const std::vector<std::string>& factors) {
  return picked_.table(db, table(db, sweep, true), factors, memo_);
}

/// Whether it is no older than the state of the store that somebody asks for. The log hears of a commit after
/// readers may see it: a table that was brought up to date in between lacks what the log has since.
bool TableCache::is_new(const Kept& kept, std::int64_t asked) const {
  return kept.version >= asked && (!log_ || kept.number >= log_->number());
}

/// Both forms of a table, and their bytes.
void TableCache::Kept::pack(ablate::v1::Table&& message, storage::Table noted,
                            const std::shared_ptr<StatisticsMemo>& memo) {
  pivoted =
      has_pivot(message) ? std::make_shared<PackedTable>(views::pivoted(message, memo.get()), memo) : nullptr;
  table = std::make_shared<PackedTable>(std::move(message), memo, std::move(noted));
  bytes = table->bytes() + (pivoted ? pivoted->bytes() : 0);
}

/// The table as it is now, from what it was before, where that is known. Alone for a sweep.
TableCache::Kept TableCache::compute(storage::Database& db, const std::string& sweep, Kept next) const {
  if (!log_) {
    storage::Table stored = storage::read_table(db, sweep);
    storage::Table noted = views::noted(stored);
    next.pack(to_proto(std::move(stored)), std::move(noted), memo_);
    return next;
  }
  const storage::ChangeLog::Since since = log_->since(next.number);
  next.number = since.number;
  // a sweep that was removed may have given its name to another
  bool is_same = false;  // and one that was extended has other rows
  if (next.rows) {
    const storage::SweepRecord now = storage::SweepStore{db}.get_brief(sweep);
    is_same =
        now.id == next.rows->sweep() && now.revision == next.rows->revision() && next.rows->is_tuned(db);
  }
  if (!is_same || !since.complete) {
    next.rows = std::make_shared<storage::KeptTable>(db, sweep);
  } else {
    std::set<std::size_t> rows;
    for (const storage::TrialId trial : since.touched.trials)
      for (const int row : storage::SweepStore{db}.rows_with(next.rows->sweep(), trial))
        rows.insert(static_cast<std::size_t>(row));
    if (rows.empty() && next.rows->is_counted(db)) return next;
    next.rows->update(db, rows);
  }
  TableArena arena;
  ablate::v1::Table& message = arena.new_table();
  to_proto(next.rows->table(), memo_.get(), message);
  next.pack(std::move(message), noted(next.rows->table()), memo_);
  next.bytes += next.rows->bytes();
  return next;
}

std::list<TableCache::Kept>::iterator TableCache::find(const std::string& sweep) {
  const auto kept = std::ranges::find(kept_, sweep, &Kept::sweep);
  if (kept != kept_.end()) kept_.splice(kept_.begin(), kept_, kept);
  return kept;
}

void TableCache::forget(const std::string& sweep) {
  std::erase_if(kept_, [&](const Kept& other) {
    if (other.sweep != sweep) return false;
    bytes_ -= other.bytes;
    return true;
  });
}

void TableCache::keep(Kept table) {
  forget(table.sweep);
  if (table.bytes > most_bytes_) {  // then without what it is brought up to date from
    table.rows = nullptr;
    table.bytes = table.table->bytes() + (table.pivoted ? table.pivoted->bytes() : 0);
  }
  if (table.bytes > most_bytes_) return;
  bytes_ += table.bytes;
  kept_.push_front(std::move(table));
  for (; bytes_ > most_bytes_; kept_.pop_back()) bytes_ -= kept_.back().bytes;
}

}  // namespace abl::views
