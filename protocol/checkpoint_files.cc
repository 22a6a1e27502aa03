// SPDX-License-Identifier: Apache-2.0
#include "protocol/checkpoint_files.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>
#include <vector>

#include "base/new_file.h"

namespace abl::protocol {
namespace {

constexpr std::string_view kBegin = "checkpoint-";

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("{}{}{}", kBegin, step, kCheckpointEnding);
}

std::optional<std::int64_t> step_of_checkpoint(std::string_view name) {
  if (!name.starts_with(kBegin) || !name.ends_with(kCheckpointEnding)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kCheckpointEnding.size());
  if (name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::int64_t step = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (failed != std::errc{}) return std::nullopt;  // none, or too many digits
  return step;
}

void remove_unfinished_checkpoints(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> unfinished;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator{folder, unreadable}) {
    const std::string name = entry.path().filename();
    const auto finished = finished_name(name);
    if (finished && (*finished == kBestCheckpoint || step_of_checkpoint(*finished)))
      unfinished.push_back(entry.path());
  }
  std::error_code gone;  // somebody else may have removed it
  for (const auto& file : unfinished) std::filesystem::remove(file, gone);
}

}  // namespace abl::protocol
