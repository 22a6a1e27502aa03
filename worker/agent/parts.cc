// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/parts.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"

namespace abl::agent {
using ablate::v1::Assign;
using ablate::v1::PartEnded;
using ablate::v1::RunBatch;
using ablate::v1::RunEnded;

Parts::Parts(const RunSettings& settings, const Clock& clock, Crew& crew, Owner owner)
    : settings_{settings}, clock_{clock}, crew_{crew}, owner_{std::move(owner)} {}

void Parts::end_all() {
  std::vector<std::unique_ptr<Run>> runs;  // ended without the lock, which their threads want
  {
    auto state = state_.lock();
    runs.swap(state->over);
    for (auto& [run, part] : state->parts)
      if (part.run) runs.push_back(std::move(part.run));
  }
  for (const auto& run : runs) run->kill();
}

bool Parts::has(std::uint32_t run) const { return state_.lock()->parts.contains(run); }

std::map<std::uint32_t, std::string> Parts::tokens() const {
  std::map<std::uint32_t, std::string> tokens;
  auto state = state_.lock();
  for (const auto& [run, part] : state->parts) tokens.emplace(run, part.token);
  return tokens;
}

bool Parts::busy() const { return !state_.lock()->parts.empty(); }

void Parts::start(const Assign& assign, std::vector<Slot> slots, const std::string& store) {
  auto state = state_.lock();
  Part& part = state->parts[assign.run()];
  part.token = assign.token();
  RunOwner& owner = *this;
  try {
    part.run = std::make_unique<Run>(assign, std::move(slots), settings_, owner, clock_, crew_, store);
  } catch (...) {
    state->parts.erase(assign.run());
    throw;
  }
}

void Parts::stop(std::uint32_t run, const std::string& reason) {
  auto state = state_.lock();
  if (const auto part = state->parts.find(run); part != state->parts.end() && part->second.run)
    part->second.run->stop(reason);
}

void Parts::stop_all(const std::string& reason) {
  auto state = state_.lock();
  for (const auto& [run, part] : state->parts)
    if (part.run) part.run->stop(reason);
}

void Parts::kill(std::uint32_t run) {
  auto state = state_.lock();
  if (const auto part = state->parts.find(run); part != state->parts.end() && part->second.run)
    part->second.run->kill();
}

void Parts::tidy() {
  std::vector<std::unique_ptr<Run>> over;
  over.swap(state_.lock()->over);
}

void Parts::starts(std::uint32_t run, const std::filesystem::path& directory, std::optional<pid_t>) {
  // a trainer's ranks die with it, and it with this worker: nothing need be found again
  auto state = state_.lock();
  if (const auto part = state->parts.find(run); part != state->parts.end()) part->second.folder = directory;
}

void Parts::append(std::uint32_t run, const RunBatch& batch) {
  std::string folder;
  {
    auto state = state_.lock();
    if (const auto part = state->parts.find(run); part != state->parts.end()) folder = part->second.folder;
  }
  if (folder.empty() || batch.log().empty()) return;
  std::ofstream log{std::filesystem::path{folder} / "ranks.log", std::ios::app | std::ios::binary};
  log << batch.log();  // bounded by its run; what finds no room is no loss to the run
}

void Parts::finished(std::uint32_t run, std::optional<RunBatch> last) {
  if (last) {
    try {
      append(run, *last);
    } catch (const std::exception&) {
    }
    const RunEnded& ended = last->ended();
    const bool as_it_should =
        ended.status() == RunEnded::STATUS_COMPLETED || ended.status() == RunEnded::STATUS_STOPPED;
    return end(run, !as_it_should, ended.reason());
  }
  end(run, true, "dropped");
}

void Parts::refused(std::uint32_t run, const std::string& reason) { end(run, true, reason); }

void Parts::end(std::uint32_t run, bool failed, const std::string& reason) {
  owner_.vacated(run);
  PartEnded ended;
  ended.set_run(run);
  ended.set_failed(failed);
  ended.set_reason(valid_utf8(reason));
  {
    auto state = state_.lock();
    auto part = state->parts.extract(run);
    if (part.empty()) return;
    ended.set_token(part.mapped().token);
    if (part.mapped().run) state->over.push_back(std::move(part.mapped().run));
  }
  log_info({{"run", run}}, "the part of run {} here is over{}{}", run, reason.empty() ? "" : ": ", reason);
  owner_.ended(std::move(ended));
}

}  // namespace abl::agent
