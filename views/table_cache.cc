// SPDX-License-Identifier: Apache-2.0
#include "views/table_cache.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace abl::views {

std::shared_ptr<const PackedTable> TableCache::table(storage::Database& db, const std::string& sweep) {
  if (db.in_transaction())
    throw Error{Code::kInternal, "a table is kept as of now, not as of the transaction that is open"};
  std::unique_lock lock{mutex_};
  const std::int64_t asked = watched_.data_version();
  for (;; computed_.wait(lock)) {
    if (auto found = find(sweep, asked)) return found;
    if (!under_way_.contains(sweep)) break;
  }
  under_way_.insert(sweep);
  const std::int64_t version = watched_.data_version();  // before the reading begins: it sees that, or more
  lock.unlock();
  std::shared_ptr<const PackedTable> table;
  std::exception_ptr error;  // of this caller alone, who may have left: the next one tries by itself
  try {
    table = std::make_shared<PackedTable>(views::table(db, sweep));
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  under_way_.erase(sweep);
  if (table) keep({sweep, version, table});
  computed_.notify_all();
  if (error) std::rethrow_exception(error);
  return table;
}

std::shared_ptr<const PackedTable> TableCache::find(const std::string& sweep, std::int64_t version) {
  const auto kept = std::ranges::find(kept_, sweep, &Kept::sweep);
  if (kept == kept_.end() || kept->version < version) return nullptr;
  kept_.splice(kept_.begin(), kept_, kept);
  return kept->table;
}

void TableCache::keep(Kept table) {
  std::erase_if(kept_, [&](const Kept& other) {
    if (other.sweep != table.sweep) return false;
    bytes_ -= other.table->bytes();
    return true;
  });
  if (table.table->bytes() > most_bytes_) return;
  bytes_ += table.table->bytes();
  kept_.push_front(std::move(table));
  for (; bytes_ > most_bytes_; kept_.pop_back()) bytes_ -= kept_.back().table->bytes();
}

}  // namespace abl::views
