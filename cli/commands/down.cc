// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "cli/command.h"
#include "cli/home_lock.h"

namespace abl::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 90s;  // trainers write a checkpoint before they go

/// Waits until the process that holds the lock is gone. Throws: Error when it stays.
void wait_until_gone(const Context& context, int pid) {
  const auto start = std::chrono::steady_clock::now();
  Progress progress{context.err, "stopping", "s", 0};
  while (HomeLock::is_held(context.up_lock())) {
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited > kPatience)
      throw Error{Code::kInternal, fmt::format("'ablate up' (process {}) has not stopped within {} s: see {}",
                                               pid, kPatience.count(), (context.home() / "logs").string())};
    progress.update(std::chrono::duration<double>(waited).count());
    std::this_thread::sleep_for(50ms);
  }
}

}  // namespace

Run declare_down(CLI::App& app, Context& context) {
  add_home(app, context);
  add_json(app, context);
  return [&context]() -> int {
    const auto up = running_up(context);
    if (!up && HomeLock::is_held(context.up_lock()))
      throw Error{
          Code::kUnavailable,
          fmt::format("'ablate up' is still starting in {}: try again in a moment", context.home().string())};
    if (up) {
      if (kill(up->pid, SIGTERM) != 0)
        throw system_error(fmt::format("cannot stop process {}", up->pid), errno);
      wait_until_gone(context, up->pid);
    }
    if (context.json)
      context.out.line(nlohmann::ordered_json{{"stopped", up.has_value()}, {"pid", up ? up->pid : 0}}.dump());
    else if (up)
      context.out.line(
          std::filesystem::exists(up->store)
              ? fmt::format("stopped; the results are in {}", up->store)
              : fmt::format("stopped; {} was deleted meanwhile, with the results in it", up->store));
    else
      context.out.line(fmt::format("nothing is running in {}", context.home().string()));
    return kExitOk;
  };
}

}  // namespace abl::cli
