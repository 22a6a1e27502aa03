// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/grid.h"
#include "cli/shown.h"
#include "cli/source.h"

namespace abl::cli {
namespace {

std::string joined(const auto& words) {
  std::string text;
  for (const auto& word : words) text += fmt::format("{}{}", text.empty() ? "" : " ", word);
  return text;
}

/// "cuda:0 NVIDIA H200" once for each kind of slot: "4 × cpu, 2 threads".
std::string slots_text(const ablate::v1::WorkerSummary& worker) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const auto& slot : worker.slots()) {
    const std::string kind =
        slot.device().substr(0, slot.device().find(':')) + (slot.name().empty() ? "" : ", " + slot.name());
    const auto known = std::ranges::find(kinds, kind, [](const auto& entry) { return entry.first; });
    if (known == kinds.end())
      kinds.emplace_back(kind, 1);
    else
      ++known->second;
  }
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{}{} × {}", text.empty() ? "" : "; ", count, kind);
  return text;
}

std::string state_text(const ablate::v1::WorkerSummary& worker, const Terminal& terminal) {
  if (!worker.connected()) return terminal.paint(Style::kRed, "gone");
  if (!worker.trouble().empty()) return terminal.paint(Style::kYellow, "unhealthy");
  return terminal.paint(Style::kGreen, "connected");
}

std::string workers_text(const ablate::v1::ListWorkersResponse& list, const Terminal& terminal) {
  if (list.workers().empty())
    return "no workers yet: 'ablate up' starts one, 'ablate-worker --scheduler ADDRESS' adds one\n";
  Grid grid{{{"worker"},
             {"host"},
             {"state"},
             {"busy", true},
             {"slots"},
             {"data"},
             {"weights"},
             {"seen", true},
             {"note"}}};
  for (const auto& worker : list.workers()) {
    const auto busy = std::ranges::count_if(worker.slots(), [](const auto& slot) { return slot.run() != 0; });
    grid.add({worker.name(), worker.host(), state_text(worker, terminal),
              fmt::format("{}/{}", busy, worker.slots_size()), slots_text(worker), joined(worker.data()),
              joined(worker.weights()), format_age(worker.last_heartbeat(), SystemClock{}.now()),
              worker.note()});
  }
  return grid.text(&terminal);
}

Run declare_workers(CLI::App& app, Context& context) {
  add_source(app, context);
  return [&context]() -> int {
    const auto list = open_source(context)->list_workers();
    if (context.json)
      context.print_json(list);
    else
      context.out.write(workers_text(shown(list, context.out), context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kWorkersCommand{
    .place = 170,
    .name = "workers",
    .summary = "List workers, their slots and what runs there",
    .example = "ablate workers",
    .declare = declare_workers,
};

}  // namespace abl::cli
