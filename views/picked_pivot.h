// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ablate/v1/tables.pb.h"
#include "storage/database.h"
#include "views/packed_table.h"

namespace abl::views {

/// What a reader can pivot the table of a sweep by. Throws: Error{kNotFound}.
ablate::v1::TableFactors table_factors(storage::Database& db, const std::string& sweep);

/// The factors of a text such as "groups,layout". Throws: Error{kInvalidArgument} for a name that is empty or
/// there twice.
std::vector<std::string> factors_named(const std::string& text);

/// A table in its long form, pivoted by factors that a reader picked, by name or dotted key, whatever its
/// file says: their levels lie along the columns, all else down the rows. Only the layout is the reader's:
/// each cell is compared as it was. Throws: Error{kInvalidArgument} for factors that the rows do not differ
/// in, with the nearest name, and for too many levels.
/// `table`: is of no use afterwards; it and `message`, which is empty, may be an arena's.
void pivoted_by(storage::Database& db, ablate::v1::Table& table, const std::vector<std::string>& factors,
                StatisticsMemo* memo, ablate::v1::Table& message);
inline ablate::v1::Table pivoted_by(storage::Database& db, ablate::v1::Table table,
                                    const std::vector<std::string>& factors) {
  ablate::v1::Table message;
  pivoted_by(db, table, factors, nullptr, message);
  return message;
}

/// The last few tables that were pivoted so, for those who read them in parts. Thread: any.
class PickedPivots {
 public:
  /// Of a table that is whole in memory while it is pivoted.
  static constexpr std::uint32_t kMostRows = 10'000;

  /// `flat`: the long form. Throws: as pivoted_by; Error{kOutOfRange} for a table of more rows.
  std::shared_ptr<const PackedTable> table(storage::Database& db,
                                           const std::shared_ptr<const PackedTable>& flat,
                                           const std::vector<std::string>& factors,
                                           const std::shared_ptr<StatisticsMemo>& memo);

 private:
  struct Kept {
    std::weak_ptr<const PackedTable> of;
    std::vector<std::string> factors;
    std::shared_ptr<const PackedTable> table;
  };
  std::shared_ptr<const PackedTable> find(const std::shared_ptr<const PackedTable>& flat,
                                          const std::vector<std::string>& factors);

  std::mutex mutex_;
  std::list<Kept> kept_;  // the newest first
};

}  // namespace abl::views
