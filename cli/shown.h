// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/printable.h"
#include "cli/terminal.h"

namespace google::protobuf {
class Message;
}

namespace abl::cli {

/// Makes every text of a message printable: labels, names and reasons come from sweep files and trainers.
void make_printable(google::protobuf::Message& message);

/// What others wrote, as this output may show it: printable on a terminal, and exact in a file or a pipe.
template <class Message>
Message shown(Message message, const Terminal& terminal) {
  if (terminal.interactive()) make_printable(message);
  return message;
}

inline std::string shown(const std::string& text, const Terminal& terminal) {
  return terminal.interactive() ? printable(text) : text;
}

}  // namespace abl::cli
