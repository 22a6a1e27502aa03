// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "models/backbones/classifier.h"
#include "worker/trainer/tasks/batch.h"

namespace abl::tasks {

/// The frozen teacher of a trial. It looks at the images of the student's steps, in the normalisation that it
/// was trained with itself, where its file says which: checkpoints of this trainer do.
struct Teacher {
  std::shared_ptr<models::Classifier> model;  ///< in evaluation mode; null without distillation
  Renormalisation sees;                       ///< of the student's images
  std::string note;                           ///< for the log, where that is not the student's or not known
};

}  // namespace abl::tasks
