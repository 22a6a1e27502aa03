// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/image_source.h"
#include "models/weights/state.h"
#include "probes/probe.h"
#include "protocol/events.h"
#include "protocol/probes.h"
#include "worker/trainer/training/training.h"

namespace abl::commands {

/// What probes look at beside the trial.
struct Probed {
  std::filesystem::path weights;                ///< a checkpoint, or a state of the model
  bool average = false;                         ///< of a checkpoint the running average
  std::vector<std::filesystem::path> images{};  ///< to look at in place of the evaluation's
  std::string data_fingerprint{};               ///< that the data must have; empty: any
};

/// The weights of a trial, and probes that look at them. Data are opened by the first probe that needs them.
class Probing {
 public:
  /// Says how far a probe is, 0 to 1.
  using Progress = std::function<void(const std::string& probe, double part)>;
  /// Throws: Error{kInvalidArgument} for weights of another model, or numbers that are not finite.
  Probing(const training::TrainingOptions& options, Probed probed, const std::atomic<bool>& stop,
          Progress progress);

  /// `pictures`: the folder they are written to, PROBE-NAME.png; empty: none is.
  /// Throws: what the probe throws; Error{kCancelled} after a stop; Error{kFailedPrecondition} where a value
  /// is no finite number; kDataLoss where the data has another fingerprint than it must have.
  protocol::ProbeResult run(const protocol::ProbeRequest& request, const std::filesystem::path& pictures);

  /// The same, but that the model has nothing for the probe to look at, or does not take what it is asked,
  /// is what it found.
  protocol::ProbeResult run_or_say(const protocol::ProbeRequest& request,
                                   const std::filesystem::path& pictures);

 private:
  std::shared_ptr<models::Classifier> at_size(std::int64_t image_size) const;
  const data::ImageSource& evaluated();
  probes::Shown shown(std::int64_t count);
  probes::Accuracy accuracy(models::Classifier& model, std::int64_t image_size);
  void progress(const std::string& probe, double part) const;

  const training::TrainingOptions options_;
  const Probed probed_;
  const models::State weights_;
  const std::atomic<bool>& stop_;
  const Progress progress_;
  const std::shared_ptr<models::Classifier> model_;
  std::shared_ptr<const data::ImageSource> evaluated_;
};

/// Lets probes look into the model of a run that is trained: at the weights of its best evaluation where they
/// were kept, otherwise of its last step. What they find is written to the folder `probes` of the run's, and
/// said. What a probe cannot do is no failure of the run: where the model has nothing for it, that is what it
/// found. Returns: false after a stop.
bool probe_trained(const training::TrainingOptions& options,
                   const std::vector<protocol::ProbeRequest>& requests, protocol::Events& events,
                   const std::atomic<bool>& stop);

/// The newest checkpoint of a run's folder, or else the best that it kept.
/// Throws: Error{kNotFound} where there is none.
std::filesystem::path checkpoint_in(const std::filesystem::path& folder);

}  // namespace abl::commands
