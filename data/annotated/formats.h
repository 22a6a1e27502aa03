// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "data/annotated/annotated_source.h"

namespace abl::data {

/// Told of each annotation that cannot be used what is wrong with it and where, in a line.
using Report = std::function<void(const std::string& problem)>;

/// What annotations a folder or a packed file holds: "COCO instances"; empty for none. Looks at names alone,
/// and at the header of a file.
std::string annotated_format_in(const std::filesystem::path& root);

/// Recognises what a folder holds, or takes a packed file, and opens it. Of the trial's data, `train_images`,
/// `val_images` and `damaged` count. An annotation that cannot be used is left out and told to `report`;
/// where there is none it ends the opening, or with `damaged: skip` is named on stderr. Throws:
/// Error{kNotFound} listing what was looked for; what the format throws.
AnnotatedSet open_annotated(const config::DataConfig& config, const std::filesystem::path& root,
                            const Report& report = {});

/// COCO's instances:
///   ROOT/annotations/instances_train2017.json and …_val2017.json (or 2014, or without a year)
///   ROOT/train2017/*.jpg and ROOT/val2017/*.jpg (or below ROOT/images)
/// Categories follow their sorted ids, pictures theirs. A picture need not have an annotation.
/// Throws: Error{kNotFound} for a missing file or folder, Error{kDataLoss} for a file that is no JSON or
/// lacks a section, Error{kInvalidArgument} where both files do not have the same categories.
AnnotatedSet open_coco(const config::DataConfig& config, const std::filesystem::path& root,
                       const Report& report);
bool is_coco(const std::filesystem::path& root);

/// ADE20K as of the scene parsing challenge, and whatever is laid out like it:
///   ROOT/images/training/*.jpg with ROOT/annotations/training/*.png, and …/validation
/// A pixel's value is its class from 1 on; 0 is none of them and does not count. The classes' names are those
/// of ROOT/objectInfo150.txt, or the lines of ROOT/classes.txt; without either there are 150, named by
/// number. Throws: Error{kNotFound} for a missing folder.
AnnotatedSet open_ade20k(const config::DataConfig& config, const std::filesystem::path& root,
                         const Report& report);
bool is_ade20k(const std::filesystem::path& root);

/// A packed file of either. Throws: Error{kDataLoss} naming it and what is wrong with it.
AnnotatedSet open_annotated_pack(const config::DataConfig& config, const std::filesystem::path& file);

/// What `data.damaged` does with an annotation that cannot be used, where nobody asked to be told.
Report by_damaged(config::Damaged damaged);

}  // namespace abl::data
