// SPDX-License-Identifier: Apache-2.0
#include "protocol/event_file.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/target.h"

namespace abl::fuzz {
namespace {

std::string said_of_event_file(std::string_view bytes, std::size_t piece) {
  protocol::EventFileReader reader;
  std::string text;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    reader.read(bytes.substr(0, piece), [&](const protocol::EventValue& value) {
      text += value.tag + std::to_string(value.step) + value.plugin + value.text;
      if (value.scalar) text += std::isnan(*value.scalar) ? "nan" : std::to_string(*value.scalar);
    });
  if (!reader.problem().empty()) require_printable(reader.problem());
  return text + reader.problem() + std::to_string(reader.waiting());
}

}  // namespace

/// How a file grows must not matter.
void read_event_file(std::string_view bytes) {
  require(said_of_event_file(bytes, bytes.size() + 1) == said_of_event_file(bytes, 7),
          "pieces say what the whole says");
}

}  // namespace abl::fuzz
