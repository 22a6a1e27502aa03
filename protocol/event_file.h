// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace abl::protocol {

/// TensorBoard's event files: records of TFRecord (length, its checksum, data, their checksum), each a
/// tensorflow.Event. Read and written without TensorFlow.
/// Source: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto, summary.proto,
///         tensor.proto.

/// What a program wrote for TensorBoard under a tag.
struct EventValue {
  std::int64_t step = 0;
  double wall_time = 0;  ///< seconds since 1970
  std::string tag{};
  /// `simple_value`, or a tensor of one real number; nothing of pictures, histograms and texts. A float is
  /// the number that it would be written as, 0.1 and not 0.10000000149; of what `scalar_record` has written
  /// every bit.
  std::optional<double> scalar{};
  std::string plugin{}, text{};  ///< of a text: whose it is, and itself
};

/// Reads an event file as it grows. Thread: one.
class EventFileReader {
 public:
  using Taker = std::function<void(const EventValue& value)>;
  /// Reads on; a record that has not wholly come waits. Nothing is read behind a damaged one, which cannot be
  /// told from what follows.
  void read(std::string_view bytes, const Taker& taker);
  /// What is damaged, and where, or empty.
  const std::string& problem() const { return problem_; }
  /// Bytes of a record that has not wholly come.
  std::uint64_t waiting() const;
  std::uint64_t offset() const { return offset_; }  ///< of the first record that was not read

 private:
  std::string rest_;
  std::uint64_t skip_ = 0;     ///< bytes that are to come of a record that is too large to be of scalars
  std::uint64_t skipped_ = 0;  ///< and those that have come
  std::uint64_t offset_ = 0;
  std::string problem_;
};

/// What a file begins with.
std::string first_record(double wall_time);
/// One scalar: 32 bits for TensorBoard, and beside them every bit, which `EventFileReader` takes.
std::string scalar_record(const std::string& tag, std::int64_t step, double value, double wall_time);
/// A text for a plug-in; TensorBoard passes over what it has none for.
std::string text_record(const std::string& tag, const std::string& plugin, const std::string& text,
                        double wall_time);

/// CRC-32C (Castagnoli) as TFRecord masks it: of data that hold checksums themselves.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace abl::protocol
