// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace abl::agent {
namespace fs = std::filesystem;
using ablate::v1::Assign;
using ablate::v1::Checkpoint;
namespace {

/// The path comes from the network: only files of earlier runs are read.
bool lies_under(const fs::path& file, const fs::path& root) {
  std::error_code failed;
  const fs::path real_file = fs::canonical(file, failed),
                 real_root = failed ? fs::path{} : fs::canonical(root, failed);
  if (failed) return false;
  return std::mismatch(real_root.begin(), real_root.end(), real_file.begin(), real_file.end()).first ==
         real_root.end();
}

/// Why the checkpoint cannot be used here, or empty.
std::string unusable(const Checkpoint& checkpoint, const RunSettings& settings) {
  const fs::path file = checkpoint.path();
  std::error_code failed;
  if (!fs::is_regular_file(file, failed))
    return checkpoint.host() == settings.host ? "is gone" : fmt::format("is on {}", checkpoint.host());
  if (!lies_under(file, settings.runs_root))
    return fmt::format("lies outside of {}", settings.runs_root.string());
  try {
    if (!checkpoint.sha256().empty() && sha256_file(file) != checkpoint.sha256())
      return checkpoint.host() == settings.host ? "is damaged: its SHA-256 is another"
                                                : fmt::format("is on {}", checkpoint.host());
  } catch (const Error& error) {
    if (error.code() == Code::kResourceExhausted) throw;  // the worker's own trouble: the checkpoint is good
    return fmt::format("cannot be read: {}", error.what());
  }
  return {};
}

}  // namespace

Resume choose_checkpoint(const Assign& assign, const RunSettings& settings) {
  Resume resume;
  for (const Checkpoint& checkpoint : assign.checkpoints()) {
    const std::string why_not = unusable(checkpoint, settings);
    if (why_not.empty()) {
      resume.checkpoint = checkpoint;
      resume.notes.push_back(fmt::format("resumes from step {}: {}", checkpoint.step(), checkpoint.path()));
      return resume;
    }
    resume.notes.push_back(
        fmt::format("the checkpoint of step {} {}: {}", checkpoint.step(), why_not, checkpoint.path()));
  }
  if (assign.checkpoints_size() > 0)
    resume.notes.push_back("no checkpoint can be used here: starts again from the beginning");
  return resume;
}

fs::path create_run_directory(const fs::path& root, const Assign& assign) {
  const fs::path trial = root / std::to_string(assign.trial());
  make_folder(trial);
  std::error_code failed;
  for (int copy = 1;; ++copy) {
    const fs::path folder = trial / (copy == 1 ? fmt::format("{}", assign.attempt())
                                               : fmt::format("{}.{}", assign.attempt(), copy));
    const bool created = fs::create_directory(folder, failed);
    if (failed) throw system_error("cannot create " + folder.string(), failed.value());
    if (created) return folder;
  }
}

Launch plan_launch(const Assign& assign, const std::vector<Slot>& slots, const RunSettings& settings,
                   const fs::path& directory, const Resume& resume) {
  const std::string config = directory / "config.json";
  const auto data = settings.data.find(assign.data());
  const std::string data_root = data == settings.data.end() ? "" : data->second.string();
  const std::string checkpoint = resume.checkpoint ? resume.checkpoint->path() : "";
  const std::string digest = resume.checkpoint ? resume.checkpoint->sha256() : "";
  int threads = 0;
  std::vector<std::string> gpus;
  for (const Slot& slot : slots) {
    threads += slot.threads;
    if (!slot.visible.empty()) gpus.push_back(slot.visible);
  }
  // of those that the run may see; a command makes what it likes of several
  const std::string device = gpus.empty() ? "cpu" : "cuda:0";

  Launch launch{.argv = {assign.argv().begin(), assign.argv().end()},
                .environment = {{"ABLATE_CONFIG", config},
                                {"ABLATE_RUN_DIR", directory},
                                {"ABLATE_SEED", std::to_string(assign.seed())},
                                {"ABLATE_RESUME", checkpoint},
                                {"ABLATE_RESUME_SHA256", digest},
                                {"ABLATE_DATA", data_root},
                                {"ABLATE_THREADS", std::to_string(threads)},
                                {"ABLATE_DEVICE", device}}};
  // Threads of the products wait for each other by spinning. GNU's OpenMP spins for milliseconds, which takes
  // the cores of everybody else: on a busy machine a training of two threads is twenty times as fast with
  // this.
  if (!std::getenv("GOMP_SPINCOUNT") && !std::getenv("OMP_WAIT_POLICY"))
    launch.environment["GOMP_SPINCOUNT"] = "1000";
  if (!gpus.empty()) launch.environment["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(gpus, ","));
  if (!launch.argv.empty()) return launch;

  launch.argv = {settings.trainer, "train", "--config", config, "--run-dir", directory};
  const auto add = [&](const std::string& flag, const std::string& value) {
    if (!value.empty()) launch.argv.insert(launch.argv.end(), {flag, value});
  };
  add("--resume", checkpoint);
  add("--resume-sha256", digest);
  if (!checkpoint.empty())
    launch.argv.emplace_back("--restart-if-lost");  // the work is lost, the trial is not
  add("--data-root", data_root);
  for (const auto& [name, file] : settings.weights)
    if (std::ranges::find(assign.weights(), name) != assign.weights().end())
      add("--weights", fmt::format("{}={}", name, file.string()));
  add("--threads", std::to_string(threads));
  add("--device", gpus.size() > 1 ? "cuda" : device);
  if (gpus.size() > 1) add("--ranks", std::to_string(gpus.size()));
  return launch;
}

}  // namespace abl::agent
