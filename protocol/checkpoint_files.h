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
