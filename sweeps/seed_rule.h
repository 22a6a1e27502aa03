// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sweeps/problems.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {

/// Reads `seeds: {min: 2, max: 8, until: "ci(acc) < 0.3"}`. What is wrong becomes a problem.
std::optional<SeedRule> read_seed_rule(YamlReader& reader, const Node& node);

/// What of it does not fit the table, once that is known.
void check_seed_rule(const SeedRule& rule, const Node& node, const SweepSpec& spec, Problems& problems);

}  // namespace abl::sweeps
