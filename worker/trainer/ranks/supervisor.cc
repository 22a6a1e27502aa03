// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/error.h"
#include "worker/trainer/ranks/rank_group.h"
#include "worker/trainer/ranks/rank_process.h"

namespace abl::trainer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Ranks = std::vector<std::unique_ptr<RankProcess>>;

constexpr auto kLook = 50ms;
constexpr auto kLastWords = 1s;  // for the others to say what they met, once one has failed
constexpr auto kLeave = 10s;     // for those to go that have said their end

void wait_for_any(const Ranks& ranks) {
  std::vector<pollfd> watched;
  for (const auto& rank : ranks)
    for (const int end : rank->ends()) watched.push_back({end, POLLIN, 0});
  ::poll(watched.data(), watched.size(), static_cast<int>(kLook / 1ms));
}

bool has_ended(const std::unique_ptr<RankProcess>& rank) { return rank->exit().has_value(); }

/// A rank that another one's end brought down.
bool is_consequence(const RankProcess& rank) {
  const auto& end = rank.output().said_end();
  return rank.killed() || (end && end->reason.starts_with(kLostRanks));
}

/// The rank that failed first: one that a signal ended, before one that gave a reason of its own, before one
/// that only noticed.
const RankProcess& culprit(const Ranks& ranks) {
  const auto score = [](const std::unique_ptr<RankProcess>& rank) {
    if (!rank->failed()) return 4;
    if (is_consequence(*rank)) return 3;
    return rank->exit() && rank->exit()->signal != 0 ? 0 : rank->output().said_end() ? 1 : 2;
  };
  return **std::ranges::min_element(ranks, {}, score);
}

std::string reason_of(const RankProcess& rank) {
  const auto& end = rank.output().said_end();
  if (end && !end->reason.empty()) return end->reason;
  std::string reason = rank.exit() ? rank.exit()->describe() : "no answer";
  if (rank.exit() && rank.exit()->signal == SIGKILL) reason += "; perhaps out of memory";
  if (const auto words = rank.output().last_words(); !words.empty()) reason += "; last output: " + words;
  return reason;
}

RunEnd failure(const Ranks& ranks, bool asked) {
  const auto& first = culprit(ranks);
  const auto& end = first.output().said_end();
  if (asked && first.exit() && first.exit()->signal == SIGTERM)  // before it could heed it
    return {.end = {.status = "stopped", .reason = "stopped before the first step", .fault = {}},
            .exit_code = kExitOk};
  const bool all_alike = std::ranges::all_of(ranks, [&](const auto& rank) {
    return rank->output().said_end() && rank->output().said_end()->reason == reason_of(first);
  });
  const std::string who = all_alike ? "" : fmt::format("rank {} of {}: ", first.rank(), ranks.size());
  const bool has_code = first.exit() && first.exit()->signal == 0 && first.exit()->code != 0;
  return {.end = {.status = "failed",
                  .reason = who + reason_of(first),
                  .retryable = !end || end->retryable,
                  .fault = end ? end->fault : std::nullopt},
          .exit_code = has_code ? first.exit()->code : kExitFailed};
}

}  // namespace

RunEnd supervise_ranks(int count, const RankCommand& command, Events& events, const std::atomic<bool>& stop) {
  Ranks ranks;
  for (int rank = 0; rank < count; ++rank)
    ranks.push_back(std::make_unique<RankProcess>(rank, command(rank), rank == 0 ? &events : nullptr));
  const auto& first = *ranks[0];
  std::optional<Clock::time_point> deadline;
  bool asked = false, failed = false;
  while (!std::ranges::all_of(ranks, has_ended)) {
    wait_for_any(ranks);
    for (const auto& rank : ranks) rank->look();
    if (stop && !asked) ranks[0]->ask_to_stop(), asked = true;
    const bool first_is_done = first.exit() && !first.failed();
    failed = failed || (!first_is_done && std::ranges::any_of(ranks, &RankProcess::failed,
                                                              [](const auto& it) -> auto& { return *it; }));
    if (!deadline && (failed || first_is_done)) deadline = Clock::now() + kLastWords;
    for (const auto& rank : ranks)
      if (deadline && Clock::now() >= *deadline + (rank->output().said_end() ? kLeave : 0s)) rank->kill();
  }
  for (const auto& rank : ranks) rank->look();
  if (failed) return failure(ranks, asked);
  return {.end = *first.output().said_end(), .exit_code = kExitOk};
}

}  // namespace abl::trainer
