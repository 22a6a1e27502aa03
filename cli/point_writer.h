// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "ablate/v1/runs.pb.h"
#include "base/new_file.h"

namespace abl::cli {

enum class PointFormat { kCsv, kJsonLines };

/// Writes metric points: sweep, row, seed, trial, run, metric, step, value, time_ms. Values keep every bit;
/// what is not finite is nan, inf, -inf in CSV and "NaN", "Infinity", "-Infinity" in JSON. A file is written
/// beside its name and renamed by `finish`: without it nothing is left behind, and an older file stays as it
/// was.
class PointWriter {
 public:
  /// `file` empty: standard output, without control characters where that is a terminal. Throws: Error naming
  /// the file.
  PointWriter(const std::filesystem::path& file, PointFormat format);

  /// Throws (both): Error, kResourceExhausted when the disk is full.
  void write(const std::string& sweep, const ablate::v1::ExportBlock& block);
  void finish();
  std::uint64_t points() const { return points_; }

 private:
  void put(const std::string& text);
  [[noreturn]] void fail() const;

  std::optional<NewFile> file_;  ///< none: standard output
  PointFormat format_;
  bool is_terminal_;
  std::uint64_t points_ = 0;
};

}  // namespace abl::cli
