// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "config/document/trial_document.h"
#include "config/json.h"
#include "sweeps/chains.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

/// The seeds of rows of other sweeps that this one's take, over however many rows: no others are trained
/// here.
std::set<std::pair<std::size_t, std::int64_t>> needed_of_others(const SweepSpec& spec, std::size_t seeds) {
  std::set<std::pair<std::size_t, std::int64_t>> needed;
  const std::function<void(const Row&, std::int64_t)> need = [&](const Row& row, std::int64_t seed) {
    for (const RowSource& source : row.sources) {
      const auto from = static_cast<std::size_t>(source.row);
      const std::int64_t of = source.seed.value_or(seed);
      if (!spec.rows[from].sweep.empty() && needed.emplace(from, of).second) need(spec.rows[from], of);
    }
  };
  for (const Row& row : spec.rows)
    for (std::size_t seed = 0; seed < seeds; ++seed)
      if (row.sweep.empty()) need(row, spec.seeds[seed]);
  return needed;
}

/// Puts into the documents of trials which others' weights they take, each after those.
void link(const SweepSpec& spec, std::vector<TrialSpec>& trials) {
  std::map<std::pair<int, std::int64_t>, std::size_t> index;  // row and seed -> trial
  for (std::size_t i = 0; i < trials.size(); ++i) index[{trials[i].row, trials[i].seed}] = i;
  std::vector<bool> linked(trials.size(), false);
  const std::function<void(std::size_t)> link_one = [&](std::size_t at) {  // as deep as kLongestChain
    TrialSpec& trial = trials[at];
    if (linked[at]) return;
    linked[at] = true;
    const Row& row = spec.rows[static_cast<std::size_t>(trial.row)];
    std::vector<std::string> hashes;
    for (const RowSource& source : row.sources) {
      const std::size_t from = index.at({source.row, source.seed.value_or(trial.seed)});
      link_one(from);
      hashes.push_back(trials[from].config_hash);
      trial.sources.push_back({protocol::weights_name(source.take, hashes.back()), source.take, from});
    }
    if (hashes.empty()) return;
    trial.config = chained_config(row.config, row.sources, hashes, trial.seed);
    trial.config_hash = config::config_hash(trial.config);
  };
  for (std::size_t i = 0; i < trials.size(); ++i)
    if (!spec.rows[static_cast<std::size_t>(trials[i].row)].sources.empty()) link_one(i);
}

}  // namespace

std::vector<TrialSpec> expand(const SweepSpec& spec) {
  std::vector<TrialSpec> trials;
  trials.reserve(spec.rows.size() * spec.seeds.size());
  const std::size_t seeds =
      spec.seeds_rule ? std::min<std::size_t>(spec.seeds_rule->min, spec.seeds.size()) : spec.seeds.size();
  const auto needed = needed_of_others(spec, seeds);
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    for (std::size_t row = 0; row < spec.rows.size(); ++row) {
      if (spec.rows[row].not_trained || spec.rows[row].tuned) continue;
      if (!spec.rows[row].sweep.empty() && !needed.contains({row, spec.seeds[seed]})) continue;
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
  link(spec, trials);
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
