// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// Image files that two lists name, one for each split. Stanford Cars:
///   anno_train.csv and anno_test.csv (or cars_train_annos.csv and cars_test_annos.csv): a file name of
///   cars_train/ or cars_test/ first and its class, 1 to 196, last, or where a header row has `fname` and
///   `class`; the classes' names in names.csv
/// or any other data set:
///   train.txt and val.txt (or test.txt): a path below the root and a label from 0 on, separated by a space;
///   the classes' names in classes.txt
/// Throws: Error{kNotFound, kInvalidArgument} naming list, line and what was expected.
DataSet open_image_lists(const config::DataConfig& config, const std::filesystem::path& root);
bool is_image_lists(const std::filesystem::path& root);

}  // namespace abl::trainer
