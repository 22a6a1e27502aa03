// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <vector>

#include "base/error.h"

namespace abl::trainer {
namespace fs = std::filesystem;

void remove_unfinished(const fs::path& folder) {
  std::vector<fs::path> unfinished;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator{folder, unreadable}) {
    const std::string name = entry.path().filename();
    if (std::regex_match(name, std::regex{"checkpoint-[0-9]{1,18}\\.safetensors\\.[0-9]+\\.tmp"}))
      unfinished.push_back(entry.path());
  }
  std::error_code gone;  // somebody else may have removed it
  for (const auto& file : unfinished) fs::remove(file, gone);
}

CheckpointFiles::CheckpointFiles(fs::path folder, int keep_last)
    : folder_{std::move(folder)}, keep_last_{static_cast<std::size_t>(std::max(1, keep_last))} {}

fs::path CheckpointFiles::file_of(std::int64_t step) const {
  return folder_ / fmt::format("checkpoint-{}.safetensors", step);
}

void CheckpointFiles::adopt() {
  remove_unfinished(folder_);
  std::map<std::int64_t, fs::path> found;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator{folder_, unreadable}) {
    const std::string name = entry.path().filename();
    std::smatch step;
    if (std::regex_match(name, step, std::regex{"checkpoint-([0-9]{1,18})\\.safetensors"}))
      found[std::stoll(step[1])] = folder_ / name;
  }
  for (const auto& [step, file] : found) kept_.push_back(file);
}

void CheckpointFiles::add(const fs::path& file) {
  std::erase(kept_, file);  // written once more
  kept_.push_back(file);
  for (; kept_.size() > keep_last_; kept_.pop_front()) {
    std::error_code gone;  // somebody else may have removed it
    fs::remove(kept_.front(), gone);
  }
}

void CheckpointFiles::make_best(const fs::path& file) const {
  const auto best = folder_ / "best.safetensors", next = folder_ / "best.safetensors.next";
  std::error_code failed;
  fs::remove(next, failed);
  fs::create_hard_link(file, next, failed);
  if (failed) fs::copy_file(file, next, failed);  // a file system without links
  if (!failed) fs::rename(next, best, failed);
  if (failed) throw system_error("cannot keep the best checkpoint as " + best.string(), failed.value());
}

}  // namespace abl::trainer
