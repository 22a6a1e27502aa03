// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/arena.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "storage/table.h"
#include "views/compared.h"
#include "views/views.h"

namespace abl::views {

/// Memory for long tables while they are computed, in pieces so large that they go back to the system when it
/// ends: such a table is half a million small parts, and is packed anew after each change.
class TableArena {
 public:
  TableArena() : arena_{pieces()} {}
  ablate::v1::Table& new_table() {
    return *google::protobuf::Arena::CreateMessage<ablate::v1::Table>(&arena_);
  }

 private:
  static google::protobuf::ArenaOptions pieces() {
    google::protobuf::ArenaOptions options;
    options.start_block_size = options.max_block_size = 1 << 20;
    return options;
  }
  google::protobuf::Arena arena_;
};

/// A whole table, its rows as they travel: a fourth of what the message takes in memory, for those who read
/// it in parts. Thread: any, it does not change.
class PackedTable {
 public:
  /// `memo`: has the statistics of rows that were asked for before; may be null. `noted`: what its notes are
  /// written from (table_notes.h).
  explicit PackedTable(ablate::v1::Table&& table, std::shared_ptr<StatisticsMemo> memo = nullptr,
                       storage::Table noted = {});

  std::uint32_t rows() const { return static_cast<std::uint32_t>(ends_.size()); }
  std::size_t bytes() const;
  const ablate::v1::Table& head() const { return head_; }  ///< all but the rows
  const storage::Table& noted() const { return noted_; }
  ablate::v1::TableRow row(std::size_t index) const;  ///< by its place
  /// Some rows, with what the whole table says of columns and in notes.
  ablate::v1::Table part(const Page& rows) const;

 private:
  void add_statistics_to(ablate::v1::Table& part) const;

  ablate::v1::Table head_;  // without rows
  std::string bytes_;
  std::vector<std::size_t> ends_;  // of each row in `bytes_`
  std::optional<std::uint32_t> baseline_;
  std::unordered_map<std::string, std::uint32_t> compared_with_;  // rows that others are compared with
  std::shared_ptr<StatisticsMemo> memo_;
  storage::Table noted_;
};

}  // namespace abl::views
