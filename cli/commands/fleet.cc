// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "printing/grid.h"

namespace abl::cli {
namespace {

constexpr int kShownEvents = 20;

std::string hours_text(const ablate::v1::FleetQueue& queue) {
  return queue.has_max_gpu_hours() ? fmt::format("{:.1f} of {:.0f}", queue.gpu_hours(), queue.max_gpu_hours())
                                   : fmt::format("{:.1f}", queue.gpu_hours());
}

std::string worker_text(const ablate::v1::FleetPilot& pilot) {
  if (pilot.leaving()) return "told to end";
  if (pilot.state() == "waiting") return "";
  return pilot.busy() ? "busy" : pilot.connected() ? "idle" : "not heard of";
}

std::string fleet_text(const ablate::v1::FleetStatus& fleet, const Terminal& terminal) {
  std::string text;
  if (fleet.dry_run()) text += "dry run: nothing is submitted or ended\n";
  if (!fleet.trouble().empty()) text += terminal.paint(Style::kYellow, fleet.trouble()) + "\n";
  printing::Grid queues{{{"queue"},
                         {"launcher"},
                         {"pilots", true},
                         {"min", true},
                         {"max", true},
                         {"GPU hours", true},
                         {"state"}}};
  for (const auto& queue : fleet.queues())
    queues.add(
        {queue.name(), queue.launcher(), std::to_string(queue.pilots_size()),
         std::to_string(queue.min_workers()), std::to_string(queue.max_workers()), hours_text(queue),
         queue.paused().empty() ? queue.why() : terminal.paint(Style::kYellow, "paused: " + queue.paused())});
  text += queues.text(&terminal);
  printing::Grid pilots{{{"pilot"}, {"queue"}, {"state"}, {"worker"}, {"machine"}, {"ran", true}, {"why"}}};
  bool any = false;
  for (const auto& queue : fleet.queues())
    for (const auto& pilot : queue.pilots()) {
      any = true;
      pilots.add({pilot.id(), queue.name(), pilot.state(), worker_text(pilot), pilot.machine(),
                  fmt::format("{} s", pilot.ran_s()), pilot.said()});
    }
  if (any) text += "\n" + pilots.text(&terminal);
  if (!fleet.events().empty()) text += "\n";
  for (int i = std::max(0, fleet.events_size() - kShownEvents); i < fleet.events_size(); ++i) {
    const auto& event = fleet.events(i);
    text += fmt::format("{:>8}  {}{}{}\n", format_age(event.at(), SystemClock{}.now()), event.queue(),
                        event.queue().empty() ? "" : ": ", event.text());
  }
  return text;
}

struct FleetFlags {
  std::string what, queue, reason;
};

Run declare_fleet(CLI::App& app, Context& context) {
  auto flags = std::make_shared<FleetFlags>();
  add_choice(app, "WHAT", flags->what, {"pause", "resume"},
             "Ask for no more workers for a queue, or ask for them again; without: show all");
  app.add_option("QUEUE", flags->queue, "The queue")->type_name("");
  app.add_option("--reason", flags->reason, "pause: why, for those who look")->type_name("TEXT");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    if (!flags->what.empty() && flags->queue.empty())
      throw Error{
          Code::kInvalidArgument,
          fmt::format("fleet {}: which queue? Expected: ablate fleet {} QUEUE", flags->what, flags->what)};
    if (flags->what != "pause" && !flags->reason.empty())
      throw Error{Code::kInvalidArgument, "--reason belongs to 'ablate fleet pause QUEUE'"};
    Client client{context};
    ablate::v1::FleetStatus fleet;
    if (flags->what.empty()) {
      fleet = client.call(&ablate::v1::Workers::Stub::GetFleet, ablate::v1::GetFleetRequest{});
    } else {
      ablate::v1::PauseFleetQueueRequest request;
      request.set_queue(flags->queue);
      request.set_resume(flags->what == "resume");
      request.set_reason(flags->reason);
      fleet = client.call(&ablate::v1::Workers::Stub::PauseFleetQueue, request);
    }
    if (context.json)
      context.print_json(fleet);
    else
      context.out.write(fleet_text(shown(fleet, context.out), context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kFleetCommand{
    .place = 173,
    .name = "fleet",
    .summary =
        "Show the workers that the scheduler starts by Slurm, Kubernetes or ssh, and why; pause a queue",
    .example = "ablate fleet\nablate fleet pause h100 --reason 'maintenance'",
    .declare = declare_fleet,
};

}  // namespace abl::cli
