// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "config/trial_config.h"
#include "data/annotated/annotated_source.h"
#include "images/annotated.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// The annotated pictures of a trial: drawn, or of the folder or file at the place. Where they are only to be
/// timed and are not there, drawn ones stand in.
/// Throws: Error, as a fault of this machine's data: none there, without what the task learns, or of other
/// classes than the trial's.
data::AnnotatedSet annotated_data(const config::TrialConfig& trial, const TaskPlace& place);

/// Which pictures a batch is to hold, and how each becomes one of it.
struct PicturePlan {
  std::vector<std::uint32_t> indices;
  /// `place`: in the batch. Nothing when a picture is skipped. From several threads at a time.
  std::function<std::optional<images::Annotated>(std::uint32_t index, std::size_t place)> prepare;
  std::uint32_t replace_among = 0;  ///< of so many a skipped one's place goes to the next that can be read;
                                    ///< 0: it is left out
};

/// Pictures of a batch that are made, by any number of threads: each takes one at a time. What comes of it
/// depends on the plan alone.
class PicturesInMaking {
 public:
  explicit PicturesInMaking(PicturePlan plan) : plan_{std::move(plan)}, slots_(plan_.indices.size()) {}

  bool has_work() const { return taken_ < slots_.size(); }
  /// Returns: whether the last of all is done by that; true in one thread alone.
  bool work(const std::atomic<bool>& stop);
  /// The pictures, once `work` returned true; once. Throws: what preparing the first that failed threw.
  std::vector<images::Annotated> finish();

 private:
  struct Slot {
    std::optional<images::Annotated> picture;
    std::exception_ptr error;
  };
  std::optional<images::Annotated> prepared(std::size_t place) const;

  const PicturePlan plan_;
  std::vector<Slot> slots_;
  std::atomic<std::size_t> taken_ = 0, done_ = 0;
};

}  // namespace abl::tasks
