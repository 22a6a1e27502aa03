// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "data/image_source.h"

namespace abl::data {

struct PackOptions {
  std::filesystem::path output;
  int bound = 0;          ///< images whose shorter side is longer are made that small; 0: none
  bool raw = false;       ///< pixels instead of files: larger, and nothing to decode
  bool verbatim = false;  ///< files as they are, to the byte; not with the two above
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;             ///< leaves off when it becomes true
  std::function<void(std::uint64_t images)> progress;  ///< called after each piece of work
};

struct PackResult {
  bool made = false;  ///< false: the file was there, made of the same images in the same way
  std::uint64_t bytes = 0;
  std::uint64_t resized = 0, decoded = 0;  ///< images made smaller; JPEG files kept as pixels
  std::uint64_t damaged = 0;               ///< that were found damaged, and kept as they are
  std::string first_damaged;               ///< of them: its name and the reason
  std::uint32_t train = 0, val = 0;
  std::string fingerprint;
};

/// Writes both splits of a data set into one file that every trainer of a machine can map. JPEG files keep
/// their pixels, to the byte, unless `bound` asks for others, and get restart markers, so that a crop can be
/// decoded alone; PNG and WebP files stay as they are. So does a file that is found damaged, whatever was to
/// be made of it: data.damaged says what a training does with it. The file appears when it is complete; of
/// several processes that are to make it one does, and the others wait for it. Throws: Error{kDataLoss}
/// naming an image whose header is damaged; Error{kAlreadyExists} when the file is made of something else;
/// Error{kResourceExhausted} when the disk is full; Error{kCancelled}. Nothing is left over then.
PackResult pack(const DataSet& data, const PackOptions& options);

/// What is at `output` already, if it was made of what has that fingerprint, by that packing; nothing where
/// no file is. Throws: Error{kAlreadyExists} when it is another.
std::optional<PackResult> packed_already(const std::filesystem::path& output, const std::string& made_of,
                                         const std::string& packing);

}  // namespace abl::data
