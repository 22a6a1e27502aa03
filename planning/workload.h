// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "config/trial_config.h"
#include "storage/measured_store.h"

namespace abl::planning {

/// Canonical model document -> count (protocol/counts.h) -> value.
using ModelCounts = std::map<std::string, std::map<std::string, double>>;
/// Data name -> images to train on and to evaluate on, of which somebody has said how many there are.
struct ImageCounts {
  std::int64_t train = 0, val = 0;
};

/// What one training has to do.
struct Workload {
  config::TrialConfig trial;
  std::string step_hash;  ///< of what makes a step what it is: neither how many there are, nor the seed
  std::string family;
  double step_images = 0;  ///< of all GPUs together
  double steps = 0;
  double evaluations = 0;  ///< of a model: with a running average there are two
  double evaluated = 0;    ///< images, of all evaluations
  double image_macs = 0;   ///< multiply-adds of the forward pass of an image
  double step_macs =
      0;  ///< of an image of a step: forward, backward, teacher, blocks that are computed twice

  double macs() const { return steps * step_images * step_macs + evaluated * image_macs; }
};

/// Reads a trial's canonical document, with or without its seed; nothing where it is none.
std::optional<config::TrialConfig> trial_of(const std::string& config);

/// The same for trials whose steps do the same: their lengths, seeds and real numbers differ.
std::string step_hash(const config::TrialConfig& trial);

/// How many images a trial trains and evaluates on; 0: not known. `images`: what somebody has said.
ImageCounts image_counts(const config::TrialConfig& trial, const std::map<std::string, ImageCounts>& images);

/// How many of so many training images are described for nearest neighbours to be looked for among them.
std::int64_t bank_images(const config::TaskConfig& task, std::int64_t train);

/// `missing`: why there is none: its counts, or how many images its data have, are not known. `teacher`: the
/// canonical model that it learns from, where that is another row's.
std::optional<Workload> workload_of(const config::TrialConfig& trial, const ModelCounts& counts,
                                    const std::map<std::string, ImageCounts>& images, std::string& missing,
                                    const std::string& teacher = {});

}  // namespace abl::planning
