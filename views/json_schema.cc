// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ablate/v1/contract.h"
#include "base/error.h"
#include "views/json.h"

namespace abl::views {
namespace {

namespace pb = google::protobuf;
using Json = nlohmann::ordered_json;
using Type = pb::FieldDescriptor::CppType;

constexpr const char* kReal = "Real";  // no message's name

/// The contract's files with their comments, which protoc's generated code lacks.
const pb::DescriptorPool& commented() {
  struct Pool {
    Pool() {
      pb::FileDescriptorSet files;
      const std::string_view bytes = ablate::v1::contract();
      if (!files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        throw Error{Code::kInternal, "cannot read the descriptors of the contract"};
      for (const pb::FileDescriptorProto& file : files.file()) pool.BuildFile(file);
    }
    pb::DescriptorPool pool;
  };
  static const Pool kPool;
  return kPool.pool;
}

/// The comment of the .proto above, or at the end of the line of, a message, field or value.
template <class Of>
std::string comment(const Of& of) {
  pb::SourceLocation location;
  if (!of.GetSourceLocation(&location)) return "";
  std::istringstream lines{location.leading_comments + location.trailing_comments};
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (!line.empty()) text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

template <class Of>
std::string name_of(const Of& type) {
  return (type.containing_type() ? name_of(*type.containing_type()) : "") + type.name();
}

Json reference(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

template <class Whole>
Json whole() {
  return {{"type", "integer"},
          {"minimum", std::numeric_limits<Whole>::min()},
          {"maximum", std::numeric_limits<Whole>::max()}};
}

/// To Protobuf any message within another can be absent; in ours `optional` says which.
bool can_be_absent(const pb::FieldDescriptor& field) {
  const bool is_part = field.cpp_type() == Type::CPPTYPE_MESSAGE && !field.containing_oneof();
  return field.has_presence() && !is_part;
}

class Schemas {
 public:
  void add(const pb::Descriptor& message) {
    const std::string name = name_of(message);
    if (!known_.emplace(name, Json{}).second) return;  // one that holds itself
    Json schema{{"type", "object"}};
    if (const std::string about = comment(message); !about.empty()) schema["description"] = about;
    Json required = Json::array();
    schema["properties"] = Json::object();
    for (int i = 0; i < message.field_count(); ++i) {
      const pb::FieldDescriptor& field = *message.field(i);
      schema["properties"][field.name()] = member(field);
      if (!can_be_absent(field)) required.push_back(field.name());
    }
    if (!required.empty()) schema["required"] = std::move(required);
    known_[name] = std::move(schema);
  }

  /// By name.
  Json take() {
    known_[kReal] = {
        {"description", "A number; NaN and infinities are strings"},
        {"anyOf", {{{"type", "number"}}, {{"type", "string"}, {"enum", {"NaN", "Infinity", "-Infinity"}}}}}};
    Json all = Json::object();
    for (auto& [name, schema] : known_) all[name] = std::move(schema);
    return all;
  }

 private:
  Json member(const pb::FieldDescriptor& field) {
    Json schema;
    if (field.is_map())
      schema = {{"type", "object"}, {"additionalProperties", value(*field.message_type()->map_value())}};
    else if (field.is_repeated())
      schema = {{"type", "array"}, {"items", value(field)}};
    else
      schema = value(field);
    if (const std::string about = comment(field); !about.empty()) schema["description"] = about;
    return schema;
  }

  /// Of one value: of a list's element too.
  Json value(const pb::FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case Type::CPPTYPE_INT32:
        return whole<std::int32_t>();
      case Type::CPPTYPE_UINT32:
        return whole<std::uint32_t>();
      case Type::CPPTYPE_INT64:
        return {{"type", "string"}, {"format", "int64"}, {"pattern", "^-?[0-9]+$"}};
      case Type::CPPTYPE_UINT64:
        return {{"type", "string"}, {"format", "uint64"}, {"pattern", "^[0-9]+$"}};
      case Type::CPPTYPE_FLOAT:
      case Type::CPPTYPE_DOUBLE:
        return reference(kReal);
      case Type::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case Type::CPPTYPE_STRING:
        if (field.type() == pb::FieldDescriptor::TYPE_BYTES)
          return {{"type", "string"}, {"contentEncoding", "base64"}};
        return {{"type", "string"}};
      case Type::CPPTYPE_ENUM:
        add(*field.enum_type());
        return reference(name_of(*field.enum_type()));
      case Type::CPPTYPE_MESSAGE:
        if (field.message_type()->full_name() == pb::Timestamp::descriptor()->full_name())
          return {{"type", "string"}, {"format", "date-time"}};
        add(*field.message_type());
        return reference(name_of(*field.message_type()));
    }
    return Json::object();
  }

  void add(const pb::EnumDescriptor& type) {
    std::string about = comment(type);
    Json names = Json::array();
    for (int i = 0; i < type.value_count(); ++i) {
      names.push_back(type.value(i)->name());
      if (const std::string of_value = comment(*type.value(i)); !of_value.empty())
        about += (about.empty() ? "- `" : "\n- `") + type.value(i)->name() + "`: " + of_value;
    }
    Json& schema = known_[name_of(type)] = {{"type", "string"}, {"enum", std::move(names)}};
    if (!about.empty()) schema["description"] = about;
  }

  std::map<std::string, Json> known_;
};

}  // namespace

Json json_schemas(std::span<const pb::Descriptor* const> messages) {
  Schemas schemas;
  for (const pb::Descriptor* message : messages)
    schemas.add(*commented().FindMessageTypeByName(message->full_name()));
  return schemas.take();
}

}  // namespace abl::views
