// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file_lock.h"
#include "cli/command.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kPatience = 90s;  // trainers write a checkpoint before they go

/// Waits until the process that holds the lock is gone. Throws: Error when it stays.
void wait_until_gone(const Context& context, int pid) {
  const auto start = std::chrono::steady_clock::now();
  Progress progress{context.err, "stopping", "s", 0};
  while (FileLock::is_held(context.up_lock())) {
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited > kPatience)
      throw Error{Code::kInternal, fmt::format("'ablate up' (process {}) has not stopped within {} s: see {}",
                                               pid, kPatience.count(), (context.home() / "logs").string())};
    progress.update(std::chrono::duration<double>(waited).count());
    std::this_thread::sleep_for(50ms);
  }
}

/// The copy of a results file that was deleted or replaced since `up` was started, or empty.
fs::path rescue_of(const fs::path& store, fs::file_time_type since) {
  fs::path newest;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator{store.parent_path(), absent})
    if (entry.path().filename().string().starts_with(store.filename().string() + ".rescued-") &&
        entry.last_write_time(absent) >= since && entry.path() > newest &&
        entry.path().extension() != ".partial")
      newest = entry.path();
  return newest;
}

/// Throws: Error where the results are not in their file.
void check_results(const fs::path& store, fs::file_time_type since) {
  const fs::path rescue = rescue_of(store, since);
  const bool there = fs::exists(store);
  if (there && rescue.empty()) return;
  throw Error{Code::kUnavailable,
              fmt::format("stopped, but {} was {} while it was in use; {}", store.string(),
                          there ? "replaced" : "deleted",
                          rescue.empty() ? "its contents could not be saved: see the scheduler's log"
                                         : fmt::format("its contents were saved to {}, which can replace it",
                                                       rescue.string()))};
}

Run declare_down(CLI::App& app, Context& context) {
  add_home(app, context);
  add_json(app, context);
  return [&context]() -> int {
    const auto up = running_up(context);
    fs::file_time_type since{};  // of its start
    if (!up && FileLock::is_held(context.up_lock()))
      throw Error{
          Code::kUnavailable,
          fmt::format("'ablate up' is still starting in {}: try again in a moment", context.home().string())};
    if (up) {
      std::error_code unknown;
      since = fs::last_write_time(context.up_file(), unknown);
      if (kill(up->pid, SIGTERM) != 0)
        throw system_error(fmt::format("cannot stop process {}", up->pid), errno);
      wait_until_gone(context, up->pid);
      check_results(up->store, since);
    }
    if (context.json)
      context.out.line(nlohmann::ordered_json{{"stopped", up.has_value()}, {"pid", up ? up->pid : 0}}.dump());
    else if (up)
      context.out.line(fmt::format("stopped; the results are in {}", up->store));
    else
      context.out.line(fmt::format("nothing is running in {}", context.home().string()));
    return kExitOk;
  };
}

}  // namespace

extern const Command kDownCommand{
    .place = 20,
    .name = "down",
    .summary = "Stop what 'ablate up' started",
    .example = "ablate down",
    .success = "stopped, or was not running",
    .failure = "it did not stop in time",
    .declare = declare_down,
};

}  // namespace abl::cli
