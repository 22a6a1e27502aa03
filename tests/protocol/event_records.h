// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "protocol/event_file.h"

/// TensorBoard's event files as programs write them, for tests.
namespace abl::protocol {

inline std::string little_endian_bytes(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}
inline std::string varint(std::uint64_t value) {
  std::string text;
  for (; value > 0x7f; value >>= 7) text += static_cast<char>((value & 0x7f) | 0x80);
  return text + static_cast<char>(value);
}
/// A field of Protobuf that has a length.
inline std::string field(int number, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
inline std::string float_field(int number, float value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 5) +
         little_endian_bytes(std::bit_cast<std::uint32_t>(value), 4);
}
/// TFRecord.
inline std::string record(const std::string& data) {
  const std::string length = little_endian_bytes(data.size(), 8);
  return length + little_endian_bytes(masked_crc32c(length), 4) + data +
         little_endian_bytes(masked_crc32c(data), 4);
}
/// `value`: the fields of a Summary.Value beside its tag.
inline std::string event_record(std::int64_t step, const std::string& tag, const std::string& value) {
  const std::string wall_time =
      varint(1 << 3 | 1) + little_endian_bytes(std::bit_cast<std::uint64_t>(1.5e9), 8);
  const std::string at = varint(2 << 3) + varint(static_cast<std::uint64_t>(step));
  return record(wall_time + at + field(5, field(1, field(1, tag) + value)));
}
inline std::string scalar_record(std::int64_t step, const std::string& tag, float value) {
  return event_record(step, tag, float_field(2, value));
}
inline std::string first_record() { return record(field(3, "brain.Event:2")); }

}  // namespace abl::protocol
