// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// The names of a run's checkpoints in its folder, what they say, and the results file that the run is in.
namespace abl::protocol {

inline constexpr std::string_view kCheckpointEnding = ".safetensors";
/// A second name of the checkpoint that is best so far.
inline constexpr std::string_view kBestCheckpoint = "best.safetensors";

/// Which weights of a trial another takes: those of its best evaluation, or of its last step.
enum class Taken { kBest, kLast };
constexpr std::string_view name_of(Taken taken) {
  switch (taken) {
    case Taken::kBest:
      return "best";
    case Taken::kLast:
      return "last";
  }
  return {};
}

/// How a recipe names them: "best-of-" and the SHA-256 of that trial's document.
std::string weights_name(Taken taken, std::string_view config_hash);
/// Whether a name of weights is such a one.
bool names_trial(std::string_view name);

/// "checkpoint-400.safetensors".
std::string checkpoint_name(std::int64_t step);
/// The step of a name that is such a one.
std::optional<std::int64_t> step_of_checkpoint(std::string_view name);

/// Removes checkpoints of a folder that were begun and not finished: of processes that are gone.
void remove_unfinished_checkpoints(const std::filesystem::path& folder);

/// Leaves in a run's folder, as the file `.store`, the id of the results file that the run is in: folders of
/// several may lie beneath one root.
/// Throws: Error naming the file.
void sign_folder(const std::filesystem::path& folder, const std::string& store);
/// That id; empty where the folder has none.
std::string store_of_folder(const std::filesystem::path& folder);

/// What numbers depend on beside the trial: a resumed run is bit-exact only where all of it is the same.
struct TrainingMachine {
  std::string torch, device, instructions;  ///< "2.13.0", "cpu" or the GPU's name, "AVX512"
  int threads = 0;
  int ranks = 1;
  bool deterministic = true;  ///< the same sums in the same order every time, as on a CPU always
  bool operator==(const TrainingMachine&) const = default;
};

/// What a trainer's checkpoint says beside its tensors. It is read without LibTorch, so that fuzzing and the
/// sanitizers see what reads files of unknown origin.
struct CheckpointFacts {
  std::string config_hash;
  std::int64_t step = 0;             ///< optimiser steps done
  std::int64_t evaluated = 0;        ///< newest step whose evaluation was reported
  double loss_sum = 0, correct = 0;  ///< of the steps since the newest point of train/loss
  std::int64_t seen = 0;             ///< images of these steps
  /// Of these steps too: sum of the norms of their gradients, how many had a finite one, how many were left
  /// out.
  std::array<double, 3> gradients{};
  std::optional<double> best;     ///< value of the evaluation whose checkpoint is kept
  std::optional<double> to_beat;  ///< best value so far of what a recipe with patience waits for
  std::int64_t waited = 0;        ///< evaluations since that one
  TrainingMachine machine;
  std::string data_fingerprint;
  std::map<std::string, std::string> weights;  ///< name -> SHA-256 of those that the recipe names
  /// Its canonical document (config::canonical_teacher_text): what others need to learn from it.
  std::string model;
};

/// The entry of a checkpoint's metadata that holds them.
inline constexpr const char* kFactsKey = "ablate";

/// JSON. Every number is finite.
std::string facts_text(const CheckpointFacts& facts);
/// `file`: for the message. Throws: Error{kDataLoss} for what is no such text, or says what no trainer
/// writes; Error{kFailedPrecondition} for another format.
CheckpointFacts read_checkpoint_facts(const std::string& text, const std::filesystem::path& file);

}  // namespace abl::protocol
