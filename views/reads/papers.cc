// SPDX-License-Identifier: Apache-2.0
#include "ablate/v1/pages.pb.h"
#include "storage/sweep_store.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Database;
using storage::Statement;

constexpr int kStoredShown = 10;

/// A table or figure of a paper, as its sweep file has it.
struct PaperTable {
  std::string_view paper, table, title;  // "msf", "table-1", "Projection sharing in the MSF-transformer"
  std::string_view sweep;                // the name that a sweep of the file has; at a scale, NAME-SCALE
  std::uint32_t rows = 0, trained = 0;   // its own rows; those that can be trained here
  std::uint32_t printed = 0;             // values that the paper prints
};
/// All of sweeps/papers/, as it was when this was built.
constexpr PaperTable kPaperTables[] = {
#include "views/paper_tables.inc"
};

/// The names of a table's sweeps, newest first: its own, and those at a scale or of some of its rows, whose
/// names begin with it and a "-".
std::vector<std::string> stored_of(Database& db, const PaperTable& table) {
  const std::string own{table.sweep};
  return db
      .prepared(R"sql(SELECT name FROM (
                        SELECT id, name FROM sweep WHERE name = :own
                        UNION ALL SELECT id, name FROM sweep WHERE name > :from AND name < :to)
                      ORDER BY id DESC LIMIT :most)sql")
      .bind(":own", own)
      .bind(":from", own + "-")
      .bind(":to", own + ".")  // the letter behind "-"
      .bind(":most", kStoredShown)
      .all([](const Statement& row) { return row.text(0); });
}

v1::PapersResponse papers(Database& db) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  v1::PapersResponse message;
  for (const PaperTable& table : kPaperTables) {
    auto& said = *message.add_tables();
    said.set_paper(std::string{table.paper});
    said.set_table(std::string{table.table});
    said.set_title(std::string{table.title});
    said.set_sweep(std::string{table.sweep});
    said.set_rows(table.rows);
    said.set_trained(table.trained);
    said.set_printed(table.printed);
    for (const auto& name : stored_of(db, table)) {
      const auto sweep = storage::SweepStore{db}.get_brief(name);
      if (sweep.tunes.empty()) *said.add_stored() = sweep_summary(sweep, std::nullopt);
    }
  }
  return message;
}

}  // namespace

extern const Read kPapersRead{
    .path = "papers",
    .about = "The built-in tables of papers, each with its stored sweeps (10 at most)",
    .message = v1::PapersResponse::descriptor,
    .quick = true,
    .answer = [](const Query&, const Stored& stored) { return to_json(papers(stored.db)); },
};

}  // namespace abl::views
