// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "protocol/metric_source.h"
#include "worker/metrics/finder.h"

namespace abl::metrics {

inline constexpr std::size_t kPiece = 64 << 10;  ///< bytes of a file that are read at once
inline constexpr std::size_t kMostFiles = 64;    ///< of a source: each is held open
inline constexpr std::size_t kMostFilesOfARun = 256;
inline constexpr std::size_t kMostMetrics = 2000;  ///< of a source, as a run has
inline constexpr std::size_t kLongestShown = 200;  ///< bytes of others' text in a message

/// The tables (CSV, JSON Lines) that a source names: each row is a step, each number in it a point.
std::unique_ptr<WatchedFiles> watch_tables(const protocol::MetricSource& source,
                                           const std::filesystem::path& folder, std::size_t most_files,
                                           std::uint32_t resume_step);

/// TensorBoard's event files in the folders that a source names, and below them: each scalar is a point. Its
/// metric is its tag, behind the folder that it lies in below the named one, where that is not one that
/// programs name after the time of their start.
std::unique_ptr<WatchedFiles> watch_event_files(const protocol::MetricSource& source,
                                                const std::filesystem::path& folder, std::size_t most_files);

}  // namespace abl::metrics
