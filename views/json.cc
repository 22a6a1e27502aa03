// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/json_util.h>

#include "views/views.h"

namespace abl::views {

std::string to_json(const google::protobuf::Message& message, bool pretty) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = pretty;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok())
    throw Error{Code::kInternal, message.GetTypeName() + " has no JSON form: " + status.ToString()};
  return text;
}

}  // namespace abl::views
