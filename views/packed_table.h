// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "views/views.h"

namespace abl::views {

/// A whole table, its rows as they travel: a fourth of what the message takes in memory, for those who read
/// it in parts. Thread: any, it does not change.
class PackedTable {
 public:
  explicit PackedTable(ablate::v1::Table table);

  std::uint32_t rows() const { return static_cast<std::uint32_t>(ends_.size()); }
  std::size_t bytes() const;
  /// Some rows, with what the whole table says of columns and in notes.
  ablate::v1::Table part(const Page& rows) const;

 private:
  ablate::v1::TableRow row(std::size_t index) const;

  ablate::v1::Table head_;  // without rows
  std::string bytes_;
  std::vector<std::size_t> ends_;  // of each row in `bytes_`
  std::optional<std::uint32_t> baseline_;
};

}  // namespace abl::views
