// SPDX-License-Identifier: Apache-2.0
#include "scheduler/fleet.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>
#include <utility>

#include "base/error.h"

namespace abl::scheduler {
namespace {

void add_reason(std::string& all, const std::string& why) { all += (all.empty() ? "" : "; ") + why; }

}  // namespace

std::string Ailments::text() const {
  if (!trouble.empty()) return trouble;
  std::string all;
  for (const auto* gone : {&data, &weights})
    for (const auto& [name, why] : *gone) add_reason(all, why);
  for (const auto& [wanted, why] : wrong_weights) add_reason(all, why);
  return all;
}

std::shared_ptr<const Session> Fleet::add(std::shared_ptr<const Session> session,
                                          const std::vector<storage::RunId>& runs, Time now) {
  std::shared_ptr<const Session> replaced = session_of(session->hello.name());
  if (replaced) entries_.erase(replaced->id);
  Entry entry{.session = session,
              .last_heard = now,
              .draining = session->hello.draining(),
              .runs = {runs.begin(), runs.end()}};
  for (const ablate::v1::Slot& slot : session->hello.slots())
    if (entry.runs.contains(slot.run())) entry.busy.emplace(slot.index(), slot.run());
  entry.ailments = Ailments::of(session->hello);
  entries_.emplace(session->id, std::move(entry));
  return replaced;
}

bool Fleet::remove(std::uint64_t session) { return entries_.erase(session) > 0; }

void Fleet::heard(std::uint64_t session, Time now) {
  if (const auto entry = entries_.find(session); entry != entries_.end()) entry->second.last_heard = now;
}

bool Fleet::first_batch(std::uint64_t session, storage::RunId run) {
  const auto entry = entries_.find(session);
  return entry != entries_.end() && entry->second.heard_of.insert(run).second;
}

void Fleet::drain(std::uint64_t session) {
  if (const auto entry = entries_.find(session); entry != entries_.end()) entry->second.draining = true;
}

bool Fleet::ails(std::uint64_t session, const Ailments& ailments) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return false;
  // its own word takes the place of ours: it takes that back when its file is the wanted one
  for (const auto& [wanted, how] : ailments.wrong_weights) entry->second.wrong_weights.erase(wanted);
  if (entry->second.ailments == ailments) return false;
  entry->second.ailments = ailments;
  return true;
}

void Fleet::occupy(std::uint64_t session, storage::RunId run, const std::vector<std::uint32_t>& slots) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return;
  entry->second.runs.insert(run);
  for (const std::uint32_t slot : slots) entry->second.busy[slot] = run;
}

void Fleet::release(storage::RunId run) {
  for (auto& [id, entry] : entries_) {
    entry.runs.erase(run);
    entry.heard_of.erase(run);
    std::erase_if(entry.busy, [run](const auto& slot) { return slot.second == run; });
  }
}

void Fleet::refused(std::uint64_t session, storage::TrialId trial, const std::string& reason, Time until) {
  if (const auto entry = entries_.find(session); entry != entries_.end())
    entry->second.refusals[trial] = {reason, until};
}

void Fleet::refuse_data(std::uint64_t session, const std::string& data, const std::string& reason) {
  if (const auto entry = entries_.find(session); entry != entries_.end())
    entry->second.wrong_data[{data}] = reason;
}

void Fleet::refuse_weights(std::uint64_t session, const Wanted& weights, const std::string& reason) {
  if (const auto entry = entries_.find(session); entry != entries_.end())
    entry->second.wrong_weights[weights] = reason;
}

std::string Fleet::trouble(std::uint64_t session, const Ailments& said) const {
  std::string all = said.text();
  const auto entry = entries_.find(session);
  if (!said.trouble.empty() || entry == entries_.end()) return all;
  for (const auto* wrong : {&entry->second.wrong_data, &entry->second.wrong_weights})
    for (const auto& [wanted, how] : *wrong)
      if (!said.wrong_weights.contains(wanted)) add_reason(all, how);
  return all;
}

std::shared_ptr<const Session> Fleet::session_of(const std::string& worker) const {
  for (const auto& [id, entry] : entries_)
    if (entry.session->hello.name() == worker) return entry.session;
  return nullptr;
}

std::shared_ptr<const Session> Fleet::session(std::uint64_t id) const {
  const auto entry = entries_.find(id);
  return entry == entries_.end() ? nullptr : entry->second.session;
}

std::shared_ptr<const Session> Fleet::session_with(storage::RunId run) const {
  for (const auto& [id, entry] : entries_)
    if (entry.runs.contains(run)) return entry.session;
  return nullptr;
}

std::vector<std::shared_ptr<const Session>> Fleet::all() const {
  std::vector<std::shared_ptr<const Session>> sessions;
  for (const auto& [id, entry] : entries_) sessions.push_back(entry.session);
  return sessions;
}

std::vector<std::shared_ptr<const Session>> Fleet::silent(const LeasePolicy& policy, Time now) const {
  std::vector<std::shared_ptr<const Session>> sessions;
  for (const auto& [id, entry] : entries_)
    if (policy.silent(entry.last_heard, now)) sessions.push_back(entry.session);
  return sessions;
}

std::vector<WorkerState> Fleet::workers(Time now) {
  std::vector<WorkerState> workers;
  for (auto& [id, entry] : entries_) {
    const ablate::v1::Hello& hello = entry.session->hello;
    WorkerState worker{.name = hello.name(),
                       .host = hello.host(),
                       .session = id,
                       .result_version = static_cast<int>(hello.result_version()),
                       .allows_commands = hello.allows_commands(),
                       .draining = entry.draining,
                       .trouble = entry.ailments.trouble,
                       .data = {.names = {hello.data().begin(), hello.data().end()},
                                .wrong = entry.wrong_data,
                                .gone = entry.ailments.data},
                       .weights = {.names = {hello.weights().begin(), hello.weights().end()},
                                   .wrong = entry.wrong_weights,
                                   .gone = entry.ailments.weights}};
    for (const auto& [wanted, why] : entry.ailments.wrong_weights)
      worker.weights.wrong.emplace(wanted, fmt::format("worker {}: {}", hello.name(), why));
    for (const ablate::v1::Slot& slot : hello.slots())
      worker.slots.push_back({.index = slot.index(),
                              .cuda = slot.device().starts_with("cuda"),
                              .busy = entry.busy.contains(slot.index())});
    std::erase_if(entry.refusals, [now](const auto& refusal) { return refusal.second.until <= now; });
    for (const auto& [trial, refusal] : entry.refusals) worker.refused.emplace(trial, refusal.reason);
    workers.push_back(std::move(worker));
  }
  return workers;
}

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
                     {"threads", slot.threads()}});
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
