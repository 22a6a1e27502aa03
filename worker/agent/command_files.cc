// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/command_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "worker/agent/held_file.h"

namespace abl::agent {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLooks = 250ms, kBetweenLooksAtMuch = 50ms;
constexpr int kLookShare = 20;  // of the time, a look takes one part at most

}  // namespace

CommandPlaces command_places(const ablate::v1::Assign& assign) {
  CommandPlaces places;
  if (assign.argv().empty()) return places;
  const auto document = nlohmann::json::parse(assign.config_json(), nullptr, false);
  if (!document.is_object()) return places;
  if (document.contains("metrics")) places.metrics = protocol::metric_sources(document["metrics"]);
  if (document.contains("checkpoint") && document["checkpoint"].is_string())
    places.checkpoint = document["checkpoint"].get<std::string>();
  return places;
}

CommandFiles::CommandFiles(std::filesystem::path folder, std::string checkpoint)
    : folder_{std::move(folder)}, checkpoints_{folder_, std::move(checkpoint)} {}

bool CommandFiles::look(TrainerOutput& output) {
  const SteadyTime began = std::chrono::steady_clock::now();
  if (began < next_look_) return false;
  const bool any = output.look_at_files();
  if (const auto written = checkpoints_.look(output.highest_step(), began))
    output.wrote_checkpoint(written->file, written->step, "");
  const SteadyTime now = std::chrono::steady_clock::now();
  next_look_ = now + std::max<SteadyTime::duration>(any ? kBetweenLooksAtMuch : kBetweenLooks,
                                                    kLookShare * (now - began));
  return any;
}

void CommandFiles::read_to_end(TrainerOutput& output, const std::function<bool()>& go_on,
                               std::chrono::milliseconds patience) {
  const SteadyTime until = std::chrono::steady_clock::now() + patience;
  while (output.look_at_files() && go_on()) {
    if (std::chrono::steady_clock::now() < until) continue;
    return output.refuse("files of command.metrics", "not read to their ends: that took too long");
  }
}

void CommandFiles::say_last_checkpoint(TrainerOutput& output, bool was_killed, bool travels) {
  const auto last = checkpoints_.last(output.highest_step(), was_killed);
  if (!last) return;
  std::string digest;
  try {
    // taken hold of first: what is at its path may be another file by now, or a link to one
    const HeldFile held{last->file};
    if (!held.is_regular() || !held.lies_under(folder_)) return;
    if (travels) digest = sha256_file(held.path());
  } catch (const std::exception& error) {
    output.note(
        fmt::format("the checkpoint {} stays on this machine: {}", last->file.string(), error.what()));
  }
  output.wrote_checkpoint(last->file, last->step, digest);
}

}  // namespace abl::agent
