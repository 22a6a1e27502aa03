// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/placeholders.h"
#include "base/sha256.h"
#include "protocol/checkpoint_files.h"
#include "protocol/command_line.h"
#include "worker/agent/held_file.h"

namespace abl::agent {
namespace fs = std::filesystem;
using ablate::v1::Assign;
using ablate::v1::Checkpoint;
namespace {

/// Whether a file lies in a folder of the results file that the run of `directory` is in. Machines have
/// folders of the same names, and trials of another results file the same numbers.
bool is_of_same_store(const fs::path& file, const RunSettings& settings, const fs::path& directory) {
  std::error_code failed;
  const fs::path root = fs::canonical(settings.runs_root, failed);
  const fs::path below = fs::canonical(file, failed).lexically_relative(root);
  if (failed || directory.empty() || std::distance(below.begin(), below.end()) < 3) return false;
  const fs::path attempt = root / *below.begin() / *std::next(below.begin());
  const std::string store = protocol::store_of_folder(directory);
  return !store.empty() && protocol::store_of_folder(attempt) == store;
}

/// Why the checkpoint cannot be used here, or empty. `directory`: of the run.
std::string unusable(const Checkpoint& checkpoint, const RunSettings& settings, const fs::path& directory) {
  const fs::path file = checkpoint.path();
  const HeldFile held{file};
  if (!held.is_regular())
    return checkpoint.host() == settings.host ? "is gone" : fmt::format("is on {}", checkpoint.host());
  if (!held.lies_under(settings.runs_root))
    return fmt::format("lies outside of {}", settings.runs_root.string());
  // where nobody said a digest, it may be another one's
  if (checkpoint.sha256().empty() && checkpoint.host() != settings.host &&
      !is_of_same_store(file, settings, directory))
    return fmt::format("is on {}", checkpoint.host());
  try {
    if (!checkpoint.sha256().empty() && sha256_file(held.path()) != checkpoint.sha256())
      return checkpoint.host() == settings.host ? "is damaged: SHA-256 mismatch"
                                                : fmt::format("is on {}", checkpoint.host());
  } catch (const Error& error) {
    if (error.code() == Code::kResourceExhausted) throw;  // the worker's own trouble: the checkpoint is good
    return fmt::format("cannot be read: {}", error.what());
  }
  return {};
}

std::string unusable(const ablate::v1::SourceWeights& source, const RunSettings& settings,
                     const fs::path& directory) {
  Checkpoint checkpoint;
  checkpoint.set_host(source.host());
  checkpoint.set_path(source.path());
  checkpoint.set_sha256(source.sha256());
  return unusable(checkpoint, settings, directory);
}

std::string size_of(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// A command's arguments with their places filled in, and those that it has more where it goes on from a
/// checkpoint. A text is itself, anything else is as JSON writes it; each argument stays one, whatever is in
/// it.
std::vector<std::string> filled_argv(const Assign& assign, const fs::path& directory, const std::string& data,
                                     const std::string& checkpoint) {
  const auto document = nlohmann::json::parse(assign.config_json());
  bool resumes = false;
  const auto value_of = [&](const std::string& name) -> std::string {
    if (name == "seed") return std::to_string(assign.seed());
    if (name == "run_dir") return directory;
    if (name == "data") return data;
    if (name == "checkpoint") return resumes ? checkpoint : "{checkpoint}";
    std::string path = "/" + name;  // "params.optimiser.name"
    std::ranges::replace(path, '.', '/');
    const nlohmann::json::json_pointer pointer{path};
    if (!document.contains(pointer))
      throw Error{Code::kInvalidArgument,
                  fmt::format("argv uses {{{}}}, which is not a param of the trial", name)};
    const auto& value = document[pointer];
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::vector<std::string> argv;
  for (const std::string& argument : assign.argv()) argv.push_back(fill_placeholders(argument, value_of));
  resumes = !checkpoint.empty();
  if (resumes && document.contains("resume_argv"))
    for (const auto& argument : document["resume_argv"])
      argv.push_back(fill_placeholders(argument.get<std::string>(), value_of));
  return argv;
}

/// The same. Throws: Error{kInvalidArgument} also for a document that is no JSON, or a name that JSON
/// pointers do not take.
std::vector<std::string> argv_of(const Assign& assign, const fs::path& directory, const std::string& data,
                                 const std::string& checkpoint) {
  try {
    return filled_argv(assign, directory, data, checkpoint);
  } catch (const nlohmann::json::exception& error) {
    throw Error{Code::kInvalidArgument,
                fmt::format("the trial's argv cannot be filled in from its document: {}", error.what())};
  }
}

}  // namespace

std::string lacks_folder(const Assign& assign) {
  std::error_code failed;
  if (assign.folder().empty() || fs::is_directory(assign.folder(), failed)) return {};
  return fmt::format("missing working folder {} of the command", assign.folder());
}

std::string lacks_sources(const Assign& assign, const RunSettings& settings) {
  for (const auto& source : assign.sources())
    if (const std::string why_not = unusable(source, settings, {});
        !why_not.empty() && source.depot_bytes() == 0)
      return fmt::format("the checkpoint of {}, whose weights it takes, {}: {}{}", source.what(), why_not,
                         source.path(),
                         why_not == "is gone" ? "; 'ablate rerun' of that row trains it again" : "");
  return {};
}

std::string fetch_sources(Assign& assign, const RunSettings& settings, const fs::path& directory,
                          const FetchFile& fetch, std::vector<std::string>& notes) {
  int number = 0;
  for (auto& source : *assign.mutable_sources()) {
    ++number;
    const std::string why_not = unusable(source, settings, directory);
    if (why_not.empty()) continue;
    // below the run's own folder, in which a trainer that begins takes such files for an earlier run's
    make_folder(directory / "sources");
    const fs::path file = directory / "sources" / fmt::format("{}.safetensors", number);
    if (const std::string failed = fetch(source.sha256(), source.depot_bytes(), file); !failed.empty())
      return fmt::format(
          "the checkpoint of {}, whose weights it takes, {}: {}; its copy at the scheduler: {}",
          source.what(), why_not, source.path(), failed);
    notes.push_back(fmt::format("the weights of {} were fetched from the scheduler's depot ({})",
                                source.what(), size_of(source.depot_bytes())));
    source.set_path(file);
  }
  return {};
}

std::string launch_record(const Assign& assign, const RunSettings& settings, const fs::path& pushed_data) {
  auto record = nlohmann::json::object();
  if (!pushed_data.empty()) record["data"] = pushed_data.string();
  if (const auto data = settings.data.find(assign.data());
      data != settings.data.end() && !data->second.empty())
    record["data"] = data->second.string();
  for (const std::string& name : assign.weights())
    if (const auto file = settings.weights.find(name); file != settings.weights.end())
      record["weights"][name] = file->second.string();
  for (const auto& source : assign.sources()) record["weights"][source.name()] = source.path();
  return record.dump();
}

std::string fetched_checkpoint(const fs::path& path) {
  constexpr std::size_t kLongest = 32;  // a path comes from a program
  return "fetched" + path.extension().string().substr(0, kLongest);
}

Resume choose_checkpoint(const Assign& assign, const RunSettings& settings, const fs::path& directory,
                         const FetchFile& fetch) {
  Resume resume;
  for (const Checkpoint& checkpoint : assign.checkpoints()) {
    const std::string why_not = unusable(checkpoint, settings, directory);
    if (why_not.empty()) {
      resume.checkpoint = checkpoint;
      resume.notes.push_back(fmt::format("resumes from step {}: {}", checkpoint.step(), checkpoint.path()));
      return resume;
    }
    resume.notes.push_back(
        fmt::format("the checkpoint of step {} {}: {}", checkpoint.step(), why_not, checkpoint.path()));
    if (!fetch || checkpoint.depot_bytes() == 0) continue;
    const fs::path file = directory / fetched_checkpoint(checkpoint.path());
    const std::string failed = fetch(checkpoint.sha256(), checkpoint.depot_bytes(), file);
    if (failed.empty()) {
      resume.checkpoint = checkpoint;
      resume.checkpoint->set_path(file);
      resume.notes.push_back(fmt::format("resumes from step {}: fetched from the scheduler's depot ({})",
                                         checkpoint.step(), size_of(checkpoint.depot_bytes())));
      return resume;
    }
    resume.notes.push_back(fmt::format("its copy at the scheduler cannot be used: {}", failed));
  }
  if (assign.checkpoints_size() > 0)
    resume.notes.push_back("no usable checkpoint: restarting from the beginning");
  return resume;
}

fs::path create_run_directory(const fs::path& root, const Assign& assign) {
  const fs::path trial = root / std::to_string(assign.trial());
  make_folder(trial);
  std::error_code failed;
  const std::string name = assign.gang().node() > 0
                               ? fmt::format("{}.node{}", assign.attempt(), assign.gang().node())
                               : fmt::format("{}", assign.attempt());
  for (int copy = 1;; ++copy) {
    const fs::path folder = trial / (copy == 1 ? name : fmt::format("{}.{}", name, copy));
    const bool created = fs::create_directory(folder, failed);
    if (failed) throw system_error("cannot create " + folder.string(), failed.value());
    if (created) return folder;
  }
}

Launch plan_launch(const Assign& assign, const std::vector<Slot>& slots, const RunSettings& settings,
                   const fs::path& directory, const Resume& resume) {
  const std::string config = directory / "config.json";
  const auto data = settings.data.find(assign.data());
  const std::string data_root = data == settings.data.end() ? resume.data.string() : data->second.string();
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

  Launch launch{.argv = {},
                .environment = {{"ABLATE_CONFIG", config},
                                {"ABLATE_RUN_DIR", directory},
                                {"ABLATE_SEED", std::to_string(assign.seed())},
                                {"ABLATE_RESUME", checkpoint},
                                {"ABLATE_RESUME_SHA256", digest},
                                {"ABLATE_DATA", data_root},
                                {"ABLATE_THREADS", std::to_string(threads)},
                                {"ABLATE_DEVICE", device}},
                .folder = assign.folder().empty() ? directory : fs::path{assign.folder()}};
  // Threads of the products wait for each other by spinning. GNU's OpenMP spins for milliseconds, which takes
  // the cores of everybody else: on a busy machine a training of two threads is twenty times as fast with
  // this.
  if (!std::getenv("GOMP_SPINCOUNT") && !std::getenv("OMP_WAIT_POLICY"))
    launch.environment["GOMP_SPINCOUNT"] = "1000";
  if (!gpus.empty()) launch.environment["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(gpus, ","));
  if (!assign.argv().empty()) {
    launch.argv = argv_of(assign, directory, data_root, checkpoint);
    return launch;
  }

  protocol::TrainCommand train{.config = config,
                               .run_dir = directory,
                               .resume = checkpoint,
                               .resume_sha256 = digest,
                               .restart_if_lost = !checkpoint.empty(),  // the work is lost, the trial is not
                               .data_root = data_root,
                               .threads = threads,
                               .device = gpus.size() > 1 ? "cuda" : device,
                               .ranks = static_cast<int>(gpus.size())};
  for (const std::string& name : assign.weights())
    if (const auto file = settings.weights.find(name); file != settings.weights.end())
      train.weights.insert(*file);
  for (const auto& source : assign.sources()) train.weights[source.name()] = source.path();
  train.probes.assign(assign.probes().begin(), assign.probes().end());
  if (assign.has_gang()) {
    const auto& gang = assign.gang();
    train.ranks = static_cast<int>(gang.ranks());
    train.device = gpus.empty() ? "cpu" : "cuda";
    train.node = {.node = static_cast<int>(gang.node()),
                  .nodes = static_cast<int>(gang.nodes()),
                  .first_rank = static_cast<int>(gang.first_rank()),
                  .local_ranks = static_cast<int>(slots.size()),
                  .address = settings.address,
                  .join = gang.rendezvous()};
    // the same on all workers of the run, and of this attempt alone
    launch.environment[protocol::kRanksKey] = sha256_hex("ranks of " + assign.token());
  }
  launch.argv = protocol::with_program(settings.trainer, train.arguments());
  return launch;
}

}  // namespace abl::agent
