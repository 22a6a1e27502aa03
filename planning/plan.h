// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "base/named_path.h"
#include "storage/database.h"
#include "storage/measured_store.h"
#include "sweeps/sweep_spec.h"

namespace abl::planning {

/// Counts of architectures, from `ablate-trainer describe --stdin`: one process for all that are not cached.
class ModelCounter {
 public:
  /// `trainer`: a program's flag, or empty (protocol::find_trainer). `plugins`: where those lie that models
  /// name.
  explicit ModelCounter(const std::filesystem::path& trainer = {}, NamedPaths plugins = {});

  struct Result {
    std::map<std::string, std::map<std::string, double>>
        counts;           ///< canonical model document -> mode -> count
    std::string missing;  ///< why some are absent, or empty
  };
  /// `models`: canonical model documents. Known ones come from `cache` (may be null); new ones are in `fresh`
  /// for the caller to store. Ends the program that counts once `stop` is requested.
  Result count(const std::vector<std::string>& models, storage::Database* cache,
               std::map<std::string, std::map<std::string, double>>* fresh = nullptr,
               const std::stop_token& stop = {}) const;

 private:
  std::filesystem::path trainer_;
  NamedPaths plugins_;
};

/// What a sweep would run. `db` may be null: nothing is stored yet then. `fresh`: calibrations made just now;
/// stored ones count beside them.
ablate::v1::SweepPlan plan(const sweeps::SweepSpec& spec, storage::Database* db,
                           const ModelCounter::Result& counts,
                           const std::vector<storage::Calibration>& fresh = {});

/// Why no connected worker has the labels that a sweep asks for; empty: one has, or none is connected.
std::string missing_labels(const sweeps::SweepSpec& spec, storage::Database& db);

}  // namespace abl::planning
