// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "protocol/checkpoint_files.h"

namespace abl::training {

using Machine = protocol::TrainingMachine;
Machine this_machine(const torch::Device& device, int ranks);

/// Everything a training needs to go on as if it had never stopped.
struct Checkpoint : protocol::CheckpointFacts {
  std::map<std::string, torch::Tensor> tensors;  ///< model.NAME, adamw.….NAME, random.cpu, ranks.…
};

/// What ends a run whose checkpoint of a step would be of no use, for `what` is not finite.
Error not_finite(std::int64_t step, const std::string& what);

/// What ends a run whose training loss is not finite. `finite_steps`: of each rank, since step `from`
/// (`Learner::finite_steps`).
Error diverged(std::int64_t from, const torch::Tensor& finite_steps);

/// Writes the file as a whole, synced, with a CRC-32 of each tensor. Returns: its SHA-256.
/// Throws: Error{kAborted} naming step and tensor where a loss or a number of the tensors is not finite: what
/// lies there stays, for nothing can be continued from such a file; Error{kResourceExhausted} when the disk
/// is full.
std::string write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

/// Reads and verifies. `sha256` empty: not compared.
/// Throws: Error{kNotFound, kDataLoss} for a missing or damaged file (every tensor has a CRC-32),
/// Error{kFailedPrecondition} for another trial's: neither its own nor one of those that are its beginnings.
Checkpoint read_checkpoint(const std::filesystem::path& file, const std::string& sha256,
                           const std::string& config_hash, const std::vector<std::string>& beginnings = {});

/// What a checkpoint's steps saw that is another here, a sentence's beginning for each: "the images
/// differ (…; before: …)". What it does not know is the same.
std::vector<std::string> other_inputs(const Checkpoint& checkpoint, const std::string& data_fingerprint,
                                      const std::map<std::string, std::string>& weights);

/// The weights in a file by the model's names: all of a state, or of a checkpoint those of the model
/// (`average`: of the running average). Throws: Error naming the file; kInvalidArgument where it holds no
/// running average.
std::map<std::string, torch::Tensor> read_weights(const std::filesystem::path& file, bool average = false);

/// A file of weights, and the model that it says they are of.
struct WeightsFile {
  std::map<std::string, torch::Tensor> weights;  ///< as read_weights gives them
  std::string model;                             ///< of a checkpoint, as it says it; empty for other files
};
WeightsFile read_weights_file(const std::filesystem::path& file);

/// What a checkpoint says of itself; nothing for other files.
std::optional<protocol::CheckpointFacts> read_facts(const std::filesystem::path& file);

/// Whether every number of a tensor is finite: neither NaN nor an infinity. On the CPU, contiguous. In the
/// calling thread alone and without memory of its own: it is asked of whole checkpoints beside a training.
bool is_finite(const torch::Tensor& tensor);

}  // namespace abl::training
