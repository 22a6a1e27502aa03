// SPDX-License-Identifier: Apache-2.0
#include "views/json.h"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/time_util.h>
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/utf8.h"

namespace abl::views {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Timestamp;

constexpr std::size_t kPieceBytes = 64 << 10;

/// The character that a text begins with, and its length in bytes.
struct Character {
  char32_t code = 0;
  std::size_t length = 1;
  bool valid = true;  ///< otherwise a byte that is no part of UTF-8
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) -> char32_t { return static_cast<unsigned char>(text[i]); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  switch (utf8_length(text)) {
    case 2:
      return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
    case 3:
      return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
    case 4:
      return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
    default:
      return {0xFFFD, 1, false};
  }
}

/// What JSON, HTML and JavaScript may read as something else, and what shows nothing of itself.
bool is_escaped(char32_t code) {
  if (code < 0x7F) return code < 0x20 || code == '"' || code == '\\' || code == '<' || code == '>';
  constexpr std::pair<char32_t, char32_t> kEscaped[] = {
      {0x7F, 0x9F},     {0xAD, 0xAD},     {0x600, 0x603},     {0x6DD, 0x6DD},     {0x70F, 0x70F},
      {0x17B4, 0x17B5}, {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x2064},   {0x206A, 0x206F},
      {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0x1D173, 0x1D17A}, {0xE0001, 0xE0001}, {0xE0020, 0xE007F}};
  return std::ranges::any_of(
      kEscaped, [code](const auto& range) { return range.first <= code && code <= range.second; });
}

/// "\n", or "\u003c"; above U+FFFF two of these.
std::string escaped(char32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const auto unit = [](char32_t value) {
    return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(value));
  };
  if (code <= 0xFFFF) return unit(code);
  return unit(0xD800 + ((code - 0x10000) >> 10)) + unit(0xDC00 + ((code - 0x10000) & 0x3FF));
}

class JsonWriter {
 public:
  JsonWriter(bool pretty, const std::function<void(std::string_view)>& sink) : pretty_{pretty}, sink_{sink} {}

  void write(const Message& message) {
    value(message);
    if (pretty_) newline();
    sink_(text_);
  }

 private:
  /// Of a field that has several values, the one of this index; otherwise its only one.
  static constexpr int kOnly = -1;

  void value(const Message& message) {
    if (message.GetDescriptor() == Timestamp::descriptor())
      return string(google::protobuf::util::TimeUtil::ToString(dynamic_cast<const Timestamp&>(message)));
    begin('{');
    std::vector<const FieldDescriptor*> last;
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message.GetDescriptor()->field(i);
      if (field->has_presence() && !message.GetReflection()->HasField(message, field)) continue;
      if (is_last(field))
        last.push_back(field);
      else
        member(message, field);
    }
    std::ranges::sort(last, {}, &FieldDescriptor::number);
    for (const FieldDescriptor* field : last) member(message, field);
    end('}');
  }

  /// Times, and what is no message and may be absent: Protobuf writes these last, by their numbers.
  static bool is_last(const FieldDescriptor* field) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      return !field->is_repeated() && field->message_type() == Timestamp::descriptor();
    return field->has_presence();
  }

  void member(const Message& message, const FieldDescriptor* field) {
    name(field->name());
    if (field->is_map())
      map(message, field);
    else if (field->is_repeated())
      list(message, field);
    else
      value(message, field, kOnly);
  }

  void list(const Message& message, const FieldDescriptor* field) {
    begin('[');
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
      next();
      value(message, field, i);
    }
    end(']');
  }

  void map(const Message& message, const FieldDescriptor* field) {
    const FieldDescriptor *key = field->message_type()->map_key(),
                          *mapped = field->message_type()->map_value();
    std::vector<std::pair<std::string, const Message*>> entries;
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, field, i);
      entries.emplace_back(key_text(entry, key), &entry);
    }
    std::ranges::sort(entries);
    begin('{');
    for (const auto& [text, entry] : entries) {
      name(text);
      value(*entry, mapped, kOnly);
    }
    end('}');
  }

  /// Keys of ours are texts or uint32.
  static std::string key_text(const Message& entry, const FieldDescriptor* key) {
    const Reflection& reflection = *entry.GetReflection();
    if (key->cpp_type() == FieldDescriptor::CPPTYPE_STRING) return reflection.GetString(entry, key);
    return fmt::format("{}", reflection.GetUInt32(entry, key));
  }

  void value(const Message& message, const FieldDescriptor* field, int index) {
    const Reflection& reflection = *message.GetReflection();
    const auto get = [&](auto only, auto one) {
      return index == kOnly ? (reflection.*only)(message, field) : (reflection.*one)(message, field, index);
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return number(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
      case FieldDescriptor::CPPTYPE_UINT32:
        return number(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
      case FieldDescriptor::CPPTYPE_INT64:  // JavaScript's numbers have 53 bits
        return string(fmt::format("{}", get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return string(fmt::format("{}", get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return real(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return real(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat));
      case FieldDescriptor::CPPTYPE_BOOL:
        return put(get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false");
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int choice = get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue);
        const auto* known = field->enum_type()->FindValueByNumber(choice);
        return known ? string(known->name()) : number(choice);
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string scratch;
        const std::string& text =
            index == kOnly ? reflection.GetStringReference(message, field, &scratch)
                           : reflection.GetRepeatedStringReference(message, field, index, &scratch);
        return field->type() == FieldDescriptor::TYPE_BYTES ? bytes(text) : string(text);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return value(index == kOnly ? reflection.GetMessage(message, field)
                                    : reflection.GetRepeatedMessage(message, field, index));
    }
  }

  template <class Whole>
  void number(Whole value) {
    put(fmt::to_string(value));
  }
  template <class Real>
  void real(Real value) {
    if (std::isnan(value)) return string("NaN");
    if (std::isinf(value)) return string(value > 0 ? "Infinity" : "-Infinity");
    // the fewest digits that give the number back: a third of the time of trying how many are enough
    std::array<char, 32> text;
    put({text.data(),
         static_cast<std::size_t>(fmt::format_to(text.data(), FMT_COMPILE("{}"), value) - text.data())});
  }
  /// In base 64.
  void bytes(const std::string& value) {
    google::protobuf::BytesValue message;
    message.set_value(value);
    std::string text;
    google::protobuf::util::MessageToJsonString(message, &text);
    put(text);
  }
  void string(std::string_view value) {
    text_ += '"';
    std::size_t written = 0;
    for (std::size_t at = 0; at < value.size();) {
      const Character next = first_character(value.substr(at));
      if (!next.valid || is_escaped(next.code)) {
        put(value.substr(written, at - written));
        put(next.valid ? escaped(next.code) : "\uFFFD");
        written = at + next.length;
      }
      at += next.length;
    }
    put(value.substr(written));
    text_ += '"';
  }

  void begin(char bracket) {
    text_ += bracket;
    ++depth_;
    empty_ = true;
  }
  /// Before a value of a list.
  void next() {
    if (!empty_) text_ += ',';
    empty_ = false;
    newline();
  }
  /// Before a value of an object.
  void name(std::string_view text) {
    next();
    string(text);
    put(pretty_ ? ": " : ":");
  }
  void end(char bracket) {
    --depth_;
    if (!empty_) newline();
    text_ += bracket;
    empty_ = false;
  }
  void newline() {
    if (!pretty_) return;
    text_ += '\n';
    text_.append(depth_, ' ');
  }
  void put(std::string_view text) {
    text_ += text;
    if (text_.size() < kPieceBytes) return;
    sink_(text_);
    text_.clear();
  }

  const bool pretty_;
  const std::function<void(std::string_view)>& sink_;
  std::string text_;  // not given to the sink yet
  std::size_t depth_ = 0;
  bool empty_ = true;  // the list or object that was begun last
};

}  // namespace

void write_json(const Message& message, bool pretty, const std::function<void(std::string_view)>& sink) {
  JsonWriter{pretty, sink}.write(message);
}

std::string to_json(const Message& message, bool pretty) {
  std::string text;
  write_json(message, pretty, [&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace abl::views
