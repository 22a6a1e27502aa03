// SPDX-License-Identifier: Apache-2.0
#include "protocol/event_file.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "tests/protocol/event_records.h"

namespace abl::protocol {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Scalar = std::tuple<std::int64_t, std::string, double>;

/// Read in pieces of so many bytes.
std::vector<Scalar> scalars(EventFileReader& reader, std::string_view bytes, std::size_t piece = 1 << 20) {
  std::vector<Scalar> found;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    reader.read(bytes.substr(0, piece), [&](const EventValue& value) {
      if (value.scalar) found.emplace_back(value.step, value.tag, *value.scalar);
    });
  return found;
}

TEST(EventFile, ChecksumsAreThoseOfCrc32cMasked) {
  // RFC 3720, B.4: of 32 bytes of zeros 0x8a9136aa, of "123456789" 0xe3069283
  const auto masked = [](std::uint32_t sum) { return ((sum >> 15) | (sum << 17)) + 0xa282ead8U; };
  EXPECT_EQ(masked_crc32c(std::string(32, '\0')), masked(0x8a9136aaU));
  EXPECT_EQ(masked_crc32c("123456789"), masked(0xe3069283U));
}

TEST(EventFile, ScalarsAreReadHoweverTheFileIsCut) {
  const std::string file = first_record() + scalar_record(1, "acc", 0.1F) + scalar_record(300, "loss", 2.5F);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, file.size()}) {
    EventFileReader reader;
    EXPECT_THAT(scalars(reader, file, piece),
                ElementsAre(FieldsAre(1, "acc", 0.1), FieldsAre(300, "loss", 2.5)))
        << "a float is the number that was written: 0.1, not 0.10000000149";
    EXPECT_EQ(reader.problem(), "");
    EXPECT_EQ(reader.waiting(), 0U);
  }
}

TEST(EventFile, NumbersThatAreNotFiniteAreNumbers) {
  EventFileReader reader;
  const auto found = scalars(reader, scalar_record(1, "a", NAN) + scalar_record(2, "a", -INFINITY));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(std::isnan(std::get<2>(found[0])));
  EXPECT_EQ(std::get<2>(found[1]), -INFINITY);
}

TEST(EventFile, TensorsOfOneRealNumberAreScalars) {
  const auto tensor = [](int type, const std::string& value) {
    return field(8, varint(1 << 3) + varint(static_cast<std::uint64_t>(type)) + value);
  };
  const std::string content = little_endian_bytes(std::bit_cast<std::uint64_t>(0.3), 8);
  const std::string file =
      event_record(1, "float_val", tensor(1, float_field(5, 0.2F))) +
      event_record(2, "packed",
                   tensor(1, field(5, little_endian_bytes(std::bit_cast<std::uint32_t>(0.7F), 4)))) +
      event_record(3, "content", tensor(2, field(4, content))) +
      event_record(4, "int64", tensor(9, varint(10 << 3) + varint(static_cast<std::uint64_t>(-5)))) +
      event_record(5, "half", tensor(19, varint(13 << 3) + varint(0x3c00))) +
      event_record(6, "text", tensor(7, field(8, "words"))) +
      event_record(7, "two", tensor(2, field(4, content + content))) +
      event_record(8, "image", field(4, "png"));
  EventFileReader reader;
  EXPECT_THAT(scalars(reader, file), ElementsAre(FieldsAre(1, "float_val", 0.2), FieldsAre(2, "packed", 0.7),
                                                 FieldsAre(3, "content", 0.3), FieldsAre(4, "int64", -5.0),
                                                 FieldsAre(5, "half", 1.0)));
}

TEST(EventFile, BehindADamagedRecordNothingIsRead) {
  std::string file = scalar_record(1, "acc", 0.5F);
  const std::size_t first = file.size();
  file += scalar_record(2, "acc", 0.6F) + scalar_record(3, "acc", 0.7F);
  std::string content = file;
  content[first + 14] ^= 4;
  EventFileReader reader;
  EXPECT_THAT(scalars(reader, content), ElementsAre(FieldsAre(1, "acc", 0.5)));
  EXPECT_EQ(reader.problem(), "the content of the record at byte " + std::to_string(first) + " is damaged");
  EXPECT_EQ(reader.offset(), first);
  EXPECT_THAT(scalars(reader, scalar_record(4, "acc", 0.8F)), IsEmpty());
  std::string length = file;
  length[first] ^= 4;
  EventFileReader other;
  EXPECT_THAT(scalars(other, length), ElementsAre(FieldsAre(1, "acc", 0.5)));
  EXPECT_THAT(other.problem(), HasSubstr("the length of the record at byte"));
}

TEST(EventFile, AnEventThatIsNoMessageIsDamage) {
  EventFileReader reader;
  EXPECT_THAT(scalars(reader, first_record() + record("\x0a\x7f") + scalar_record(1, "a", 1.0F)), IsEmpty());
  EXPECT_THAT(reader.problem(), HasSubstr("the event of the record at byte"));
}

TEST(EventFile, WhatIsWrittenHereIsReadToTheLastBitAndTextsSayWhoseTheyAre) {
  EventFileReader reader;
  std::vector<EventValue> values;
  reader.read(first_record(5) + scalar_record("acc", 7, 1.0 / 3, 1.25) + scalar_record("nan", 8, NAN, 1) +
                  text_record("run", "ablate", "{}", 2),
              [&](const EventValue& value) { values.push_back(value); });
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(values[0].scalar, 1.0 / 3);
  EXPECT_EQ(values[0].step, 7);
  EXPECT_EQ(values[0].wall_time, 1.25);
  EXPECT_TRUE(std::isnan(*values[1].scalar));
  EXPECT_EQ(values[2].plugin, "ablate");
  EXPECT_EQ(values[2].text, "{}");
  EXPECT_FALSE(values[2].scalar);
  EXPECT_EQ(reader.problem(), "");
}

TEST(EventFile, ARecordThatIsCutOffWaits) {
  const std::string whole = scalar_record(1, "acc", 0.5F);
  EventFileReader reader;
  EXPECT_THAT(scalars(reader, whole.substr(0, 20)), IsEmpty());
  EXPECT_EQ(reader.waiting(), 20U);
  EXPECT_THAT(scalars(reader, whole.substr(20)), ElementsAre(FieldsAre(1, "acc", 0.5)));
}

TEST(EventFile, ALargeRecordIsPassedOver) {
  const std::string file = record(std::string(17 << 20, 'x')) + scalar_record(2, "acc", 0.5F);
  EventFileReader reader;
  EXPECT_THAT(scalars(reader, file.substr(0, 2 << 20), 1 << 20), IsEmpty());
  EXPECT_EQ(reader.waiting(), 2U << 20);
  EXPECT_THAT(scalars(reader, file.substr(2 << 20), 1 << 20), ElementsAre(FieldsAre(2, "acc", 0.5)));
  EXPECT_EQ(reader.offset(), file.size());
  EXPECT_EQ(reader.problem(), "");
}

}  // namespace
}  // namespace abl::protocol
