// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace abl::views {

/// Writes a message as JSON, piece by piece: beside the message some 64 KiB are held, or its longest text,
/// however much is written. Protobuf's own conversion builds a tree of thirty times the text. It is the text
/// of that conversion (Protobuf 3.21, names as in the .proto, zeros and empty lists present), but for maps,
/// whose entries are in the order of their keys, and `optional` messages, which have their place among
/// others; and for a byte that is no part of UTF-8, which is U+FFFD. One line without an end; `pretty`: a
/// line for each value, with an end.
void write_json(const google::protobuf::Message& message, bool pretty,
                const std::function<void(std::string_view)>& sink);
/// The same as a whole.
std::string to_json(const google::protobuf::Message& message, bool pretty = false);

/// JSON Schemas of messages of ablate.v1 as write_json writes them, and of all that they contain, by name:
/// "TableRow", "ColumnKind" for the `Kind` of `Column`. They refer to each other below
/// "#/components/schemas/"; descriptions are the comments of the .proto.
nlohmann::ordered_json json_schemas(std::span<const google::protobuf::Descriptor* const> messages);

/// Fills a message from an object in that form, as clients write it: fields that are missing or null stay
/// unset. Throws: Error{kInvalidArgument} with one line for invalid JSON, nesting deeper than kDeepestJson,
/// an unknown field (with the nearest), a field given twice, or a value of another type ("budget.until:
/// expected a time …").
void from_json(std::string_view text, google::protobuf::Message& message);

}  // namespace abl::views
