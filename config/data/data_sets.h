// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/field_table.h"
#include "config/trial_config.h"

namespace abl::config {

/// How many images there are at most to train on, those that are held out among them; 0: not known.
std::int64_t known_training_images(const DataConfig& data);
/// How many of `train` images a trial holds out of training (data.held_out): the next whole number, at
/// least 1.
std::int64_t held_out_of(const DataConfig& data, std::int64_t train);
/// What is wrong with data.held_out of `train` images in `classes` classes (0: not known), or empty.
std::string wrong_held_out(const DataConfig& data, std::int64_t train, std::int64_t classes);

/// The one table of the section `data`.
const std::vector<Field<DataConfig>>& data_fields();

/// What is known of a data set by its logical name. Others are allowed; they state their classes and image
/// size.
struct DataSet {
  std::string_view name;
  int classes, image_size;  ///< classes of whole images; 0: they have none
  bool any_size;            ///< its images have no size of their own: a preset's goes before `image_size`
  bool embedded;            ///< drawn by the trainer: no folder, no damaged files
  int train_images, val_images;  ///< that are drawn; 0: as many as the folder has
  int images;                    ///< to train on, of one that is not drawn
  std::string_view sentence;
  int labels = 0;  ///< of pixels; 0: they have none
  int things = 0;  ///< categories of instances; 0: they have none
};

std::span<const DataSet> data_sets();
/// The classes that a task of that kind learns of it; 0: none.
int classes_of(const DataSet& set, TaskKind kind);
/// Null when there is none of that name.
const DataSet* find_data_set(std::string_view name);

}  // namespace abl::config
