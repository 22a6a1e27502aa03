// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "ablate/v1/runs.pb.h"
#include "base/new_file.h"

namespace abl::cli {

/// Writes metric points as TensorBoard's event files: a folder with a folder for each row, one in it for each
/// seed, and a file there. It is written beside its name and renamed by `finish`: without it nothing is left
/// behind. Values keep every bit. A record in each file says of which sweep, row and seed it is, so that
/// `ablate import` finds them whatever the folders are called.
class EventWriter {
 public:
  /// Throws: Error{kInvalidArgument} where something is there already.
  explicit EventWriter(std::filesystem::path folder);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Blocks of one run follow each other. Throws (both): Error, kResourceExhausted when the disk is full.
  void write(const std::string& sweep, const ablate::v1::ExportBlock& block);
  void finish();
  std::uint64_t points() const { return points_; }

 private:
  void begin_run(const std::string& sweep, const ablate::v1::ExportBlock& block);
  void end_run();

  const std::filesystem::path folder_, part_;
  std::set<std::string> names_;  ///< of folders, as they are
  std::map<std::string, std::string> rows_;
  std::unique_ptr<NewFile> file_;  ///< of the run that is being written
  std::uint32_t run_ = 0;
  std::string pending_;
  std::uint64_t points_ = 0;
};

/// A row's id as the name of a folder: what file systems and TensorBoard take, as much of it as they take.
std::string folder_name(const std::string& row);

}  // namespace abl::cli
