// SPDX-License-Identifier: Apache-2.0
// What of the autoscaler outlives its program: results.db.fleet.json.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "scheduler/autoscaler.h"

namespace abl::scheduler {

/// Neither a secret nor its digest.
nlohmann::json Autoscaler::json_of(const Admission& pass) {
  return {{"pilot", pass.pilot},
          {"made_ms", pass.made.time_since_epoch().count()},
          {"expires_ms", pass.expires.time_since_epoch().count()}};
}

Autoscaler::Admission Autoscaler::admission_of(const nlohmann::json& pass) {
  return {.pilot = pass.value("pilot", ""),
          .made = Time{Milliseconds{pass.value("made_ms", std::int64_t{0})}},
          .expires = Time{Milliseconds{pass.value("expires_ms", std::int64_t{0})}}};
}

void Autoscaler::load(State& state) {
  if (!std::filesystem::exists(file_)) return;
  const auto stored = nlohmann::json::parse(read_file(file_), nullptr, /*allow_exceptions=*/false);
  if (!stored.is_object())
    throw Error{Code::kDataLoss, fmt::format("{}: expected JSON as this program writes it; what queues have "
                                             "cost and which are paused is lost where you remove it",
                                             file_.string())};
  for (Queue& queue : state.queues) {
    const auto found = stored.find(queue.standing.config.name);
    if (found == stored.end() || !found->is_object()) continue;
    queue.standing.paused = found->value("paused", "");
    queue.ended_gpu_seconds = found->value("gpu_seconds", 0.0);
    const auto pilots = found->value("pilots", nlohmann::json::object());
    for (const auto& [id, seconds] : pilots.items())
      if (seconds.is_number_integer()) queue.seconds[id] = seconds.get<std::int64_t>();
    const auto charged = found->value("charged", nlohmann::json::object());
    for (const auto& [id, seconds] : charged.items())
      if (seconds.is_number_integer()) queue.charged[id] = seconds.get<std::int64_t>();
    const auto passes = found->value("passes", nlohmann::json::object());
    for (const auto& [id, pass] : passes.items()) queue.passes[id] = admission_of(pass);
    queue.ended = found->value("ended", std::deque<std::string>{});
    queue.failures = found->value("failures", std::deque<std::string>{});
  }
  for (const auto& [name, gone] : stored.items()) {
    const bool is_there = std::ranges::any_of(
        state.queues, [&](const Queue& queue) { return queue.standing.config.name == name; });
    if (is_there || !gone.is_object()) continue;
    const auto passes = gone.value("passes", nlohmann::json::object());
    for (const auto& [id, pass] : passes.items())
      state.strays.push_back({.queue = name, .id = id, .admission = admission_of(pass)});
  }
}

void Autoscaler::save(State& state) {
  nlohmann::json stored = nlohmann::json::object();
  for (const Queue& queue : state.queues) {
    nlohmann::json passes = nlohmann::json::object();
    for (const auto& [id, pass] : queue.passes) passes[id] = json_of(pass);
    stored[queue.standing.config.name] = {{"paused", queue.standing.paused},
                                          {"gpu_seconds", queue.ended_gpu_seconds},
                                          {"pilots", queue.seconds},
                                          {"charged", queue.charged},
                                          {"passes", passes},
                                          {"ended", queue.ended},
                                          {"failures", queue.failures}};
  }
  for (const Stray& stray : state.strays) stored[stray.queue]["passes"][stray.id] = json_of(stray.admission);
  try {
    write_file_atomically(file_, stored.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } catch (const Error& error) {
    log_warning("{}", error.what());
    state.save = true;  // the next look tries again
  }
}

}  // namespace abl::scheduler
