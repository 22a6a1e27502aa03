// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <torch/version.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <vector>

#include "base/command_line.h"
#include "base/error.h"
#include "base/fail_point.h"
#include "base/manual_page.h"
#include "config/document/result_version.h"
#include "config/document/trial_document.h"
#include "data/commands/data_commands.h"
#include "protocol/command_line.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/device/failure.h"
#include "worker/trainer/device/gpu.h"

namespace {

using namespace abl;

constexpr const char* kFooter =
    "Example:\n  ablate-trainer train --config trial.json --run-dir run --threads 2\n\n"
    "Exit codes: 0 done, or stopped on request; 1 training failed; 2 invalid input; 3 file or device "
    "unavailable\n";

struct Command {
  const char* name;
  const char* summary;
  abl::Run (*declare)(CLI::App& app);
};

constexpr Command kCommands[] = {
    {"train", "Train a trial: events on stdout as docs/trainer-protocol.md describes, a bar on a terminal",
     &commands::declare_train},
    {"eval", "Evaluate weights on a split of the trial's data", &commands::declare_eval},
    {"verify", "Replay part of a training and check that it is bit-identical", &commands::declare_verify},
    {"export", "Extract the weights of a checkpoint", &commands::declare_export},
    {"describe", "Show a model's parts, parameters, FLOPs and memory without allocating it",
     &commands::declare_describe},
    {"calibrate", "Time a little of each trial: a document a line on stdin, a JSON object a line as answer",
     &commands::declare_calibrate},
    {"infer", "Run a model on one image, or on tensors to compare implementations", &commands::declare_infer},
    {"probe", "Look into a trained model: feature norms, attention maps, accuracy by resolution, …",
     &commands::declare_probe},
    {"data", "Check the images of a data set, or pack them into one file", &data::declare_data},
    {"plugin", "Load a plugin and say what it is: its kind, its keys, its SHA-256",
     &commands::declare_plugin},
    {"presets", "List model presets", &commands::declare_presets},
};

void print_version(bool json) {
  if (json)
    std::cout << config::Json{{"version", ABLATE_VERSION},
                              {"result_version", config::newest_result_version()},
                              {"torch", TORCH_VERSION}}
                     .dump()
              << '\n';
  else
    std::cout << fmt::format("ablate-trainer {} (result version {}, PyTorch {})\n", ABLATE_VERSION,
                             config::newest_result_version(), TORCH_VERSION);
}

int run(int argc, char** argv) {
  CLI::App app{
      "Trains one trial of an ablation sweep, or describes a model. Started by a worker; can also be used "
      "directly.",
      "ablate-trainer"};
  use_plain_help(app);
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  bool version = false, json = false;
  app.add_flag(protocol::flag::kVersion, version, "Print the version and the result version");
  app.add_flag(protocol::flag::kJson, json, "Machine-readable output");
  int gpus = 0;
  app.add_option(protocol::flag::kTryGpus, gpus)
      ->group("");  // hidden: of --version, for a worker whose GPU was lost
  add_manual_flag(app);
  std::vector<std::pair<CLI::App*, abl::Run>> runs;
  for (const auto& command : kCommands) {
    auto* const declared = app.add_subcommand(command.name, command.summary)->group("Commands");
    declared->footer(kFooter);
    runs.emplace_back(declared, command.declare(*declared));
  }
  check_spelling(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw Error{Code::kInvalidArgument, complaint(app, error)};
  }
  if (version) {
    device::try_gpus(gpus);
    print_version(json);
    return kExitOk;
  }
  for (const auto& [declared, execute] : runs)
    if (*declared) {
      const int code = execute();
      if (!std::cout.flush()) throw system_error("cannot write standard output", errno != 0 ? errno : EIO);
      return code;
    }
  std::cout << app.help();
  return kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes is an error like any other, and ends no work unasked
  try {
    read_fail_points();
    return run(argc, argv);
  } catch (const Error& error) {
    std::cerr << "ablate-trainer: " << error.what() << '\n';
    return exit_code(error.code());
  } catch (const c10::Error& error) {
    std::cerr << "ablate-trainer: " << device::first_line(error) << '\n';
    return kExitUsage;
  } catch (const std::exception& error) {
    std::cerr << "ablate-trainer: " << error.what() << '\n';
    return kExitFailed;
  }
}
