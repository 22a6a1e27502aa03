// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "data/image_source.h"

namespace abl::data {

/// CIFAR's binary files; records of labels, then 3 planes of 32×32 bytes, row after row:
///   CIFAR-10:  data_batch_1.bin … data_batch_5.bin and test_batch.bin; one label, 0 to 9
///   CIFAR-100: train.bin and test.bin; a coarse label, 0 to 19, and the fine one that is used, 0 to 99
/// Throws: Error{kNotFound, kInvalidArgument, kDataLoss} naming the file and what was expected.
DataSet open_cifar10(const config::DataConfig& config, const std::filesystem::path& root);
DataSet open_cifar100(const config::DataConfig& config, const std::filesystem::path& root);

/// The embedded images (embedded_images.h), drawn once into memory.
/// Throws: Error{kInvalidArgument} when image size or classes are not theirs.
DataSet open_drawn(const config::DataConfig& config);
bool is_drawn(std::string_view name);

/// What a folder holds, by the first files of a known format, or that it is a packed file: what is looked at
/// before anything is trained. Whether all of it is there, and how many images, only opening it says.
/// Throws: Error{kNotFound} listing what was looked for; of a packed file Error{kDataLoss}.
std::string recognise(const std::filesystem::path& root);

/// The set with data.held_out of its training images to evaluate in place of the others, whatever it is
/// stored as. Of each class as many as its share, none without an image to train on; which ones follows from
/// the order of the images and their labels alone. Throws: Error{kInvalidArgument} where too few are left.
DataSet hold_out(DataSet set, const config::DataConfig& config);

/// Recognises what a folder holds, or takes a packed file, and opens it. To add a format: a source file that
/// opens it, a line in the table of formats.cc, and a section in docs/data.md.
/// Throws: Error{kNotFound} listing what was looked for; what the format throws.
DataSet open_stored(const config::DataConfig& config, const std::filesystem::path& root);

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

/// iNaturalist 2018 and 2019: trainYEAR.json and valYEAR.json with `images` (id, file_name below the root),
/// `annotations` (image_id, category_id) and `categories` (id, name). Labels follow the sorted ids of the
/// categories, which both files must agree on. Images come in the order of the JSON file.
/// Throws: Error{kNotFound, kInvalidArgument, kDataLoss} naming the file and what was expected.
DataSet open_inaturalist(const config::DataConfig& config, const std::filesystem::path& root);
bool is_inaturalist(const std::filesystem::path& root);

/// Looks at what a packed file says of itself. Throws: Error{kDataLoss} naming it and what is wrong.
void expect_pack(const std::filesystem::path& file);

/// A packed file, mapped: all trainers of a machine share the system's copy. Its bounds are checked here,
/// once; reading an image checks nothing more than the image itself.
/// Throws: Error{kDataLoss} naming the file and what is wrong with it; Error{kInvalidArgument} for another
/// number of classes than the trial's.
DataSet open_pack(const config::DataConfig& config, const std::filesystem::path& file);

/// STL-10's binary files: train_X.bin and test_X.bin with 3 planes of 96×96 bytes an image, column after
/// column; train_y.bin and test_y.bin with a byte each, 1 to 10. The unlabelled images are left alone.
/// Throws: Error{kNotFound, kInvalidArgument, kDataLoss} naming the file and what was expected.
DataSet open_stl10(const config::DataConfig& config, const std::filesystem::path& root);

}  // namespace abl::data
