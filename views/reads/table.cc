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
    .parameters = {"first", "count"},
    .answer =
        [](const Query& query, const Stored& stored) {
          const Page rows = query.page_of_rows();
          return to_json(stored.tables.table(stored.db, query.name)->part(rows));
        },
};

}  // namespace abl::views
