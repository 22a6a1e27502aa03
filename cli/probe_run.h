// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ablate/v1/runs.pb.h"
#include "base/named_path.h"
#include "cli/source.h"
#include "protocol/probes.h"

namespace abl::cli {

/// Which of a run's weights are looked at, how, and what is written.
struct ProbeOptions {
  std::vector<protocol::ProbeRequest> probes;
  bool last = false;                ///< the weights of the last step, not of the best evaluation
  bool average = false;             ///< of these the running average
  std::vector<std::string> images;  ///< to look at in place of the evaluation's
  std::string data_root;            ///< empty: where the run's worker had it
  std::string device;               ///< empty: as the run
  NamedPaths plugins;               ///< those that are not where the run's worker had them
  std::string out;                  ///< folder for what was found; empty: none
  bool shows_progress = false;      ///< the trainer's, on stderr, where it also says what is wrong

  /// What is found so is of the run, and not of other weights or images.
  bool is_of_run() const { return !last && !average && images.empty(); }
};

/// Has the trainer look into the model that a run trained, on this machine.
/// Throws: Error{kNotFound} naming machine and folder where its weights are not here, or the flag that names
/// another place for its data or plugin; kDataLoss for weights that are not what the run wrote;
/// kFailedPrecondition for a run of a command; `TrainerFailed`.
std::vector<ablate::v1::ProbeFound> probe_run(Source& source, const ablate::v1::RunDetail& run,
                                              const ProbeOptions& options);

/// The trainer has said why, if `shows_progress`; otherwise `what()` does.
class TrainerFailed : public Error {
 public:
  TrainerFailed(const std::string& what, int exit_code)
      : Error{Code::kAborted, what}, exit_code_{exit_code} {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// What a message says, its pictures with the files that `write_found` wrote.
protocol::ProbeResult result_of(const ablate::v1::ProbeFound& found);
/// Writes PROBE.json and the pictures into a folder, and notes where the pictures are.
void write_found(const std::string& folder, protocol::ProbeResult& result,
                 const ablate::v1::ProbeFound& found);

}  // namespace abl::cli
