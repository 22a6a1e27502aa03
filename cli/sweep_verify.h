// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/named_path.h"
#include "cli/context.h"
#include "cli/source.h"
#include "protocol/command_line.h"

namespace abl::cli {

/// Where data and weights of runs are, where they are not as their workers had them.
struct RunFiles {
  std::string data_root;
  std::vector<std::string> weights;  ///< NAME=FILE
};

/// Lets the trainer compute as a run did: threads and device that it said, data and weights that its worker
/// had, or those that `files` names. Throws: Error with the flag that names another place where one is gone.
void compute_as(const ablate::v1::RunDetail& run, const RunFiles& files, protocol::VerifyCommand& command);

/// The same without weights that its recipe names, for what does not train.
void compute_on_data_as(const ablate::v1::RunDetail& run, const std::string& data_root,
                        protocol::VerifyCommand& command);
/// The plugin that it had, where its worker kept where that is; empty: it had none.
NamedPaths plugins_of(const ablate::v1::RunDetail& run);

/// A file in memory that the program which takes our place can read too. Returns: its path.
std::string file_in_memory(const char* name, const std::string& text);

/// Some completed trials of a sweep, chosen by a seed: the same ones each time.
struct Sample {
  std::string sweep;
  std::uint32_t trials = 3;
  std::uint64_t seed = 0;
  RunFiles files;
};

/// Trains a sample of a sweep's trials again, on this machine, and prints of each whether it is the same: to
/// the bit (every point of every metric that is not of the machine, and the newest checkpoint), in the digits
/// of the table, or different; and what differs where it need not be the same (threads, device, releases).
/// Returns: the exit code: 1 where one that was to be the same to the bit is not.
/// Throws: Error{kNotFound} where nothing can be run again.
int verify_sample(const Context& context, Source& source, const Sample& sample);

}  // namespace abl::cli
