// SPDX-License-Identifier: Apache-2.0
#include "protocol/event_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace abl::protocol {
namespace {

constexpr std::size_t kHead = 12, kChecksum = 4;    // length and its checksum; that of the data
constexpr std::uint64_t kLargestRecord = 16 << 20;  // larger ones are pictures and graphs

constexpr std::array<std::uint32_t, 256> kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
    table[i] = value;
  }
  return table;
}();

template <class Number>
Number little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  if constexpr (sizeof(Number) == 8)
    return std::bit_cast<Number>(value);
  else
    return std::bit_cast<Number>(static_cast<std::uint32_t>(value));
}

/// A whole number as Protobuf writes it, off the beginning; nothing where there is none.
std::optional<std::uint64_t> take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest[0]);
    rest.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// Protobuf's wire format, as much of it as events need.

enum Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
// Numbers of fields.
namespace event_field {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
}
namespace value_field {
constexpr int kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
}
namespace metadata_field {
constexpr int kPlugin = 1, kDataClass = 4;
}
namespace plugin_field {
constexpr int kName = 1, kContent = 2;
}
namespace tensor_field {
constexpr int kType = 1, kShape = 2, kContent = 4, kFloats = 5, kDoubles = 6, kInts = 7, kStrings = 8,
              kInt64s = 10, kHalves = 13;
}
constexpr int kSummaryValue = 1;
constexpr std::uint64_t kDataClassScalar = 1;
/// In the content of the plug-in `scalars`, which has no such field: all bits of a value. TensorBoard's
/// reader in Rust takes no tensors of doubles.
constexpr int kExactField = 15;

/// A message ends in the middle of a field, or has what is none.
struct Unreadable {};

/// Fields of a message of Protobuf, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_{message} {}

  /// Goes to the next one; false at the end. Throws: Unreadable.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    number_ = static_cast<int>(std::min<std::uint64_t>(key >> 3, std::numeric_limits<int>::max()));
    wire_ = static_cast<Wire>(key & 7);
    whole_ = 0;
    bytes_ = {};
    switch (wire_) {
      case kVarint:
        whole_ = varint();
        return true;
      case kFixed64:
        return take(8);
      case kBytes:
        return take(varint());
      case kFixed32:
        return take(4);
    }
    throw Unreadable{};
  }
  int number() const { return number_; }
  Wire wire() const { return wire_; }
  std::uint64_t whole() const { return whole_; }
  std::string_view bytes() const { return bytes_; }  ///< of numbers of fixed width too
  /// Whether it is this one, as it is to be.
  bool is(int number, Wire wire) const { return number_ == number && wire_ == wire; }

 private:
  bool take(std::uint64_t length) {
    if (length > rest_.size()) throw Unreadable{};
    bytes_ = rest_.substr(0, static_cast<std::size_t>(length));
    rest_.remove_prefix(bytes_.size());
    return true;
  }
  std::uint64_t varint() {
    const auto value = take_varint(rest_);
    if (!value) throw Unreadable{};
    return *value;
  }

  std::string_view rest_, bytes_;
  int number_ = 0;
  Wire wire_ = kVarint;
  std::uint64_t whole_ = 0;
};

/// The double whose decimal digits the float has.
double as_written(float value) {
  if (!std::isfinite(value)) return value;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double number = value;
  std::from_chars(text.data(), end, number);
  return number;
}

/// IEEE 754 half, and bfloat16: the upper half of a float.
double half_value(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 0x1f), fraction = static_cast<int>(bits & 0x3ff);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

enum DataType : std::uint64_t {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kString = 7,
  kInt64 = 9,
  kBfloat16 = 14,
  kHalf = 19
};

std::optional<double> content_value(std::uint64_t type, std::string_view content) {
  if (type == kFloat && content.size() == 4) return as_written(little_endian<float>(content));
  if (type == kDouble && content.size() == 8) return little_endian<double>(content);
  if (type == kInt32 && content.size() == 4) return little_endian<std::int32_t>(content);
  if (type == kInt64 && content.size() == 8) return static_cast<double>(little_endian<std::int64_t>(content));
  if ((type == kHalf || type == kBfloat16) && content.size() == 2) {
    const std::uint32_t bits = static_cast<unsigned char>(content[0]) |
                               static_cast<std::uint32_t>(static_cast<unsigned char>(content[1])) << 8;
    return type == kHalf ? half_value(bits) : as_written(std::bit_cast<float>(bits << 16));
  }
  return std::nullopt;
}

struct Tensor {
  std::optional<double> scalar;
  std::string text;
};

/// Of one element.
Tensor read_tensor(std::string_view message) {
  std::uint64_t type = 0;
  std::string_view content;
  Tensor tensor;
  int values = 0;
  for (Fields fields{message}; fields.next();) {
    const std::string_view bytes = fields.bytes();
    const auto set = [&](std::optional<double> one) {
      ++values;
      tensor.scalar = one;
    };
    switch (fields.number()) {
      case tensor_field::kType:
        type = fields.whole();
        break;
      case tensor_field::kContent:
        content = bytes;
        break;
      case tensor_field::kFloats:  // packed, or one
        set(bytes.size() == 4 ? std::optional{as_written(little_endian<float>(bytes))} : std::nullopt);
        break;
      case tensor_field::kDoubles:
        set(bytes.size() == 8 ? std::optional{little_endian<double>(bytes)} : std::nullopt);
        break;
      case tensor_field::kStrings:
        ++values;
        tensor.text = bytes;
        break;
      case tensor_field::kInts:  // also of smaller types
      case tensor_field::kInt64s:
      case tensor_field::kHalves: {  // and bfloat16
        std::uint64_t whole = fields.whole();
        if (std::string_view packed = bytes; !packed.empty()) {
          const auto first = take_varint(packed);
          if (!first || !packed.empty()) {
            set(std::nullopt);
            break;
          }
          whole = *first;
        }
        if (fields.number() != tensor_field::kHalves)
          set(static_cast<double>(static_cast<std::int64_t>(whole)));
        else
          set(type == kHalf ? half_value(static_cast<std::uint32_t>(whole))
                            : as_written(std::bit_cast<float>(static_cast<std::uint32_t>(whole) << 16)));
        break;
      }
      default:
        break;
    }
  }
  if (!content.empty())
    tensor.scalar = content_value(type, content);
  else if (values != 1)
    tensor.scalar.reset();
  return tensor;
}

/// What `scalar_record` has put there; nothing of another's, whatever that is.
std::optional<double> exact_value(std::string_view content) {
  constexpr std::size_t kSize = 1 + sizeof(double);
  if (content.size() != kSize || content.front() != static_cast<char>(kExactField << 3 | kFixed64))
    return std::nullopt;
  return little_endian<double>(content.substr(1));
}

/// Its plug-in's name and what is that one's alone.
std::pair<std::string, std::string_view> read_plugin(std::string_view metadata) {
  std::pair<std::string, std::string_view> plugin;
  for (Fields fields{metadata}; fields.next();) {
    if (!fields.is(metadata_field::kPlugin, kBytes)) continue;
    for (Fields of{fields.bytes()}; of.next();) {
      if (of.is(plugin_field::kName, kBytes)) plugin.first = of.bytes();
      if (of.is(plugin_field::kContent, kBytes)) plugin.second = of.bytes();
    }
  }
  return plugin;
}

EventValue read_value(std::string_view message, EventValue value) {
  Tensor tensor;
  std::string_view content;
  for (Fields fields{message}; fields.next();) {
    if (fields.is(value_field::kTag, kBytes)) value.tag = fields.bytes();
    if (fields.is(value_field::kSimpleValue, kFixed32))
      value.scalar = as_written(little_endian<float>(fields.bytes()));
    if (fields.is(value_field::kTensor, kBytes)) tensor = read_tensor(fields.bytes());
    if (fields.is(value_field::kMetadata, kBytes))
      std::tie(value.plugin, content) = read_plugin(fields.bytes());
  }
  const bool may_be_scalar = value.plugin.empty() || value.plugin == "scalars";
  if (!value.scalar && may_be_scalar) value.scalar = tensor.scalar;
  if (value.plugin == "scalars")
    if (const auto exact = exact_value(content)) value.scalar = exact;
  value.text = std::move(tensor.text);
  return value;
}

/// Throws: Unreadable.
std::vector<EventValue> read_event(std::string_view message) {
  EventValue when;
  for (Fields fields{message}; fields.next();) {  // what says when stands before the values, or behind
    if (fields.is(event_field::kWallTime, kFixed64)) when.wall_time = little_endian<double>(fields.bytes());
    if (fields.is(event_field::kStep, kVarint)) when.step = static_cast<std::int64_t>(fields.whole());
  }
  std::vector<EventValue> values;
  for (Fields fields{message}; fields.next();) {
    if (!fields.is(event_field::kSummary, kBytes)) continue;
    for (Fields summary{fields.bytes()}; summary.next();)
      if (summary.is(kSummaryValue, kBytes)) values.push_back(read_value(summary.bytes(), when));
  }
  return values;
}

template <class Number>
void put(std::string& bytes, Number number) {
  using Bits = std::conditional_t<sizeof(Number) == 8, std::uint64_t, std::uint32_t>;
  const auto bits = std::bit_cast<Bits>(number);
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xff);
}
void put_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  bytes += static_cast<char>(value);
}
void put_key(std::string& bytes, int field, Wire wire) {
  put_varint(bytes, static_cast<std::uint64_t>(field) << 3 | wire);
}
void put_bytes(std::string& bytes, int field, std::string_view value) {
  put_key(bytes, field, kBytes);
  put_varint(bytes, value.size());
  bytes += value;
}
void put_whole(std::string& bytes, int field, std::uint64_t value) {
  put_key(bytes, field, kVarint);
  put_varint(bytes, value);
}
void put_double(std::string& bytes, int field, double value) {
  put_key(bytes, field, kFixed64);
  put(bytes, value);
}

std::string framed(const std::string& event) {
  std::string record;
  put(record, std::uint64_t{event.size()});
  put(record, masked_crc32c(record));
  record += event;
  put(record, masked_crc32c(event));
  return record;
}

std::string metadata(std::string_view name, std::string_view content, std::uint64_t data_class) {
  std::string plugin, of;
  put_bytes(plugin, plugin_field::kName, name);
  if (!content.empty()) put_bytes(plugin, plugin_field::kContent, content);
  put_bytes(of, metadata_field::kPlugin, plugin);
  if (data_class != 0) put_whole(of, metadata_field::kDataClass, data_class);
  return of;
}

std::string event_with(const std::string& value, std::int64_t step, double wall_time) {
  std::string summary, event;
  put_bytes(summary, kSummaryValue, value);
  put_double(event, event_field::kWallTime, wall_time);
  put_whole(event, event_field::kStep, static_cast<std::uint64_t>(step));
  put_bytes(event, event_field::kSummary, summary);
  return framed(event);
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t sum = 0xffffffffU;
  for (const char c : bytes) sum = kTable[(sum ^ static_cast<unsigned char>(c)) & 0xff] ^ (sum >> 8);
  sum ^= 0xffffffffU;
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8U;
}

std::string first_record(double wall_time) {
  std::string event;
  put_double(event, event_field::kWallTime, wall_time);
  put_bytes(event, event_field::kFileVersion, "brain.Event:2");
  return framed(event);
}

std::string scalar_record(const std::string& tag, std::int64_t step, double value, double wall_time) {
  std::string exact, of;
  put_double(exact, kExactField, value);
  put_bytes(of, value_field::kTag, tag);
  put_key(of, value_field::kSimpleValue, kFixed32);
  put(of, static_cast<float>(value));
  put_bytes(of, value_field::kMetadata, metadata("scalars", exact, kDataClassScalar));
  return event_with(of, step, wall_time);
}

std::string text_record(const std::string& tag, const std::string& plugin, const std::string& text,
                        double wall_time) {
  std::string tensor, of;
  put_whole(tensor, tensor_field::kType, kString);
  put_bytes(tensor, tensor_field::kShape, "");
  put_bytes(tensor, tensor_field::kStrings, text);
  put_bytes(of, value_field::kTag, tag);
  put_bytes(of, value_field::kTensor, tensor);
  put_bytes(of, value_field::kMetadata, metadata(plugin, "", 0));
  return event_with(of, 0, wall_time);
}

std::uint64_t EventFileReader::waiting() const {
  if (!problem_.empty()) return 0;
  return skip_ > 0 ? skipped_ : rest_.size();
}

void EventFileReader::read(std::string_view bytes, const Taker& taker) {
  if (!problem_.empty()) return;
  const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, bytes.size()));
  bytes.remove_prefix(skipped);
  skip_ -= skipped;
  skipped_ += skipped;
  if (skip_ == 0) offset_ += std::exchange(skipped_, 0);
  rest_ += bytes;
  std::string_view text = rest_;
  const auto damaged = [&](const char* what) {
    problem_ = fmt::format("the {} of the record at byte {} is damaged", what, offset_);
    rest_.clear();
  };
  while (text.size() >= kHead) {
    const auto length = little_endian<std::uint64_t>(text);
    if (masked_crc32c(text.substr(0, 8)) != little_endian<std::uint32_t>(text.substr(8)))
      return damaged("length");
    if (length > kLargestRecord) {
      // whoever wrote such a length with its checksum has such a record, or means no good
      if (length > (std::uint64_t{1} << 40)) return damaged("length");
      const std::uint64_t whole = length + kHead + kChecksum;
      const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(whole, text.size()));
      text.remove_prefix(here);
      skip_ = whole - here;
      if (skip_ > 0)
        skipped_ = here;
      else
        offset_ += whole;
      continue;
    }
    const std::size_t whole = kHead + static_cast<std::size_t>(length) + kChecksum;
    if (text.size() < whole) break;
    const std::string_view data = text.substr(kHead, static_cast<std::size_t>(length));
    if (masked_crc32c(data) != little_endian<std::uint32_t>(text.substr(whole - kChecksum)))
      return damaged("content");
    std::vector<EventValue> values;
    try {
      values = read_event(data);
    } catch (const Unreadable&) {
      return damaged("event");
    }
    for (const EventValue& value : values) taker(value);
    text.remove_prefix(whole);
    offset_ += whole;
  }
  rest_.erase(0, rest_.size() - text.size());
}

}  // namespace abl::protocol
