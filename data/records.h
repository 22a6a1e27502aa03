// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "data/image_source.h"

namespace abl::data {

/// How the three planes of a record lie: row after row, or column after column.
enum class Planes { kRows, kColumns };

/// An image in a file of records of one size.
struct Record {
  std::uint32_t file = 0;    ///< which of the files
  std::uint64_t offset = 0;  ///< of its planes
  std::uint32_t number = 0;  ///< within the file
  int label = 0;
};

/// The splits of a data set that lies in a few files of records.
struct RecordSet {
  std::string format;  ///< "CIFAR-10 (binary)"
  std::string kind;    ///< begins the fingerprint
  std::vector<std::shared_ptr<const MappedFile>> files;
  int side = 0;  ///< of the square images, pixels
  Planes planes = Planes::kRows;
  std::vector<Record> train, val;
  std::vector<std::string> classes;
};

/// The fingerprint is of the name, size and SHA-256 of every file of `files`.
DataSet data_set_of_records(const config::DataConfig& data, RecordSet set);

/// Maps `file`, which holds records of `record` bytes, and says how many.
/// Throws: Error{kDataLoss} naming file, size and what was expected, when it is empty or no whole number of
/// records; Error{kNotFound} when it is not there.
std::shared_ptr<const MappedFile> map_records(const std::filesystem::path& file, std::size_t record,
                                              std::string_view what);

/// The lines of a text file, without empty ones; as many numbers "0" … where it is not there.
/// Throws: Error{kInvalidArgument} when it has another number of lines than `count`.
std::vector<std::string> class_names(const std::filesystem::path& file, int count);

/// Throws: Error{kInvalidArgument} when the trial is for another number of classes than `found`.
void check_classes(const config::DataConfig& data, const std::filesystem::path& root, std::string_view format,
                   int found);

}  // namespace abl::data
