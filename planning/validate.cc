// SPDX-License-Identifier: Apache-2.0
#include "planning/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace abl::planning {

sweeps::SweepSpec parse(const ablate::v1::SweepFile& file) {
  return sweeps::parse_sweep(file.text(), file.path(), file.folder());
}

ablate::v1::ValidateResponse validate(const ablate::v1::SweepFile& file) {
  ablate::v1::ValidateResponse response;
  try {
    const sweeps::SweepSpec spec = parse(file);
    std::set<std::string> distinct;
    sweeps::SweepSpec whole = spec;
    for (sweeps::Row& row : whole.rows) row.tuned = false;  // as many as there will be
    for (const sweeps::TrialSpec& trial : sweeps::expand(whole)) distinct.insert(trial.config_hash);
    response.set_sweep(spec.name);
    response.set_rows(static_cast<std::uint32_t>(std::ranges::count(spec.rows, "", &sweeps::Row::sweep)));
    response.set_seeds(static_cast<std::uint32_t>(spec.seeds.size()));
    if (spec.seeds_rule) {
      response.set_seeds(spec.seeds_rule->max);
      response.set_seeds_min(spec.seeds_rule->min);
    }
    response.set_trials(static_cast<std::uint32_t>(distinct.size()));
    if (spec.tune) {
      const auto points = static_cast<std::size_t>(
          std::ranges::count_if(spec.candidates, [](const auto& candidate) { return candidate.planned; }));
      response.add_notes(fmt::format("{} by {} tuning trials",
                                     spec.tune->search ? "searched" : "its rows are tuned",
                                     points * spec.tune->seeds.size()));
    }
    for (const std::string& doubt : spec.doubts) response.add_notes(doubt);
  } catch (const sweeps::SweepFileError& error) {
    add_problems(error, response);
  }
  return response;
}

void add_problems(const sweeps::SweepFileError& error, ablate::v1::ValidateResponse& response) {
  for (const sweeps::Problem& found : error.problems()) {
    ablate::v1::Problem& problem = *response.add_problems();
    problem.set_file(found.file);
    problem.set_line(static_cast<std::uint32_t>(found.place.line));
    problem.set_column(static_cast<std::uint32_t>(found.place.column));
    problem.set_field(found.field);
    problem.set_message(found.message);
    problem.set_nearest(found.nearest);
  }
}

sweeps::Problem problem_of(const ablate::v1::Problem& problem) {
  return {.file = problem.file(),
          .place = {.line = static_cast<int>(problem.line()), .column = static_cast<int>(problem.column())},
          .field = problem.field(),
          .message = problem.message(),
          .nearest = problem.nearest()};
}

}  // namespace abl::planning
