// SPDX-License-Identifier: Apache-2.0
#include "views/config_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "storage/chain_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"

namespace abl::views {
namespace {

using nlohmann::json;

/// "model.attention.share" -> "\"QQQQQ\"": every leaf, and lists and mappings that are empty.
std::map<std::string, std::string> leaves(const std::string& document) {
  std::map<std::string, std::string> found;
  const json parsed = json::parse(document, nullptr, false);
  if (!parsed.is_structured()) return found;
  const json flat = parsed.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string key = pointer.empty() ? pointer : pointer.substr(1);
    std::ranges::replace(key, '/', '.');
    found[key] = value.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return found;
}

/// In place of the hashes that name the weights of other trials in a document: whose they are.
void name_weights(storage::Database& db, storage::TrialId trial,
                  std::string std::pair<std::string, std::string>::*side, Differences& differences) {
  for (const auto& file : storage::ChainStore{db}.files(trial)) {
    const auto places = storage::SweepStore{db}.positions(file.trial);
    const std::string text =
        fmt::format("the {} weights of {}", name_of(file.take),
                    places.empty() ? fmt::format("trial {}", file.trial)
                                   : fmt::format("{}/{}", places.front().sweep, places.front().row));
    const std::string written = json(file.name).dump();
    for (auto& [key, values] : differences)
      if (values.*side == written) values.*side = text;
  }
}

}  // namespace

Differences document_differences(const std::string& first, const std::string& second) {
  Differences both;
  for (auto& [key, value] : leaves(first)) both[key].first = value;
  for (auto& [key, value] : leaves(second)) both[key].second = value;
  std::erase_if(both, [](const auto& each) { return each.second.first == each.second.second; });
  return both;
}

Differences config_differences(storage::Database& db, storage::TrialId first, storage::TrialId second) {
  if (first == second) return {};
  const storage::TrialStore trials{db};
  Differences differences = document_differences(trials.get(first).config, trials.get(second).config);
  differences.erase("seed");
  name_weights(db, first, &Differences::mapped_type::first, differences);
  name_weights(db, second, &Differences::mapped_type::second, differences);
  return differences;
}

}  // namespace abl::views
