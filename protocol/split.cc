// SPDX-License-Identifier: Apache-2.0
#include "protocol/split.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/error.h"

namespace abl::protocol {
namespace {

std::string range(int least, int most) {
  return least > 0 && least < most ? fmt::format("{} to {}", least, most) : std::to_string(most);
}

}  // namespace

std::string Split::text() const {
  if (!any()) return {};
  nlohmann::json document = nlohmann::json::object();
  if (least_gpus > 0) document["least_gpus"] = least_gpus;
  if (most_nodes > 0) document["nodes"] = {least_nodes, most_nodes};
  return document.dump();
}

Split Split::parse(const std::string& text) {
  if (text.empty()) return {};
  try {
    const auto document = nlohmann::json::parse(text);
    Split split{.least_gpus = document.value("least_gpus", 0)};
    if (const auto nodes = document.find("nodes"); nodes != document.end())
      split.least_nodes = nodes->at(0).get<int>(), split.most_nodes = nodes->at(1).get<int>();
    return split;
  } catch (const nlohmann::json::exception& error) {
    throw Error{Code::kInvalidArgument, fmt::format("'{}' says nothing of workers: {}", text, error.what())};
  }
}

std::string Split::words(int gpus) const {
  const int each = most_nodes > 0 && gpus > 0 ? gpus / most_nodes : 1;
  const std::string slots =
      gpus > 0
          ? range(most_nodes > 0 ? least_nodes * each : least_gpus, gpus) + (gpus == 1 ? " GPU" : " GPUs")
          : range(least_nodes, std::max(1, most_nodes)) + (most_nodes > 1 ? " slots" : " slot");
  if (most_nodes == 0) return slots;
  if (most_nodes == 1) return slots + " of one worker";
  return fmt::format("{}, {} on each of {} workers", slots, each == 1 ? "one" : std::to_string(each),
                     range(least_nodes, most_nodes));
}

}  // namespace abl::protocol
