// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <sstream>
#include <thread>

#include "base/child_process.h"
#include "base/error.h"
#include "base/named_path.h"
#include "cli/format.h"
#include "cli/source.h"
#include "cli/sweep_checks.h"
#include "planning/plan_time.h"
#include "planning/validate.h"
#include "protocol/command_line.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

namespace v1 = ablate::v1;

/// So long a trial is measured at least, or none of it says much.
constexpr double kSecondsOfOne = 2.5;

struct Here {
  int threads = 0;
  std::string device;
};

/// As the first slot of the workers that are connected; all of them are on this machine.
Here place_here(const Context& context) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Here here{.threads = std::max(1, cores / std::max(1, cores / 2)), .device = "cpu"};
  try {
    const auto known = open_source(context)->list_workers();
    for (const auto& worker : known.workers())
      if (worker.connected() && worker.slots_size() > 0) {
        const auto& slot = worker.slots(0);
        return {.threads = std::max(1, static_cast<int>(slot.threads())),
                .device = slot.device().starts_with("cuda") ? "cuda:0" : "cpu"};
      }
  } catch (const Error&) {  // none, and no results file: as one would be
  }
  return here;
}

}  // namespace

void MeasureFlags::declare(CLI::App& app) {
  app.add_flag(
      "--measure", measure,
      "Time some steps of its trials on this machine first, about 20 seconds; later plans know them");
  auto* const group = app.add_option_group("of --measure");
  group->add_option("--measure-seconds", seconds, "For about so long, the start of the program not counted")
      ->check(abl::seconds())
      ->type_name("SECONDS")
      ->capture_default_str();
  group->add_option("--threads", threads, "Compute threads [as a connected worker's slot]")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  group->add_option("--device", device, "cpu, cuda or cuda:N [as a connected worker's slot]")
      ->type_name("DEVICE");
  group
      ->add_option(kDataFlag.flag, data,
                   "Folder of a data set on this machine (repeatable); without it images are drawn")
      ->type_name("NAME=FOLDER");
}

std::vector<v1::Calibration> measure(Context& context, const v1::SweepFile& file, const MeasureFlags& flags) {
  const auto trainer = protocol::find_trainer();
  if (trainer.empty()) throw Error{Code::kNotFound, protocol::kNoTrainer};
  expect_there(kDataFlag, parse_named_paths(kDataFlag, flags.data));
  const auto spec = planning::parse(file);
  const auto most = static_cast<std::size_t>(std::max(1.0, flags.seconds / kSecondsOfOne));
  const auto documents = planning::to_measure(spec, most);
  const auto distinct = planning::to_measure(spec, spec.rows.size()).size();
  if (documents.empty()) {
    context.note("nothing to measure: no row is a training of ablate-trainer");
    return {};
  }
  const Here here = place_here(context);
  const int threads = flags.threads > 0 ? flags.threads : here.threads;
  const std::string device = flags.device.empty() ? here.device : flags.device;
  context.note(
      fmt::format("measuring {} on {} for about {}{}", plural(documents.size(), "kind") + " of step",
                  device == "cpu" ? plural(static_cast<std::uint64_t>(threads), "CPU thread") : device,
                  format_duration(flags.seconds),
                  distinct > documents.size()
                      ? fmt::format("; {} others follow from their FLOPs", distinct - documents.size())
                      : ""));
  const auto cores = std::max(1u, std::thread::hardware_concurrency());
  if (double load = 0; ::getloadavg(&load, 1) == 1 && device == "cpu" && load + threads > cores + 0.5)
    context.note(fmt::format("other work takes this machine (load {:.1f} on {}): times may come out too long",
                             load, plural(cores, "core")));
  std::string input;
  for (const auto& document : documents) input += document + "\n";
  protocol::Arguments arguments{"calibrate",
                                "--seconds",
                                fmt::format("{}", flags.seconds),
                                protocol::flag::kThreads,
                                std::to_string(threads),
                                protocol::flag::kDevice,
                                device};
  for (const auto& named : flags.data) arguments.insert(arguments.end(), {kDataFlag.flag, named});
  // as workers start trainers: threads that wait for each other leave the cores to others soon
  if (!std::getenv("OMP_WAIT_POLICY")) ::setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
  constexpr auto kPatience = std::chrono::minutes{10};
  std::istringstream answers{run_program(protocol::with_program(trainer, arguments), input, kPatience)};
  std::vector<v1::Calibration> measured;
  std::string why;
  for (const auto& document : documents) {
    std::string line;
    if (!std::getline(answers, line)) break;
    const auto answer = nlohmann::json::parse(line, nullptr, false);
    if (!answer.is_object() || answer.contains("error")) {
      why = answer.is_object() ? answer.value("error", std::string{}) : line;
      continue;
    }
    v1::Calibration calibration;
    if (!google::protobuf::util::JsonStringToMessage(line, &calibration).ok()) {
      why = "unknown output of ablate-trainer: " + line;
      continue;
    }
    calibration.set_config(document);
    measured.push_back(std::move(calibration));
  }
  if (measured.size() < documents.size())
    context.note(fmt::format("{} of {} could not be measured{}", documents.size() - measured.size(),
                             plural(documents.size(), "kind") + " of step", why.empty() ? "" : ": " + why));
  return measured;
}

}  // namespace abl::cli
