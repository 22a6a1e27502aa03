// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/table_rows.h"

#include <algorithm>

#include "tests/fuzz/target.h"

namespace abl::fuzz {
namespace {

std::string rows_of(std::string_view bytes, std::size_t piece) {
  metrics::TableRows table;
  std::string text;
  const metrics::TableRows::Taker taker{
      .row =
          [&](const metrics::TableRows::Cells& cells) {
            for (const auto& [column, cell] : cells) {
              require(std::ranges::find(table.columns(), column) != table.columns().end(),
                      "a cell has a column");
              text += column + "=" + cell + "\n";
            }
          },
      .refuse =
          [&](std::string_view, const std::string& problem) {
            require_printable(problem);
            text += problem + "\n";
          }};
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    table.read(bytes.substr(0, piece), taker);
  table.close(taker);
  return text;
}

}  // namespace

/// How a file grows must not matter.
void read_table_rows(std::string_view bytes) {
  require(rows_of(bytes, bytes.size() + 1) == rows_of(bytes, 7), "pieces say what the whole says");
}

}  // namespace abl::fuzz
