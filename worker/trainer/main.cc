// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "config/presets.h"
#include "config/trial_document.h"
#include "worker/trainer/describe.h"
#include "worker/trainer/terminal_events.h"
#include "worker/trainer/training.h"

namespace {

using namespace abl;

std::atomic<bool> stop_asked = false;  // set by SIGTERM and SIGINT: checkpoint and stop

constexpr const char* kFooter =
    "Example:\n  ablate-trainer train --config trial.json --run-dir run --threads 2\n\n"
    "Exit codes: 0 done, or stopped on request; 1 the training failed; 2 bad input; 3 a file or device could "
    "not be had\n";

config::Json parse_json(const std::string& file) {
  try {
    return config::Json::parse(read_file(file));
  } catch (const config::Json::parse_error& error) {
    throw Error{Code::kInvalidArgument, fmt::format("{}: not JSON: {}", file, error.what())};
  }
}

/// Sets "model.depth=6" in a document; a value that is not JSON is taken as text.
void set_key(config::Json& document, const std::string& assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos)
    throw Error{Code::kInvalidArgument, fmt::format("--set {}: expected key=value", assignment)};
  std::string pointer = "/" + assignment.substr(0, equals);
  std::ranges::replace(pointer, '.', '/');
  auto value = config::Json::parse(assignment.substr(equals + 1), nullptr, false);
  document[config::Json::json_pointer{pointer}] =
      value.is_discarded() ? config::Json(assignment.substr(equals + 1)) : value;
}

int train(trainer::TrainingOptions options, const std::string& config_file, bool json) {
  std::unique_ptr<trainer::Events> events;
  if (json || !isatty(STDOUT_FILENO))
    events = std::make_unique<trainer::JsonLines>();
  else
    events = std::make_unique<trainer::TerminalEvents>();
  try {
    options.trial = config::read_trial_or_throw(parse_json(config_file));
    options.config_hash = config::config_hash(config::canonical_text(options.trial));
    std::filesystem::create_directories(options.run_dir);
    trainer::Training training{std::move(options), *events};
    const bool complete = training.run(stop_asked);
    events->end(complete ? "completed" : "stopped", complete ? "" : "stopped on request", true);
    return kExitOk;
  } catch (const Error& error) {
    // what the same machine would meet again is not worth a retry; a full disk, a file system that was away
    // (the system errors that have no code of their own) or a lost device may pass
    const auto code = exit_code(error.code());
    events->end("failed", error.what(), code == kExitUnavailable || error.code() == Code::kUnknown);
    return code;
  } catch (const c10::Error& error) {
    events->end("failed", error.what_without_backtrace(), true);
  } catch (const std::exception& error) {
    events->end("failed", error.what(), true);
  }
  return kExitFailed;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Trains one trial of an ablation sweep, or counts a model. A worker starts it; it is at home on a "
      "command line too.",
      "ablate-trainer"};
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  bool version = false, json = false;
  app.add_flag("--version", version, "Print the version and the result version");
  app.add_flag("--json", json, "Machine-readable output");

  trainer::TrainingOptions options;
  std::string config_file, preset;
  std::vector<std::string> settings;
  double checkpoint_seconds = options.checkpoint_every.count();
  bool lines = false;
  auto* train_command = app.add_subcommand(
      "train", "Train a trial: events on stdout as docs/trainer-protocol.md describes, a bar on a terminal");
  train_command->add_option("--config", config_file, "The trial's JSON document")->required();
  train_command->add_option("--run-dir", options.run_dir, "Where checkpoints go")->required();
  train_command->add_option("--resume", options.resume, "Go on from this checkpoint");
  train_command->add_option("--resume-sha256", options.resume_sha256, "Its digest as reported");
  train_command->add_option("--data-root", options.data_root, "Folder of the data set");
  train_command->add_option("--threads", options.threads, "Threads for the products")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  train_command->add_option("--device", options.device, "cpu or cuda:N")->capture_default_str();
  train_command->add_option("--checkpoint-seconds", checkpoint_seconds, "Time between checkpoints")
      ->envname("ABLATE_CHECKPOINT_SECONDS")
      ->capture_default_str();
  train_command->add_flag("--json", json, "Events as JSON Lines on a terminal too");
  train_command->footer(kFooter);

  auto* describe_command = app.add_subcommand(
      "describe", "Count a model: parameters and multiply-adds, without building it in memory");
  auto* source = describe_command->add_option_group("source", "What to count");
  source->add_option("--preset", preset, "A model by name, at its usual image size and classes");
  source->add_option("--config", config_file, "A trial's JSON document");
  source->add_flag("--stdin", lines, "Model documents on stdin, a line each; a line of counts for each");
  source->require_option(1);
  describe_command->add_option("--set", settings, "key=value, over the preset or config (repeatable)");
  describe_command->add_flag("--json", json, "One JSON object");
  describe_command->footer(
      "Example:\n  ablate-trainer describe --preset simple-vit-s --set model.attention.kernel=gaussian --set "
      "model.attention.probe=inside\n");

  auto* presets_command = app.add_subcommand("presets", "List the models that have a name");
  presets_command->add_flag("--json", json, "As JSON");
  presets_command->footer("Example:\n  ablate-trainer presets\n");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }

  if (version) {
    if (json)
      std::cout << config::Json{{"version", ABLATE_VERSION},
                                {"result_version", config::kResultVersion},
                                {"torch", TORCH_VERSION}}
                       .dump()
                << '\n';
    else
      std::cout << fmt::format("ablate-trainer {} (result version {}, PyTorch {})\n", ABLATE_VERSION,
                               config::kResultVersion, TORCH_VERSION);
  } else if (*train_command) {
    options.checkpoint_every = std::chrono::duration<double>{checkpoint_seconds};
    return train(std::move(options), config_file, json);
  } else if (*describe_command && lines) {
    trainer::describe_lines(std::cin, std::cout);
  } else if (*describe_command) {
    config::Json document = config_file.empty() ? config::Json{{"model", {{"preset", preset}}},
                                                               {"data", {{"name", "imagenet-1k"}}},
                                                               {"recipe", {{"use", "msf-imagenet"}}},
                                                               {"seed", 0}}
                                                : parse_json(config_file);
    for (const auto& setting : settings) set_key(document, setting);
    trainer::describe_model(config::read_trial_or_throw(document), json, std::cout);
  } else if (*presets_command) {
    config::Json names = config::Json::array();
    for (const auto& entry : config::presets()) {
      if (json)
        names.push_back(entry.name);
      else
        std::cout << entry.name << '\n';
    }
    if (json) std::cout << names.dump() << '\n';
  } else {
    std::cout << app.help();
    return kExitUsage;
  }
  return kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { stop_asked = true; });
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::cerr << "ablate-trainer: " << error.what() << '\n';
    return exit_code(error.code());
  } catch (const std::exception& error) {
    std::cerr << "ablate-trainer: " << error.what() << '\n';
    return kExitFailed;
  }
}
