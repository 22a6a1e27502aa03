// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "storage/database.h"
#include "storage/sweep_store.h"
#include "storage/types.h"

/// Results that were not trained here: rows of a table whose trials are completed by runs that another tool
/// made. They are marked (`trial.reason`, `run.environment_json`, `run.worker`), and nothing runs them again.
namespace abl::storage {

/// A run of them.
struct ImportedRun {
  std::int64_t seed = 0;
  std::string settings_json = "{}";  ///< what it was configured with
  std::string content;               ///< a digest of its points
};
struct ImportedRow {
  std::string id, label{}, set_json = "{}";
  std::string group{}, baseline{};
  std::map<std::string, std::string> paper{};  ///< column -> as printed
  std::map<std::string, double> counts{};      ///< mode -> of its architecture
  std::vector<ImportedRun> runs{};
};
struct ImportedSweep {
  std::string name, origin;                                    ///< `origin`: file or folder, for people
  std::string baseline{}, paper_heading{}, table_json = "{}";  ///< of a new sweep: as `canonical` has it
  std::vector<Column> columns{};                               ///< the same
  std::vector<ImportedRow> rows{};
};

/// What a sweep has of a row already.
struct StoredRow {
  bool is_trained = false;                         ///< a trial of it was submitted
  std::map<std::int64_t, std::string> contents{};  ///< of imported ones: seed -> digest
};
/// By id; nothing where there is no such sweep.
std::optional<std::map<std::string, StoredRow>> stored_rows(Database& db, const std::string& sweep);

/// Puts rows into sweeps, new ones where there are none of their names. Nothing is there before `finish`,
/// which commits; the destructor takes all back. Thread: the connection's.
class ResultsImport {
 public:
  ResultsImport(Database& db, std::string host, Time now);
  /// Rows that the sweep has stay as they are, with more seeds. Throws: Error{kFailedPrecondition} for a
  /// sweep that is paused or cancelled, is tuned, gets seeds by a rule or has rows of other files; of a row
  /// that is trained.
  void add(const ImportedSweep& sweep);
  /// The run of a row's seed, which has no points yet. Throws: std::out_of_range for one that was not added.
  RunId run(const std::string& sweep, const std::string& row, std::int64_t seed) const {
    return runs_.at({sweep, row, seed}).id;
  }
  void append(RunId run, const std::vector<Series>& series);
  void finish();

 private:
  struct Run {
    RunId id = 0;
    std::string reason;  ///< of its trial
  };
  SweepId add_sweep(const ImportedSweep& sweep);
  void extend(const SweepRecord& sweep, const ImportedSweep& by,
              const std::map<std::string, StoredRow>& known);

  Database& db_;
  const std::string host_;
  const Time now_;
  Transaction transaction_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, Run> runs_;
};

/// Puts rows behind those that a sweep has, and trials in rows: `NewTrial::row` is a position among all.
/// (sweep_insertion.cc)
void add_rows(Database& db, SweepId sweep, const std::vector<NewRow>& rows,
              const std::vector<NewTrial>& trials);

}  // namespace abl::storage
