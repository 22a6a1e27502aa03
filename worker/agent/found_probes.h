// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "ablate/v1/runs.pb.h"
#include "protocol/events.h"

namespace abl::agent {

/// What a program says that a probe found, with its file and its pictures, which lie in the run's folder.
/// What is larger than is kept (protocol/probe_results.h) is left out, and a note says so. Throws: Error
/// naming what is wrong with it, or with the disk.
ablate::v1::ProbeFound found_probe(const protocol::Probe& said, const std::filesystem::path& directory);

}  // namespace abl::agent
