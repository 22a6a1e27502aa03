// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {

namespace v1 = ablate::v1;

std::shared_ptr<const PackedTable> table_asked(const Query& query, const Stored& stored) {
  const auto factors = factors_named(query.text(kPivotAsked.name));
  const bool long_form = query.number("long_form") == 1;
  if (long_form && !factors.empty())
    throw Error{Code::kInvalidArgument, "'pivot' and 'long_form' cannot be combined"};
  return factors.empty() ? stored.tables.table(stored.db, query.name, long_form)
                         : stored.tables.pivoted(stored.db, query.name, factors);
}

v1::Table table(storage::Database& db, const std::string& sweep) {
  return to_proto(storage::read_table(db, sweep));
}

extern const Read kTableRead{
    .path = "sweeps/*/table",
    .of = &kSweepOfPath,
    .about =
        "The table: columns, rows, cells with mean, s.d., n, text, comparison and the runs behind them; "
        "agreement with the paper, analyses of variance, notes. The baseline's rows are always included",
    .parameters = {kFirstRow,
                   kRowCount,
                   {.name = "statistics",
                    .about = "1: include the statistics of each cell",
                    .number = Range{.highest = 1, .otherwise = 0}},
                   {.name = "long_form",
                    .about = "1: do not pivot the table, whatever its file says",
                    .number = Range{.highest = 1, .otherwise = 0}},
                   kPivotAsked},
    .message = v1::Table::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          Page rows = query.page_of_rows();
          rows.with_statistics = query.number("statistics") == 1;
          return to_json(table_asked(query, stored)->part(rows));
        },
};

}  // namespace abl::views
