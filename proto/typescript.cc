// SPDX-License-Identifier: Apache-2.0
// proto_typescript DESCRIPTORS: the messages of ablate.v1 as TypeScript, in the JSON form in which
// views::to_json writes them: names as in the .proto, enumerations by name, 64-bit whole numbers and times as
// texts, numbers that are not finite by name, zeros and empty lists present. DESCRIPTORS is what `protoc
// --include_imports --include_source_info --descriptor_set_out` writes; TypeScript goes to stdout. A program
// of ours: no public plug-in writes this form without a library at run time. openapi-typescript could make it
// from `GET /api`, but the server that answers there already contains the built app.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace {

namespace pb = google::protobuf;
using Type = pb::FieldDescriptor::CppType;

constexpr const char* kTimestamp = "google.protobuf.Timestamp";

/// "ColumnKind" for `Kind` inside of `Column`.
template <class Descriptor>
std::string name_of(const Descriptor& type) {
  return (type.containing_type() ? name_of(*type.containing_type()) : "") + type.name();
}

/// A comment of the .proto, before or behind what it is of.
template <class Descriptor>
std::string comment(const Descriptor& of, const std::string& indent) {
  pb::SourceLocation location;
  if (!of.GetSourceLocation(&location)) return "";
  std::istringstream lines{location.leading_comments + location.trailing_comments};
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    for (std::size_t end = 0; (end = line.find("*/", end)) != std::string::npos;) line.insert(end + 1, " ");
    if (!line.empty()) text += (text.empty() ? "" : "\n" + indent + " * ") + line;
  }
  return text.empty() ? "" : indent + "/** " + text + " */\n";
}

/// Of one value: of a list's element too.
std::string type_of(const pb::FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case Type::CPPTYPE_INT32:
    case Type::CPPTYPE_UINT32:
      return "number";
    case Type::CPPTYPE_INT64:
    case Type::CPPTYPE_UINT64:
    case Type::CPPTYPE_STRING:  // bytes too, in base 64
      return "string";
    case Type::CPPTYPE_FLOAT:
    case Type::CPPTYPE_DOUBLE:
      return "Real";
    case Type::CPPTYPE_BOOL:
      return "boolean";
    case Type::CPPTYPE_ENUM:
      return name_of(*field.enum_type());
    case Type::CPPTYPE_MESSAGE:
      return field.message_type()->full_name() == kTimestamp ? "string" : name_of(*field.message_type());
  }
  return "unknown";
}

/// Whether it can be absent. To Protobuf any message within another can; in ours `optional` says which.
bool can_be_absent(const pb::FieldDescriptor& field) {
  const bool is_part = field.cpp_type() == Type::CPPTYPE_MESSAGE && !field.containing_oneof();
  return field.has_presence() && !is_part;
}

std::string member(const pb::FieldDescriptor& field) {
  std::string type;
  if (field.is_map())
    type = "Record<string, " + type_of(*field.message_type()->map_value()) + ">";
  else
    type = type_of(field) + (field.is_repeated() ? "[]" : "");
  return comment(field, "  ") + "  " + field.name() + (can_be_absent(field) ? "?: " : ": ") + type + ";\n";
}

void write(const pb::EnumDescriptor& type) {
  std::cout << '\n' << comment(type, "") << "export type " << name_of(type) << " =\n";
  for (int i = 0; i < type.value_count(); ++i)
    std::cout << comment(*type.value(i), "  ") << "  | \"" << type.value(i)->name() << '"'
              << (i + 1 < type.value_count() ? "\n" : ";\n");
}

void write(const pb::Descriptor& message) {
  if (message.options().map_entry()) return;
  std::cout << '\n' << comment(message, "") << "export interface " << name_of(message) << " {\n";
  for (int i = 0; i < message.field_count(); ++i) std::cout << member(*message.field(i));
  std::cout << "}\n";
  for (int i = 0; i < message.enum_type_count(); ++i) write(*message.enum_type(i));
  for (int i = 0; i < message.nested_type_count(); ++i) write(*message.nested_type(i));
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream file{argc == 2 ? argv[1] : "", std::ios::binary};
  pb::FileDescriptorSet files;
  if (!files.ParseFromIstream(&file)) {
    std::fprintf(stderr, "usage: proto_typescript DESCRIPTORS > FILE.ts\n");
    return 2;
  }
  std::cout << "// SPDX-License-Identifier: Apache-2.0\n"
               "// Generated from proto/ablate/v1 by proto/typescript.cc.\n\n"
               "/** JSON of Protobuf writes NaN and the infinities as strings. */\n"
               "export type Real = number | \"NaN\" | \"Infinity\" | \"-Infinity\";\n";
  pb::DescriptorPool pool;
  for (const pb::FileDescriptorProto& proto : files.file()) {
    const pb::FileDescriptor* built = pool.BuildFile(proto);
    if (!built) return 1;  // the pool has said why
    if (built->package() == "google.protobuf") continue;
    for (int i = 0; i < built->enum_type_count(); ++i) write(*built->enum_type(i));
    for (int i = 0; i < built->message_type_count(); ++i) write(*built->message_type(i));
  }
  return std::cout.flush() ? 0 : 1;
}
