// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

/// What a trainer's checkpoint says beside its tensors. Without LibTorch, so that what reads files of unknown
/// origin is fuzzed and seen by the sanitizers.
namespace abl::protocol {

/// What numbers depend on beside the trial: a resumed run is bit-exact only where all of it is the same.
struct TrainingMachine {
  std::string torch, device, instructions;  ///< "2.13.0", "cpu" or the GPU's name, "AVX512"
  int threads = 0;
  int ranks = 1;
  bool deterministic = true;  ///< the same sums in the same order every time, as on a CPU always
  bool operator==(const TrainingMachine&) const = default;
};

struct CheckpointFacts {
  std::string config_hash;
  std::int64_t step = 0;             ///< optimiser steps done
  std::int64_t evaluated = 0;        ///< newest step whose evaluation was reported
  double loss_sum = 0, correct = 0;  ///< of the steps since the newest point of train/loss
  std::int64_t seen = 0;             ///< images of these steps
  std::optional<double> best;        ///< value of the evaluation whose checkpoint is kept
  TrainingMachine machine;
  std::string data_fingerprint;
  std::map<std::string, std::string> weights;  ///< name -> SHA-256 of those that the recipe names
  std::string
      model;  ///< its canonical document (config::canonical_model_text): what others need to learn from it
};

/// The entry of a checkpoint's metadata that holds them.
inline constexpr const char* kFactsKey = "ablate";

/// JSON. Every number is finite.
std::string facts_text(const CheckpointFacts& facts);
/// `file`: for the message. Throws: Error{kDataLoss} for what is no such text, or says what no trainer
/// writes; Error{kFailedPrecondition} for another format.
CheckpointFacts read_checkpoint_facts(const std::string& text, const std::filesystem::path& file);

}  // namespace abl::protocol
