// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/port.h"
#include "cli/up_service.h"

namespace abl::cli {
namespace {

using namespace std::chrono_literals;

void say(const Context& context, const UpRecord& record, const std::string& heading,
         const std::string& worker) {
  if (context.json) return context.out.line(to_json(record));
  context.out.line(context.out.paint(Style::kBold, heading));
  context.out.line("  dashboard  " + record.url);
  context.out.line("  store      " + record.store);
  if (!worker.empty()) context.out.line("  worker     " + worker);
  context.out.line("  logs       " + (context.home() / "logs").string());
}

std::string worker_text(const ablate::v1::WorkerSummary& worker) {
  return fmt::format("{}, {}", worker.name(),
                     plural(static_cast<std::uint64_t>(worker.slots_size()), "slot"));
}

/// Another `up` holds the lock: its record, as soon as it is ready.
UpRecord wait_for_other(const Context& context) {
  for (auto waited = 0ms; waited < 60s; waited += 100ms) {
    if (const auto record = running_up(context)) return *record;
    std::this_thread::sleep_for(100ms);
  }
  throw Error{Code::kUnavailable,
              fmt::format("another 'ablate up' has been starting in {} for 60 s: see its logs folder",
                          context.home().string())};
}

int run_here(const Context& context, const UpOptions& options, const FileLock& lock, bool detached) {
  run_up(context, options, lock, [&](const UpRecord& record, const ablate::v1::WorkerSummary& worker) {
    if (log_format() == LogFormat::kJson && !context.json)
      return log_info({{"dashboard", record.url}, {"store", record.store}, {"worker", worker.name()}},
                      "ablate is up, with its dashboard at {}", record.url);
    say(context, record, "ablate is up", worker_text(worker));
    if (!context.json && !detached)
      context.out.line("Submit a sweep from another terminal: ablate submit FILE. Stop: Ctrl-C");
  });
  return kExitOk;
}

/// The child's life: a session of its own, its words in a file.
void leave_terminal(Context& context, const std::filesystem::path& log) {
  setsid();
  const int null = open("/dev/null", O_RDONLY), file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (null < 0 || file < 0) throw system_error("cannot write " + log.string(), errno);
  dup2(null, STDIN_FILENO);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  close(null);
  close(file);
  context.out = Terminal{stdout};
  context.err = Terminal{stderr};
}

/// What a child said that ended before it was ready; with --json its error goes to stdout, as everybody's.
void say_last_words(const Context& context, const std::string& log) {
  if (log.empty())
    throw Error{Code::kUnavailable,
                "ablate ended while starting and said nothing: run it without --detach to see why"};
  const auto object = log.rfind("{\"error\":");
  if (!context.json || object == std::string::npos)
    return context.err.write(context.err.interactive() ? printable(log) : log);
  context.err.write(log.substr(0, object));
  context.out.write(log.substr(object));
}

/// Waits until the child is ready, or has ended: then what it said is the error.
int wait_for_child(const Context& context, pid_t child, const std::filesystem::path& log) {
  for (;;) {
    if (const auto record = running_up(context); record && record->pid == child) {
      say(context, *record, "ablate is up in the background; stop it with 'ablate down'", "");
      return kExitOk;
    }
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      say_last_words(context, read_file(log));
      return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(kExitFailed);
    }
    std::this_thread::sleep_for(50ms);
  }
}

Run declare_up(CLI::App& app, Context& context) {
  struct Flags {
    UpOptions options;
    bool detach = false;
  };
  auto flags = std::make_shared<Flags>();
  auto& options = flags->options;
  app.add_option("--slots", options.slots, "Trials to run at once [number of GPUs, or shares of the CPU]")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option("--threads", options.threads, "CPU threads per slot")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option("--data", options.data, "Location of a data set, such as cifar10=/data/cifar10; repeatable")
      ->type_name("NAME=FOLDER")
      ->allow_extra_args(false);
  app.add_option("--weights", options.weights,
                 "Location of weights that recipes name (teacher, start); repeatable")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option(kPluginFlag.flag, options.plugins,
                 "Location of a plugin that models name (model.plugin); repeatable. Its code runs here")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option(
         "--format", options.formats,
         "A data format of your own, a shared library (docs/plugins.md); repeatable. Its code runs here")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_flag("--allow-commands", options.allow_commands,
               "Run trials that use command:, that is, programs named in sweep files");
  app.add_option("--webhooks", options.webhooks,
                 "Post what happens (a sweep is complete, a row failed, a cell is significant) to where this "
                 "file says (docs/webhooks.md)")
      ->type_name("FILE");
  app.add_option("--port", options.port,
                 fmt::format("Dashboard's port on 127.0.0.1 [{}, or a free one]", kDefaultPort))
      ->check(whole_number(1, 65535))
      ->type_name("N");
  app.add_flag("--detach", flags->detach, "Run in the background; 'ablate down' stops it");
  add_log_format(app);
  add_home(app, context);
  add_json(app, context);
  return [&context, flags]() -> int {
    check_up(context, flags->options);
    auto lock = FileLock::try_lock(context.up_lock(), FileLock::Kind::kOpenFile);
    if (!lock) {
      say(context, wait_for_other(context), "ablate is up already", "");
      if (!(flags->options == UpOptions{})) context.note("flags ignored: run 'ablate down' first");
      return kExitOk;
    }
    expect_no_scheduler(context, *lock);
    check_room(context, *lock);
    if (!flags->detach) return run_here(context, flags->options, *lock, false);

    const auto log = context.home() / "logs" / "up.log";
    const pid_t child = fork();  // before gRPC has any thread
    if (child < 0) throw system_error("cannot start a process in the background", errno);
    if (child > 0) return wait_for_child(context, child, log);
    leave_terminal(context, log);
    return run_here(context, flags->options, *lock, true);
  };
}

}  // namespace

extern const Command kUpCommand{
    .place = 10,
    .name = "up",
    .summary = "Start scheduler, worker and dashboard on this machine",
    .example = "ablate up --slots 2 --data cifar10=/data/cifar10\nablate up --detach",
    .success = "stopped by Ctrl-C or 'ablate down'; with --detach: it is running",
    .failure = "scheduler or worker keeps exiting",
    .declare = declare_up,
};

}  // namespace abl::cli
