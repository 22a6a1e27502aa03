// SPDX-License-Identifier: Apache-2.0
#include "cli/shown.h"

#include <google/protobuf/message.h>

#include <vector>

#include "base/printable.h"

namespace abl::cli {

using google::protobuf::FieldDescriptor;

void make_printable(google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;  // those that are set
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 0;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) make_printable(*reflection->MutableMessage(&message, field));
      for (int i = 0; i < count; ++i) make_printable(*reflection->MutableRepeatedMessage(&message, field, i));
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {  // and not of bytes, which are no text
      if (!field->is_repeated())
        reflection->SetString(&message, field, printable(reflection->GetString(message, field)));
      for (int i = 0; i < count; ++i)
        reflection->SetRepeatedString(&message, field, i,
                                      printable(reflection->GetRepeatedString(message, field, i)));
    }
  }
}

}  // namespace abl::cli
