// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "sweeps/sweep_spec.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {

void read_sweep_file(std::string_view bytes) {
  try {
    const sweeps::SweepSpec spec = sweeps::parse_sweep(std::string{bytes}, "sweep.yaml", "/sweeps");
    const auto trials = sweeps::expand(spec);
    require(!spec.rows.empty() || spec.tune, "a sweep has rows, or a search makes them");
    for (const auto& row : spec.rows) require(!row.id.empty(), "a row has an id");
    if (spec.tune) (void)sweeps::expand(sweeps::tuning_sweep(spec));
  } catch (const sweeps::SweepFileError& error) {
    require(!error.problems().empty(), "a refused file has a problem");
    for (const sweeps::Problem& problem : error.problems()) require_printable(problem.text());
  }
}

}  // namespace abl::fuzz
