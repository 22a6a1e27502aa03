// SPDX-License-Identifier: Apache-2.0
#include "protocol/checkpoint_files.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/new_file.h"

namespace abl::protocol {
namespace {

constexpr std::string_view kBegin = "checkpoint-";
constexpr const char* kStore = ".store";

}  // namespace

std::string weights_name(Taken taken, std::string_view config_hash) {
  return fmt::format("{}-of-{}", name_of(taken), config_hash);
}

bool names_trial(std::string_view name) {
  constexpr std::size_t kDigest = 64;
  return (name.starts_with("best-of-") || name.starts_with("last-of-")) &&
         name.size() == std::string_view{"best-of-"}.size() + kDigest &&
         name.substr(name.size() - kDigest).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("{}{}{}", kBegin, step, kCheckpointEnding);
}

std::optional<std::int64_t> step_of_checkpoint(std::string_view name) {
  if (!name.starts_with(kBegin) || !name.ends_with(kCheckpointEnding)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kCheckpointEnding.size());
  if (name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  if (name.size() > 1 && name.front() == '0') return std::nullopt;  // two files would be of one step
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

void sign_folder(const std::filesystem::path& folder, const std::string& store) {
  write_file(folder / kStore, store);
}

std::string store_of_folder(const std::filesystem::path& folder) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / kStore, absent))) return {};
  std::string id(256, '\0');  // a program may have made it anything
  std::ifstream file{folder / kStore, std::ios::binary};
  file.read(id.data(), static_cast<std::streamsize>(id.size()));
  id.resize(static_cast<std::size_t>(file.gcount()));
  return id;
}

}  // namespace abl::protocol
