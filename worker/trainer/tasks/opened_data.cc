// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/opened_data.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "config/data/data_sets.h"
#include "worker/trainer/device/failure.h"

namespace abl::tasks {

data::DataSet opened(const config::TrialConfig& trial, const TaskPlace& place) {
  const auto* known = config::find_data_set(trial.data.name);
  const bool is_drawn = known && known->embedded;
  if (place.stands_in && place.data_root.empty() && !is_drawn)
    return data::stand_in(trial.data, std::max(4096, trial.recipe.batch));
  try {
    return data::open_data(trial.data, place.data_root);
  } catch (const Error& error) {
    device::throw_as_data_fault(error);
  } catch (const std::filesystem::filesystem_error& error) {
    device::throw_as_data_fault(
        system_error("data: cannot read " + error.path1().string(), error.code().value()));
  }
}

TaskData task_data(const data::DataSet& set) {
  return {.train_images = set.train->size(),
          .val_images = set.val->size(),
          .fingerprint = set.fingerprint,
          .passed_over = set.passed_over};
}

}  // namespace abl::tasks
