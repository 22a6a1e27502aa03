// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "config/field_table.h"
#include "config/trial_config.h"

namespace abl::config {

/// The one table of the section `data`.
const std::vector<Field<DataConfig>>& data_fields();

/// What is known of a data set by its logical name. Others are allowed; they state their classes and image
/// size.
struct DataSet {
  std::string_view name;
  int classes, image_size;
  bool any_size;  ///< its images have no size of their own: a preset's goes before `image_size`
  bool embedded;  ///< drawn by the trainer: no folder, no damaged files
  int train_images, val_images;  ///< that are drawn; 0: as many as the folder has
  int images;                    ///< to train on, of one that is not drawn
  std::string_view sentence;
};

std::span<const DataSet> data_sets();
/// Null when there is none of that name.
const DataSet* find_data_set(std::string_view name);

}  // namespace abl::config
