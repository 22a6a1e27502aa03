// SPDX-License-Identifier: Apache-2.0
#include "protocol/command_line.h"

#include <utility>

namespace abl::protocol {
namespace {

/// Arguments, with flags that say something.
class Line {
 public:
  explicit Line(Arguments begin) : arguments_{std::move(begin)} {}

  Line& add(const char* flag, const std::string& value) {
    if (!value.empty()) arguments_.insert(arguments_.end(), {flag, value});
    return *this;
  }
  Line& add(const char* flag, int value) { return add(flag, value > 0 ? std::to_string(value) : ""); }
  Line& add_if(bool given, const char* flag) {
    if (given) arguments_.emplace_back(flag);
    return *this;
  }
  Line& add_each(const char* flag, const std::vector<std::string>& values) {
    for (const auto& value : values) arguments_.insert(arguments_.end(), {flag, value});
    return *this;
  }
  Line& add_all(const std::vector<std::string>& words) {
    arguments_.insert(arguments_.end(), words.begin(), words.end());
    return *this;
  }
  Line& add(const NamedPaths& weights) {
    for (const auto& [key, file] : weights)
      add(is_plugin(key) ? flag::kPlugin : flag::kWeights,
          std::string{name_of_file(key)} + "=" + file.string());
    return *this;
  }
  Arguments take() { return std::move(arguments_); }

 private:
  Arguments arguments_;
};

}  // namespace

Arguments TrainCommand::arguments() const {
  return Line{{"train"}}
      .add(flag::kConfig, config)
      .add(flag::kRunDir, run_dir)
      .add(flag::kResume, resume)
      .add(flag::kResumeSha256, resume_sha256)
      .add_if(restart_if_lost, flag::kRestartIfLost)
      .add(flag::kDataRoot, data_root)
      .add(weights)
      .add(flag::kThreads, threads)
      .add(flag::kDevice, device)
      .add_each(flag::kProbe, probes)
      .add(flag::kRanks, ranks > 1 ? ranks : 0)
      .add(flag::kNodes, node.nodes > 1 ? node.nodes : 0)
      .add(flag::kNode, node.node)
      .add(flag::kFirstRank, node.first_rank)
      .add(flag::kLocalRanks, node.nodes > 1 ? node.local_ranks : 0)
      .add(flag::kAddress, node.address)
      .add(flag::kJoin, node.join)
      .take();
}

Arguments VerifyCommand::arguments() const {
  return Line{{"verify"}}
      .add(flag::kConfig, config)
      .add(flag::kTo, to)
      .add(flag::kPoints, points)
      .add(flag::kFrom, from)
      .add(flag::kThreads, threads)
      .add(flag::kDevice, device)
      .add_if(deterministic, flag::kDeterministic)
      .add(flag::kDataRoot, data_root)
      .add(weights)
      .add_if(json, flag::kJson)
      .take();
}

Arguments ProbeCommand::arguments() const {
  return Line{{"probe"}}
      .add(flag::kConfig, config)
      .add(flag::kWeights, checkpoint)
      .add(files)
      .add(flag::kThreads, threads)
      .add(flag::kDevice, device)
      .add(flag::kDataRoot, data_root)
      .add(flag::kDataFingerprint, data_fingerprint)
      .add_if(average, flag::kAverage)
      .add_each(flag::kImage, images)
      .add_each(flag::kWith, settings)
      .add(flag::kOut, out)
      .add_if(list, flag::kList)
      .add_if(json, flag::kJson)
      .add_all(probes)
      .take();
}

Arguments DataCommand::arguments() const {
  return Line{{"data", what}}
      .add(flag::kRoot, root)
      .add(flag::kName, name)
      .add(flag::kOutput, output)
      .add(flag::kBound, bound)
      .add(flag::kThreads, threads)
      .add_if(raw, flag::kRaw)
      .add_if(verbatim, flag::kVerbatim)
      .add_if(open, flag::kOpen)
      .add_if(json, flag::kJson)
      .take();
}

Arguments PluginCommand::arguments() const {
  return Line{{"plugin"}}.add(flag::kName, name).add_if(json, flag::kJson).add("--", file).take();
}

Arguments describe_arguments(const NamedPaths& plugins) {
  NamedPaths files;
  for (const auto& [name, file] : plugins) files.emplace(plugin_key(name), file);
  return Line{{"describe", flag::kStdin, flag::kJson}}.add(files).take();
}

Arguments VersionCommand::arguments() const {
  return Line{{flag::kVersion}}.add_if(json, flag::kJson).add(flag::kTryGpus, try_gpus).take();
}

std::vector<std::string> with_program(const std::filesystem::path& program, Arguments arguments) {
  arguments.insert(arguments.begin(), program.string());
  return arguments;
}

}  // namespace abl::protocol
