// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "probes/probe.h"
#include "protocol/probes.h"

namespace abl::training {

/// What was found, as it is told and kept. `pictures`: the folder that its pictures are written to,
/// PROBE-NAME.png; empty: none is.
/// Throws: Error of a disk.
protocol::ProbeResult result_of(const protocol::ProbeRequest& request, const probes::Findings& found,
                                const std::filesystem::path& pictures);

/// `PROBE.json` in a folder, which is there.
std::filesystem::path write_found(const protocol::ProbeResult& found, const std::filesystem::path& folder);

}  // namespace abl::training
