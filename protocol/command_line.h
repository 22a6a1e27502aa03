// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/named_path.h"

/// Command lines of ablate-trainer, for the programs that start it: what they write is what it declares.
/// Texts that are empty, numbers that are 0 and flags that are false are left out.
namespace abl::protocol {

/// The commands and flags that other programs give, by the names that the trainer declares them with.
namespace flag {
inline constexpr const char* kAddress = "--address";
inline constexpr const char* kAverage = "--average";
inline constexpr const char* kBound = "--bound";
inline constexpr const char* kConfig = "--config";
inline constexpr const char* kDataFingerprint = "--data-fingerprint";
inline constexpr const char* kDataRoot = "--data-root";
inline constexpr const char* kDeterministic = "--deterministic";
inline constexpr const char* kDevice = "--device";
inline constexpr const char* kFirstRank = "--first-rank";
inline constexpr const char* kFrom = "--from";
inline constexpr const char* kImage = "--image";
inline constexpr const char* kJoin = "--join";
inline constexpr const char* kJson = "--json";
inline constexpr const char* kList = "--list";
inline constexpr const char* kLocalRanks = "--local-ranks";
inline constexpr const char* kName = "--name";
inline constexpr const char* kNode = "--node";
inline constexpr const char* kNodes = "--nodes";
inline constexpr const char* kOpen = "--open";
inline constexpr const char* kOut = "--out";
inline constexpr const char* kOutput = "--output";
inline constexpr const char* kPlugin = kPluginFlag.flag;
inline constexpr const char* kProbe = "--probe";
inline constexpr const char* kPoints = "--points";
inline constexpr const char* kRanks = "--ranks";
inline constexpr const char* kRaw = "--raw";
inline constexpr const char* kRestartIfLost = "--restart-if-lost";
inline constexpr const char* kResume = "--resume";
inline constexpr const char* kResumeSha256 = "--resume-sha256";
inline constexpr const char* kRoot = "--root";
inline constexpr const char* kRunDir = "--run-dir";
inline constexpr const char* kStdin = "--stdin";
inline constexpr const char* kThreads = "--threads";
inline constexpr const char* kTo = "--to";
inline constexpr const char* kTryGpus = "--try-gpus";
inline constexpr const char* kVerbatim = "--verbatim";
inline constexpr const char* kVersion = "--version";
inline constexpr const char* kWeights = kWeightsFlag.flag;
inline constexpr const char* kWith = "--with";
}  // namespace flag

/// The environment's variable with the key of a run over several machines: a text that its ranks share and
/// nobody else knows.
inline constexpr const char* kRanksKey = "ABLATE_RANKS_KEY";

using Arguments = std::vector<std::string>;

/// Trains a trial, or goes on with it.
struct TrainCommand {
  std::string config, run_dir;
  std::string resume, resume_sha256;  ///< a checkpoint and its digest
  bool restart_if_lost = false;       ///< from the start where the checkpoint cannot be used
  std::string data_root;
  NamedPaths weights;  ///< and plugins, by `plugin_key`
  int threads = 0;
  std::string device;
  int ranks = 0;                      ///< of all machines; 1 needs no flag
  std::vector<std::string> probes{};  ///< that look into the model when it is trained, as JSON
  /// Of a run over several machines: what of it this one does.
  struct Node {
    int node = 0, nodes = 1;
    int first_rank = 0, local_ranks = 0;
    std::string address;  ///< at which the other machines reach it
    std::string join;     ///< HOST:PORT, where its ranks find the others; of the first one empty
  } node{};
  Arguments arguments() const;
};

/// Trains from one checkpoint of a run to another again, and compares.
struct VerifyCommand {
  std::string config, to;
  std::string points;  ///< file with the metrics that the run reported
  std::string from;    ///< empty: the start
  int threads = 0;
  std::string device;
  bool deterministic = false;
  std::string data_root;
  NamedPaths weights;
  bool json = false;
  Arguments arguments() const;
};

/// Looks into a trained model.
struct ProbeCommand {
  std::string config, checkpoint;
  NamedPaths files;                   ///< plugins, by `plugin_key`
  std::vector<std::string> probes;    ///< by name, or as JSON with its settings
  std::vector<std::string> settings;  ///< "attention.images=8"
  std::vector<std::string> images;    ///< files to look at in place of the evaluation's
  std::string out;                    ///< folder for what was found
  int threads = 0;
  std::string device;
  std::string data_root, data_fingerprint;  ///< `data_fingerprint`: of the data that the run saw
  bool average = false, list = false;
  bool json = false;
  Arguments arguments() const;
};

/// Looks at a data set.
struct DataCommand {
  std::string what;  ///< "check", "pack" or "format"
  std::string root, name, output, bound, threads;
  bool raw = false, verbatim = false;
  bool open = false;  ///< of format: opens it whole
  bool json = false;
  Arguments arguments() const;
};

/// Loads a plugin and says what it is.
struct PluginCommand {
  std::string file, name;
  bool json = false;
  Arguments arguments() const;
};

/// Counts models: a canonical document a line on stdin, a JSON object a line as answer. `plugins`: by name,
/// of models that are made with them.
Arguments describe_arguments(const NamedPaths& plugins = {});

/// Tells which trainer it is: its version and, as JSON, its result version.
struct VersionCommand {
  bool json = false;
  int try_gpus = 0;  ///< also whether so many GPUs can be used
  Arguments arguments() const;
};

/// A command line: the program, then its arguments.
std::vector<std::string> with_program(const std::filesystem::path& program, Arguments arguments);

}  // namespace abl::protocol
