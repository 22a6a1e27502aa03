// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// One point of a row's tuning, in one rung.
struct NewTuningPoint {
  std::string row, tuning_row;  ///< ids in the sweep, and in that of the tuning trials
  int point = 0, rung = 0;
  std::string values_json, rung_value;
  std::string tried;  ///< configuration of its trials, without a seed
  int tried_version = 0;
  std::string config, config_hash, work_hash;  ///< the row's where this point is the best, without a seed
  int result_version = 0;
};

/// What was chosen for a row. It is kept whatever becomes of the trials that it follows from.
struct TuningChoice {
  std::string row;
  std::optional<int> point;  ///< none: no point has a value, and the row is not trained
  std::map<std::string, std::string> values;
  std::optional<double> value;                               ///< mean over the tuning's seeds
  std::vector<std::pair<int, std::optional<double>>> means;  ///< of each point of the last rung
  int completed = 0;  ///< points with a value of every seed, of every rung
  int budget = 0;     ///< points that there were
  std::string why;
};

/// A point as far as it is known.
struct TunedPoint {
  int point = 0, rung = 0;
  std::string tuning_row;
  std::map<std::string, std::string> values;  ///< dotted key -> value
  std::string rung_value;                     ///< epochs of its rung, or empty
  std::vector<std::optional<double>>
      values_by_seed;   ///< in the order of the tuning's seeds; none: no value that counts
  TrialCounts trials;   ///< none: its rung has not begun, or it is not in it
  std::string trouble;  ///< "seed 100 failed", or empty
  bool best = false;    ///< it was chosen
};
struct RowTuning {
  int position = 0;  ///< of the row
  std::string row, label;
  std::vector<TunedPoint> points;  ///< by rung, then in the order of the design
  std::optional<TuningChoice> choice;
};
struct SweepTuning {
  SweepId by = 0;
  std::string by_name;  ///< the sweep of the tuning trials
  std::string
      tune_json;  ///< sweeps::Tune as it is stored: ranges, method, budget, metric, better, seeds, held_out
  std::vector<RowTuning> rows;
};

/// How the rows of sweeps are tuned. The trials by which they are tuned are those of a sweep of its own, of
/// which everything holds that holds of sweeps; here stands what ties the two together.
/// Thread: the connection's.
class TuningStore {
 public:
  explicit TuningStore(Database& db) : db_{db} {}

  /// `points`: of all rows that are tuned.
  void insert(SweepId sweep, SweepId by, const std::string& tune_json,
              const std::vector<NewTuningPoint>& points);
  /// Puts these in the place of the points that there are; choices of other rows than these are forgotten.
  void replace(SweepId sweep, const std::string& tune_json, const std::vector<NewTuningPoint>& points,
               const std::vector<std::string>& keep_choices);

  std::optional<SweepId> tuning_of(SweepId sweep) const;  ///< the sweep of its tuning trials
  std::optional<SweepId> tuned_by(SweepId by) const;      ///< the sweep whose rows those tune
  /// Sweeps of which this is a tuning trial that they want, and the row that it tunes, where no choice was
  /// made for that.
  std::vector<std::pair<SweepId, std::string>> waiting_for(TrialId trial) const;
  /// Whether a tuning trial of a row waits, runs or is held. Looks at the last points first, which end last:
  /// its cost does not grow with their number.
  bool waits(SweepId sweep, const std::string& row) const;
  /// Rows without a point that was chosen.
  std::vector<std::string> unchosen(SweepId sweep) const;
  std::string tune_json(SweepId sweep) const;

  /// Everything of a sweep's tuning, or of one row's; nothing of a sweep without.
  std::optional<SweepTuning> read(SweepId sweep, const std::string& row = {}) const;
  /// Of all its rows, or of one.
  std::vector<TuningChoice> choices(SweepId sweep, const std::string& row = {}) const;

  /// The document of a trial, of a configuration without a seed.
  using WithSeed =
      std::function<RenewedTrial(const std::string& config, int result_version, std::int64_t seed)>;
  /// Claims the trials of a point in a rung after the first.
  void begin(SweepId sweep, const std::string& row, int point, int rung, Time now, const WithSeed& with_seed);
  /// Stores a choice. Where it has a point, the row becomes that, and its first `seeds` seeds are claimed.
  void choose(SweepId sweep, const TuningChoice& choice, std::uint32_t seeds, Time now,
              const WithSeed& with_seed);
  /// What follows from one that was made: the row is what its point says, and has its first `seeds` seeds.
  void apply(SweepId sweep, const TuningChoice& choice, std::uint32_t seeds, Time now,
             const WithSeed& with_seed);
  /// Forgets that nothing could be chosen for a row; empty: for any.
  void reopen(SweepId sweep, const std::string& row);
  std::vector<std::string> tuning_rows(SweepId sweep, const std::string& row) const;
  /// Who watches the sweep hears that its tuning goes on.
  void touch(SweepId sweep);

 private:
  void recount(SweepId sweep);  // how many rows are open

  Database& db_;
};

}  // namespace abl::storage
