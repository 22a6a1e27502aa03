// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/image_source.h"

namespace abl::data {

/// An image file of a data set.
struct File {
  std::string path;  ///< below the root, with '/'
  std::uintmax_t bytes = 0;
  int label = 0;
};

/// A data set of image files below `root`: the fingerprint is of the names and sizes of every file, before
/// train_images and val_images take a subset. `kind` begins the fingerprint; `with_labels` where the labels
/// do not follow from the names.
DataSet data_set_of_files(const config::DataConfig& data, const std::filesystem::path& root,
                          std::vector<File> train, std::vector<File> val, std::string_view kind,
                          bool with_labels);

/// The size of a file that a list names. A list cannot lead out of the root.
/// Throws: Error naming the list, when the path is absolute or has "..", or the file is not there.
std::uintmax_t listed_file_size(const std::filesystem::path& root, const std::string& path,
                                const std::string& list);

/// Whether a file is a JPEG, PNG or WebP by its first bytes. Throws: Error when it cannot be read.
bool is_photograph(const std::filesystem::path& file);

/// Such a file as a data set of one image, without a label. Damage is not skipped.
/// Throws: Error naming the file, here and where it is decoded.
std::shared_ptr<const ImageSource> open_photograph(const std::filesystem::path& file);

}  // namespace abl::data
