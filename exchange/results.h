// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

/// Results of other tools: tables (CSV, JSON Lines), TensorBoard's event files, MLflow's stores, W&B's
/// exports.
namespace abl::exchange {

/// A run by its place in a table. `sweep` is empty where the file does not say it.
struct RunKey {
  std::string sweep, row;
  std::int64_t seed = 0;
  auto operator<=>(const RunKey&) const = default;
};

/// Takes what is read, in the file's order.
class Sink {
 public:
  virtual ~Sink() = default;
  /// `time_ms`: since 1970; 0: not known.
  virtual void point(const RunKey& run, const std::string& metric, std::uint32_t step, double value,
                     std::int64_t time_ms) = 0;
  /// What the run was configured with; `json`: the value as JSON. Said again it is the same.
  virtual void setting(const RunKey& run, const std::string& key, const std::string& json) = 0;
};

enum class Format { kCsv, kJsonLines, kTensorBoard, kMlflow };
constexpr std::string_view name_of(Format format) {
  switch (format) {
    case Format::kCsv:
      return "csv";
    case Format::kJsonLines:
      return "jsonl";
    case Format::kTensorBoard:
      return "tensorboard";
    case Format::kMlflow:
      return "mlflow";
  }
  return {};
}

/// Which columns, or keys, of a table mean what. Those that are not given are found by the names that tools
/// give them.
struct Mapping {
  std::string row, seed, step, time;
  std::vector<std::string> metrics;   ///< empty: every column of numbers
  std::vector<std::string> settings;  ///< columns that configure a run
  std::string as_row;                 ///< of a file without a column of rows; empty: the file's name
};

/// What a file or folder is, by its content. Throws: Error{kNotFound}, kInvalidArgument for what is none.
Format format_of(const std::filesystem::path& path);

/// Reads all of it; memory is bounded, however long it is. Throws: Error{kInvalidArgument}
/// "FILE:LINE:COLUMN: …" at the first thing that cannot be read; of what the sink throws.
/// Returns: what was passed over, a line each.
std::vector<std::string> read_results(const std::filesystem::path& path, Format format,
                                      const Mapping& mapping, Sink& sink);

}  // namespace abl::exchange
