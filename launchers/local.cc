// SPDX-License-Identifier: Apache-2.0
#include "launchers/local.h"

#include <fmt/format.h>

namespace abl::launchers {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kWorkerGrace = 60s;  // its trainers write a checkpoint
constexpr auto kSchedulerGrace = 15s;

void add_log_format(std::vector<std::string>& argv, LogFormat format) {
  if (format != LogFormat::kText) argv.insert(argv.end(), {"--log-format", std::string{name_of(format)}});
}

void add_named(std::vector<std::string>& argv, const NamedPathFlag& flag, const NamedPaths& paths) {
  for (const auto& [name, path] : paths)
    argv.insert(argv.end(),
                {flag.flag, fmt::format("{}={}", name, fs::absolute(path).lexically_normal().string())});
}

}  // namespace

std::vector<std::string> scheduler_argv(const LocalOptions& options) {
  std::vector<std::string> argv{(options.programs / kSchedulerProgram).string(),
                                "--store",
                                options.store.string(),
                                "--listen",
                                "unix:" + options.socket.string(),
                                "--http-port",
                                fmt::format("{}", options.http_port),
                                "--depot-limit-mib",  // one machine has all that its trials need
                                "0"};
  add_named(argv, kPluginFlag, options.plugins);
  if (!options.webhooks.empty()) argv.insert(argv.end(), {"--webhooks", options.webhooks.string()});
  add_log_format(argv, options.log_format);
  return argv;
}

std::vector<std::string> worker_argv(const LocalOptions& options) {
  std::vector<std::string> argv{(options.programs / kWorkerProgram).string(),
                                "--scheduler",
                                "unix:" + options.socket.string(),
                                "--home",
                                options.home.string(),
                                "--runs-root",
                                (options.home / "runs").string()};
  if (options.slots) argv.insert(argv.end(), {"--slots", fmt::format("{}", options.slots)});
  if (options.threads) argv.insert(argv.end(), {"--threads", fmt::format("{}", options.threads)});
  add_named(argv, kDataFlag, options.data);
  add_named(argv, kWeightsFlag, options.weights);
  add_named(argv, kPluginFlag, options.plugins);
  if (options.allow_commands) argv.emplace_back("--allow-commands");
  add_log_format(argv, options.log_format);
  return argv;
}

LocalMachine::LocalMachine(const LocalOptions& options)
    : scheduler_{kSchedulerProgram, scheduler_argv(options), options.home / "logs" / "scheduler.log"},
      worker_{kWorkerProgram, worker_argv(options), options.home / "logs" / "worker.log"} {}

void LocalMachine::tick(Time now, const std::function<void(const std::string&)>& say) {
  for (auto* program : {&scheduler_, &worker_})
    if (const auto happened = program->tick(now)) say(*happened);
}

void LocalMachine::stop(const std::function<bool()>& hurry) {
  worker_.stop(kWorkerGrace, hurry);
  scheduler_.stop(kSchedulerGrace, hurry);
}

}  // namespace abl::launchers
