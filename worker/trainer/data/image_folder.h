// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// JPEG, PNG and WebP files, a folder for each class:
///   ROOT/train/CLASS/*.jpg with ROOT/val (or ROOT/test)/CLASS/*.jpg, or
///   ROOT/CLASS/*.jpg, of which every fifth file of a class is kept for validation.
/// A file is used where its name ends as an image's; of what format it is, its content says. Labels follow
/// the sorted class names. Images that are small enough stay decoded in memory. Throws: Error{kNotFound} for
/// a folder that is not there, Error{kInvalidArgument} for a wrong number of classes or an empty one.
DataSet open_image_folder(const config::DataConfig& config, const std::filesystem::path& root);
/// The first layout, and the second.
bool has_split_folders(const std::filesystem::path& root);
bool has_class_folders(const std::filesystem::path& root);

/// ImageNet-V2: ROOT/0 … ROOT/999. The label is the folder's number, every image is for validation.
DataSet open_numbered_folders(const config::DataConfig& config, const std::filesystem::path& root);
bool is_numbered_folders(const std::filesystem::path& root);

}  // namespace abl::trainer
