// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/probe_results.h"
#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

struct StoredPicture {
  std::string name, sha256;
  std::uint32_t width = 0, height = 0;
  std::string png;  ///< empty where nobody asked for it
};

/// What a probe found in the model that a run trained.
struct StoredProbe {
  std::string name;        ///< its key (protocol::probe_key)
  std::uint32_t step = 0;  ///< after which the weights were
  Time time{};
  std::string missing;     ///< why it found nothing, or empty
  std::string found_json;  ///< protocol::to_json
  std::vector<StoredPicture> pictures{};
};

/// Thread: the connection's.
class ProbeStore {
 public:
  explicit ProbeStore(Database& db) : db_{db} {}

  /// Takes the place of what the probe, with these settings, found in this run before; where it found
  /// something, that it finds nothing now changes nothing. Its values become metrics of the run, and the
  /// table of each sweep that has its trial is told. Throws: Error{kInvalidArgument} for a further probe of a
  /// run that has `protocol::kMostProbes`.
  void put(RunId run, const protocol::ProbeResult& found, std::uint32_t step,
           const std::vector<StoredPicture>& pictures, Time now);
  /// What somebody finds in a model is of its run once that has ended.
  /// Throws: Error{kNotFound, kFailedPrecondition}.
  void expect_ended(RunId run) const;
  /// Of a program that goes on from a checkpoint: what it found up to there.
  void copy(RunId from, RunId to, std::uint32_t up_to_step, Time now);
  /// By name. `whole`: with pictures; otherwise these have no bytes.
  std::vector<StoredProbe> of(RunId run, bool whole = false) const;
  std::optional<StoredProbe> find(RunId run, const std::string& name) const;

  /// The probes that the sweeps of a trial ask for, each key once.
  std::vector<protocol::ProbeRequest> wanted(TrialId trial) const;

 private:
  std::vector<StoredPicture> pictures(RunId run, const std::string& probe, bool whole) const;
  Database& db_;
};

/// Why runs of a row's completed trials lack the value of a probe: they were not probed, there was nothing to
/// find, or the probe finds no such value.
std::string why_not_probed(Database& db, SweepId sweep, std::size_t row, const std::string& metric);

/// Of the columns name, sha256, width, height and png.
StoredPicture read_picture(const Statement& row);

/// As `sweep.probes` has them: a list of {"name", settings…}; empty for none.
std::string probes_json(const std::vector<protocol::ProbeRequest>& probes);
std::vector<protocol::ProbeRequest> probes_of(const std::string& json);

}  // namespace abl::storage
