// SPDX-License-Identifier: Apache-2.0
#include "launchers/fleet_file.h"

#include "sweeps/sweep_spec.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {

void read_fleet_file(std::string_view bytes) {
  try {
    const launchers::FleetConfig fleet = launchers::read_fleet_file(std::string{bytes}, "fleet.yaml");
    for (const auto& queue : fleet.queues) {
      require(!queue.name.empty(), "a queue has a name");
      require(queue.min_workers >= 0 && queue.min_workers <= queue.max_workers, "a queue has room");
      require(queue.time_limit.count() > 0 || queue.kind == launchers::LauncherKind::kSsh,
              "a worker's time ends");
    }
  } catch (const sweeps::SweepFileError& error) {
    require(!error.problems().empty(), "a refused file has a problem");
    for (const sweeps::Problem& problem : error.problems()) require_printable(problem.text());
  }
}

}  // namespace abl::fuzz
