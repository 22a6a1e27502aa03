// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <set>

#include "config/document/trial_document.h"
#include "config/json.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {

std::vector<TrialSpec> expand(const SweepSpec& spec) {
  std::vector<TrialSpec> trials;
  trials.reserve(spec.rows.size() * spec.seeds.size());
  for (std::size_t seed = 0; seed < spec.seeds.size(); ++seed) {
    for (std::size_t row = 0; row < spec.rows.size(); ++row) {
      TrialSpec trial{
          .row = static_cast<int>(row), .seed_index = static_cast<int>(seed), .seed = spec.seeds[seed]};
      nlohmann::json document = nlohmann::json::parse(spec.rows[row].config);
      document["seed"] = trial.seed;
      trial.config = config::canonical_json(document);
      trial.config_hash = config::config_hash(trial.config);
      trial.result_version = spec.rows[row].result_version;
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

std::vector<std::string> models_of(const SweepSpec& spec) {
  std::set<std::string> models;
  for (const Row& row : spec.rows)
    for (const auto& model : {row.model, row.teacher})
      if (!model.empty()) models.insert(model);
  return {models.begin(), models.end()};
}

}  // namespace abl::sweeps
