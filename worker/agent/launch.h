// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "worker/agent/confinement.h"
#include "worker/agent/slots.h"

namespace abl::agent {

/// What all runs of a worker have in common.
struct RunSettings {
  std::filesystem::path runs_root;  ///< artefacts lie in <root>/<trial>/<attempt>/
  std::filesystem::path trainer;    ///< empty: there is none
  std::map<std::string, std::filesystem::path>
      data;  ///< logical name -> folder; empty for data that the trainer draws itself
  std::map<std::string, std::filesystem::path> weights;  ///< logical name -> safetensors file, for recipes
  std::string host;
  std::string address{};               ///< at which ranks on other machines reach those here; empty: none do
  Confinement confinement;             ///< of commands
  Milliseconds grace{5000};            ///< where the assignment says nothing
  Milliseconds afterthought{500};      ///< for the order to stop that a program heard of before its worker
  Milliseconds brief{20};              ///< in so little time no program catches a signal and undoes that
  std::uint64_t log_limit = 64 << 20;  ///< bytes of a run's log: the rest is left out, but for its end
  std::uint64_t spool_limit = 128 << 20;  ///< bytes that a run may have unacknowledged: then it has to wait
};

/// Where an attempt goes on, and what the run's log says about it.
struct Resume {
  std::optional<ablate::v1::Checkpoint> checkpoint;
  std::vector<std::string> notes;
  std::filesystem::path data{};  ///< of a data set that was pushed: where it lies here; empty: by its name
};

/// Fetches a file of this SHA-256 and length from the scheduler's depot. Returns: why it is not there then,
/// or empty. Throws: Error of what says nothing of the copy.
using FetchFile = std::function<std::string(const std::string& sha256, std::uint64_t bytes,
                                            const std::filesystem::path& file)>;
/// What a checkpoint is called that was fetched to be gone on from, in the folder of the run, for as long as
/// that lasts: programs tell by the ending how to read it. `path`: as it was written.
std::string fetched_checkpoint(const std::filesystem::path& path);

/// The newest checkpoint that is whole and lies under `runs_root`: written on this host, or on a root shared
/// with it; or fetched into the run's folder, where the scheduler's depot has it.
Resume choose_checkpoint(const ablate::v1::Assign& assign, const RunSettings& settings,
                         const std::filesystem::path& directory = {}, const FetchFile& fetch = {});

/// Creates <root>/<trial>/<attempt>, of a part of a run <attempt>.node<N>, or <attempt>.2 and so on where an
/// older store has left one: no run writes into another's folder. Throws: Error naming the folder.
std::filesystem::path create_run_directory(const std::filesystem::path& root,
                                           const ablate::v1::Assign& assign);

/// How the program of a run is started: docs/trainer-protocol.md.
struct Launch {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::filesystem::path folder;  ///< where it runs
};
/// Throws: Error{kInvalidArgument} where a command's argv cannot be filled in from the trial's document.
Launch plan_launch(const ablate::v1::Assign& assign, const std::vector<Slot>& slots,
                   const RunSettings& settings, const std::filesystem::path& directory, const Resume& resume);

/// Where the data and weights of a trainer's run lie on this machine, as JSON: kept in the run's folder as
/// launch.json, where `ablate verify` finds it. {"data": "/data/cifar10", "weights": {"name": "/w/file"}}
std::string launch_record(const ablate::v1::Assign& assign, const RunSettings& settings,
                          const std::filesystem::path& pushed_data = {});

/// Why the weights that a run takes from another cannot be used here, or empty: the file is not what that run
/// wrote, or on another machine, or not beneath `runs_root`, and the scheduler's depot does not have it.
std::string lacks_sources(const ablate::v1::Assign& assign, const RunSettings& settings);
/// Fetches those of them that are not here into the run's folder, where they stay, and has the assignment
/// name them. Returns: why one is still lacking, or empty.
std::string fetch_sources(ablate::v1::Assign& assign, const RunSettings& settings,
                          const std::filesystem::path& directory, const FetchFile& fetch,
                          std::vector<std::string>& notes);

/// Why a command cannot run here for want of its folder, or empty.
std::string lacks_folder(const ablate::v1::Assign& assign);

}  // namespace abl::agent
