// SPDX-License-Identifier: Apache-2.0
#include "scheduler/worker_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "scheduler/fleet.h"

namespace abl::scheduler {
namespace {

std::string list_of(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return nlohmann::json(std::vector<std::string>{names.begin(), names.end()}).dump();
}

}  // namespace

void check_hello(const ablate::v1::Hello& hello, std::uint32_t lowest_protocol,
                 std::uint32_t highest_protocol) {
  if (hello.name().empty()) throw Error{Code::kInvalidArgument, "a worker without a name said hello"};
  if (hello.highest_protocol() < lowest_protocol || hello.lowest_protocol() > highest_protocol)
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("worker {} (version {}) speaks protocol versions {} to {}, this scheduler {} to {}: "
                    "use programs of one release",
                    hello.name(), hello.version(), hello.lowest_protocol(), hello.highest_protocol(),
                    lowest_protocol, highest_protocol)};
  std::set<std::uint32_t> indices;
  for (const ablate::v1::Slot& slot : hello.slots())
    if (!indices.insert(slot.index()).second)
      throw Error{Code::kInvalidArgument,
                  fmt::format("worker {} has two slots of index {}", hello.name(), slot.index())};
}

storage::WorkerRecord worker_record(const ablate::v1::Hello& hello, Time now) {
  nlohmann::json slots = nlohmann::json::array();
  for (const ablate::v1::Slot& slot : hello.slots())
    slots.push_back({{"index", slot.index()},
                     {"device", slot.device()},
                     {"name", slot.name()},
                     {"threads", slot.threads()},
                     {"run", slot.run()}});
  return {.name = hello.name(),
          .host = hello.host(),
          .instance = hello.instance(),
          .version = hello.version(),
          .slots_json = slots.dump(),
          .data_json = list_of(hello.data()),
          .weights_json = list_of(hello.weights()),
          .result_version = static_cast<int>(hello.result_version()),
          .allows_commands = hello.allows_commands(),
          .connected = true,
          .last_heartbeat = now,
          .trouble = Ailments::of(hello).text()};
}

}  // namespace abl::scheduler
