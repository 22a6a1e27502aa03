// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// The names of a run's checkpoints in its folder, and the results file that the run is in.
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

}  // namespace abl::protocol
