// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "base/error.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "printing/grid.h"

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

/// "gpu=h100, rack=7": those that it was given.
std::string labels_text(const ablate::v1::WorkerSummary& worker) {
  const std::map<std::string, std::string> labels{worker.labels().begin(), worker.labels().end()};
  std::string text;
  for (const auto& [label, value] : labels)
    if (label != "host" && label != "name")
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", label, value);
  return text;
}

std::string state_text(const ablate::v1::WorkerSummary& worker, const Terminal& terminal) {
  if (!worker.connected()) return terminal.paint(Style::kRed, "gone");
  if (worker.has_drained()) return terminal.paint(Style::kYellow, "drained");
  if (!worker.trouble().empty()) return terminal.paint(Style::kYellow, "unhealthy");
  if (!worker.quarantine().empty()) return terminal.paint(Style::kYellow, "quarantine");
  return terminal.paint(Style::kGreen, "connected");
}

/// What is the matter with it, and of one in quarantine when it gets its next trial.
std::string note_text(const ablate::v1::WorkerSummary& worker) {
  if (worker.quarantine().empty() || worker.has_drained() || worker.note().empty()) return worker.note();
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(SystemClock{}.now().time_since_epoch());
  const auto left = worker.quarantined_until().seconds() - now.count();
  return left <= 0 ? worker.note() : fmt::format("{} (the next in {} s)", worker.note(), left);
}

std::string workers_text(const ablate::v1::ListWorkersResponse& list, const Terminal& terminal) {
  if (list.workers().empty())
    return "no workers yet: 'ablate up' starts one, 'ablate-worker --scheduler ADDRESS' adds one\n";
  printing::Grid grid{{{"worker"},
                       {"host"},
                       {"state"},
                       {"busy", true},
                       {"gpu", true},
                       {"cores", true},
                       {"slots"},
                       {"labels"},
                       {"data"},
                       {"weights"},
                       {"seen", true},
                       {"note"}}};
  for (const auto& worker : list.workers()) {
    const auto busy = std::ranges::count_if(worker.slots(), [](const auto& slot) { return slot.run() != 0; });
    grid.add({worker.name(), worker.host(), state_text(worker, terminal),
              fmt::format("{}/{}", busy, worker.slots_size()),
              worker.has_gpu() ? fmt::format("{:.0f} %", 100 * worker.gpu()) : "",
              worker.has_cpu_cores() ? fmt::format("{:.1f}", worker.cpu_cores()) : "", slots_text(worker),
              labels_text(worker), joined(worker.data()), joined(worker.weights()),
              format_age(worker.last_heartbeat(), SystemClock{}.now()), note_text(worker)});
  }
  return grid.text(&terminal);
}

struct WorkersFlags {
  std::string what, name, reason;
  bool stop_running = false;
};

/// Drains a worker, or ends that. Returns: the workers as they are then.
ablate::v1::ListWorkersResponse drain(Context& context, const WorkersFlags& flags) {
  ablate::v1::DrainWorkerRequest request;
  request.set_name(flags.name);
  request.set_resume(flags.what == "resume");
  request.set_reason(flags.reason);
  request.set_stop_running(flags.stop_running);
  Client client{context};
  auto list = client.call(&ablate::v1::Workers::Stub::DrainWorker, request);
  return list.left_out() == 0 ? list : open_source(context)->list_workers();
}

Run declare_workers(CLI::App& app, Context& context) {
  auto flags = std::make_shared<WorkersFlags>();
  add_choice(app, "WHAT", flags->what, {"drain", "resume"},
             "Give a worker no more trials, or give it trials again; without: list all",
             {{"undrain", "resume"}, {"enable", "resume"}, {"disable", "drain"}});
  app.add_option("NAME", flags->name, "The worker")->type_name("");
  app.add_option("--reason", flags->reason, "drain: why, for those who look")->type_name("TEXT");
  app.add_flag("--stop-running", flags->stop_running,
               "drain: also checkpoint and requeue its running trials");
  add_source(app, context);
  return [&context, flags]() -> int {
    if (!flags->what.empty() && flags->name.empty())
      throw Error{Code::kInvalidArgument,
                  fmt::format("workers {}: which worker? Expected: ablate workers {} NAME", flags->what,
                              flags->what)};
    if (flags->what != "drain" && (!flags->reason.empty() || flags->stop_running))
      throw Error{Code::kInvalidArgument,
                  "--reason and --stop-running belong to 'ablate workers drain NAME'"};
    if (!flags->what.empty() && !context.store_flag.empty())
      throw Error{Code::kInvalidArgument, "a worker is drained by its scheduler: leave --store out"};
    const auto list = flags->what.empty() ? open_source(context)->list_workers() : drain(context, *flags);
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
    .summary = "List workers, their slots and what runs there; drain one",
    .example = "ablate workers\nablate workers drain gpu-07 --reason 'new driver' --stop-running",
    .declare = declare_workers,
};

}  // namespace abl::cli
