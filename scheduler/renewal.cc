// SPDX-License-Identifier: Apache-2.0
#include "scheduler/renewal.h"

#include "config/document/result_version.h"
#include "config/document/trial_document.h"
#include "config/json.h"

namespace abl::scheduler {

storage::RenewedTrial renewed(const storage::TrialRecord& trial) {
  const auto stored = nlohmann::json::parse(trial.config, nullptr, /*allow_exceptions=*/false);
  const auto today = config::corrected(stored, trial.identity.result_version);
  if (stored.is_discarded() || today == stored)
    return {trial.config, trial.identity.config_hash, trial.due_version};
  const std::string text = config::canonical_json(today);
  return {text, config::config_hash(text), config::result_version(today)};
}

}  // namespace abl::scheduler
