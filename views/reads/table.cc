// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;

}  // namespace

v1::Table table(storage::Database& db, const std::string& sweep) {
  return to_proto(storage::read_table(db, sweep));
}

extern const Read kTableRead{
    .path = "sweeps/*/table",
    .parameters = {"first", "count", "statistics", "long_form"},
    .answer =
        [](const Query& query, const Stored& stored) {
          Page rows = query.page_of_rows();
          rows.with_statistics = query.number_or("statistics", 0, 1) == 1;
          const bool long_form = query.number_or("long_form", 0, 1) == 1;
          return to_json(stored.tables.table(stored.db, query.name, long_form)->part(rows));
        },
};

}  // namespace abl::views
