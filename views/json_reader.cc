// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "views/json.h"

namespace abl::views {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Timestamp;
using nlohmann::json;

constexpr std::size_t kLongest = 60;

/// The beginning of a name or value, which a client may have sent at any length.
std::string shortened(std::string_view text) {
  return printable_line(text.substr(0, kLongest)) + (text.size() > kLongest ? "…" : "");
}

class JsonReader {
 public:
  void fill(Message& message, const json& from) {
    if (!from.is_object()) refuse(from, "an object");
    const auto* descriptor = message.GetDescriptor();
    for (const auto& [name, value] : from.items()) {
      const FieldDescriptor* field = descriptor->FindFieldByName(name);
      if (!field) refuse_name(*descriptor, name);
      if (value.is_null()) continue;
      path_.push_back(name);
      if (field->is_map())
        refuse(value, "no value");  // no request has a map
      else if (field->is_repeated())
        read_list(message, field, value);
      else
        read(message, field, value);
      path_.pop_back();
    }
  }

 private:
  void read_list(Message& message, const FieldDescriptor* field, const json& values) {
    if (!values.is_array()) refuse(values, "a list");
    for (std::size_t i = 0; i < values.size(); ++i) {
      path_.push_back(fmt::format("{}", i));
      read(message, field, values[i]);
      path_.pop_back();
    }
  }

  void read(Message& message, const FieldDescriptor* field, const json& value) {
    const Reflection& to = *message.GetReflection();
    const auto put = [&](auto set, auto add, auto what) {
      if (field->is_repeated())
        (to.*add)(&message, field, std::move(what));
      else
        (to.*set)(&message, field, std::move(what));
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return put(&Reflection::SetInt32, &Reflection::AddInt32, whole<std::int32_t>(value));
      case FieldDescriptor::CPPTYPE_UINT32:
        return put(&Reflection::SetUInt32, &Reflection::AddUInt32, whole<std::uint32_t>(value));
      case FieldDescriptor::CPPTYPE_INT64:
        return put(&Reflection::SetInt64, &Reflection::AddInt64, whole<std::int64_t>(value));
      case FieldDescriptor::CPPTYPE_UINT64:
        return put(&Reflection::SetUInt64, &Reflection::AddUInt64, whole<std::uint64_t>(value));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&Reflection::SetDouble, &Reflection::AddDouble, real(value));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return put(&Reflection::SetFloat, &Reflection::AddFloat, static_cast<float>(real(value)));
      case FieldDescriptor::CPPTYPE_BOOL:
        if (!value.is_boolean()) refuse(value, "true or false");
        return put(&Reflection::SetBool, &Reflection::AddBool, value.get<bool>());
      case FieldDescriptor::CPPTYPE_ENUM:
        return put(&Reflection::SetEnumValue, &Reflection::AddEnumValue, choice(field, value));
      case FieldDescriptor::CPPTYPE_STRING:
        if (!value.is_string()) refuse(value, "a string");
        if (field->type() == FieldDescriptor::TYPE_BYTES) refuse(value, "no value");
        return put(&Reflection::SetString, &Reflection::AddString, value.get<std::string>());
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        Message& part =
            field->is_repeated() ? *to.AddMessage(&message, field) : *to.MutableMessage(&message, field);
        if (part.GetDescriptor() != Timestamp::descriptor()) return fill(part, value);
        if (!value.is_string() || !google::protobuf::util::TimeUtil::FromString(
                                      value.get<std::string>(), &dynamic_cast<Timestamp&>(part)))
          refuse(value, "a time such as 2026-01-31T12:00:00Z");
        return;
      }
    }
  }

  /// A number, or its text: JavaScript's numbers have 53 bits.
  template <class Whole>
  Whole whole(const json& value) {
    const std::string expected = fmt::format(
        "a whole number from {} to {}", std::numeric_limits<Whole>::min(), std::numeric_limits<Whole>::max());
    const std::string text = value.is_string()           ? value.get<std::string>()
                             : value.is_number_integer() ? value.dump()
                                                         : std::string{};
    Whole number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) refuse(value, expected);
    return number;
  }

  double real(const json& value) {
    if (value.is_number()) return value.get<double>();
    if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (value == "Infinity") return std::numeric_limits<double>::infinity();
    if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
    refuse(value, "a number");
  }

  int choice(const FieldDescriptor* field, const json& value) {
    const auto* type = field->enum_type();
    if (value.is_string())
      if (const auto* known = type->FindValueByName(value.get<std::string>())) return known->number();
    std::vector<std::string> names;
    for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
    refuse(value, any_of(names));
  }

  /// "budget.until: "
  std::string place() const {
    std::string text;
    for (const std::string& part : path_) text += (text.empty() ? "" : ".") + shortened(part);
    return text.empty() ? text : text + ": ";
  }

  [[noreturn]] void refuse(const json& value, const std::string& expected) const {
    const std::string said = value.is_object() ? "an object"
                             : value.is_array()
                                 ? "a list"
                                 : shortened(value.dump(-1, ' ', false, json::error_handler_t::replace));
    throw Error{Code::kInvalidArgument, fmt::format("{}expected {}, not {}", place(), expected, said)};
  }

  [[noreturn]] void refuse_name(const google::protobuf::Descriptor& message, const std::string& name) const {
    std::vector<std::string> known;
    for (int i = 0; i < message.field_count(); ++i) known.push_back(message.field(i)->name());
    throw Error{Code::kInvalidArgument,
                fmt::format("{}unknown field '{}' of {}{}", place(), shortened(name), message.name(),
                            name.size() > kLongest ? "" : did_you_mean(name, known))};
  }

  std::vector<std::string> path_;
};

/// Throws: Error{kInvalidArgument}, also for an object with the same name twice: one of them would be
/// ignored.
json parse(std::string_view text) {
  std::vector<std::set<std::string, std::less<>>> names;
  std::string twice;
  const auto look = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  try {
    json parsed = json::parse(text, look);
    if (!twice.empty())
      throw Error{Code::kInvalidArgument, fmt::format("field '{}' is given twice", shortened(twice))};
    return parsed;
  } catch (const json::parse_error& error) {
    throw Error{Code::kInvalidArgument, fmt::format("invalid JSON at byte {}", error.byte)};
  } catch (const json::out_of_range&) {
    throw Error{Code::kInvalidArgument, "the JSON has a number that is out of range"};
  }
}

}  // namespace

void from_json(std::string_view text, Message& message) {
  if (is_nested_too_deep(text))
    throw Error{Code::kInvalidArgument,
                fmt::format("the JSON is nested more than {} levels deep", kDeepestJson)};
  JsonReader{}.fill(message, parse(text));
}

}  // namespace abl::views
