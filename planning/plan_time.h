// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "planning/trial_time.h"
#include "storage/database.h"
#include "sweeps/sweep_spec.h"

namespace abl::planning {

/// What is known of the slots that the trials of a sweep run in.
struct KnownOfPlace {
  Place place;  ///< as the connected workers say; of a GPU that is assumed where none is connected
  std::vector<storage::Calibration> calibrations;  ///< made there
  std::map<std::string, ImageCounts> images;       ///< of the data that they read
  ModelCounts counts;                              ///< those of the sweep's models, and of what was measured
  std::optional<double> base_bytes;                ///< of the program before it builds a model
};
/// `fresh`: calibrations made just now, of one place, which is the place then. `db` may be null.
KnownOfPlace known_of_place(const sweeps::SweepSpec& spec, storage::Database* db, const ModelCounts& counts,
                            const std::vector<storage::Calibration>& fresh);

/// Says of each row of `plan`, and of what is left of all, how long it takes. `left`: trials of each row that
/// are to run.
/// Returns: seconds of a trial of each row; 0: not known.
std::vector<double> set_times(const sweeps::SweepSpec& spec, storage::Database* db, const KnownOfPlace& known,
                              const std::vector<double>& left, ablate::v1::SweepPlan& plan);

/// What a plan predicts of rows of which no run has completed, by their config_hash: what follows from a
/// stated rate alone is left out, for it is no more than a hint.
std::map<std::string, double> predictions(const ablate::v1::SweepPlan& plan);
/// The same, of a sweep as it is submitted.
std::map<std::string, double> predictions(const sweeps::SweepSpec& spec, storage::Database& db,
                                          const ModelCounts& counts);

/// The trials of a sweep that are worth measuring, as canonical documents: at most `most` of those whose
/// steps differ, evenly among families, precisions and sizes.
std::vector<std::string> to_measure(const sweeps::SweepSpec& spec, std::size_t most);

/// As messages have it. Nothing where its trial cannot be read.
std::optional<storage::Calibration> calibration_of(const ablate::v1::Calibration& message, Time now);

}  // namespace abl::planning
