// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
}

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

}  // namespace abl::views
