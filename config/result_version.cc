// SPDX-License-Identifier: Apache-2.0
#include "config/result_version.h"

namespace abl::config {

ResultChanges result_changes() {
  // {version, what changed, which documents it touches:
  //  [](const nlohmann::json& document) { return document.value("/recipe/precision"_json_pointer, "") ==
  //  "bf16"; }}
  return {};
}

int result_version(const nlohmann::json& document, ResultChanges changes) {
  for (auto change = changes.rbegin(); change != changes.rend(); ++change)
    if (change->touches(document)) return change->version;
  return kFirstResultVersion;
}

int newest_result_version(ResultChanges changes) {
  return changes.empty() ? kFirstResultVersion : changes.back().version;
}

std::vector<std::string> changes_since(int version, const nlohmann::json& document, ResultChanges changes) {
  std::vector<std::string> sentences;
  for (const ResultChange& change : changes)
    if (change.version > version && change.touches(document)) sentences.emplace_back(change.what);
  return sentences;
}

}  // namespace abl::config
