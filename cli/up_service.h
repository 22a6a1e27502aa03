// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/file_lock.h"
#include "cli/context.h"

namespace abl::cli {

struct UpOptions {
  std::uint16_t port = 0;            ///< of the dashboard; 0: the default one, or a free one
  int slots = 0, threads = 0;        ///< 0: the worker decides
  std::vector<std::string> data;     ///< NAME=FOLDER
  std::vector<std::string> weights;  ///< NAME=FILE
  std::vector<std::string> plugins;  ///< NAME=FILE
  std::vector<std::string> formats;  ///< files
  std::string webhooks;              ///< a file; empty: none
  bool allow_commands = false;
  bool operator==(const UpOptions&) const = default;
};

/// Makes the folders of a home: `run` (mode 0700: the way in for everyone who may use the scheduler) and
/// `logs`. Throws: Error when they cannot be made, or when the socket's path would be too long.
void make_home(const Context& context);

/// Checks what can be known before anything is started. Throws: Error naming the flag, folder or program.
void check_up(const Context& context, const UpOptions& options);

/// Throws: Error when the home's disk is too full to start on.
void check_room(const Context& context, const FileLock& lock);

/// Throws: Error{kUnavailable} that says whose scheduler runs on this home already, where `up` did not start
/// it.
void expect_no_scheduler(const Context& context, const FileLock& lock);

/// Runs scheduler and worker of this machine, starting them again when they die, until a stop signal comes.
/// `ready` is called once, when the scheduler answers and the worker has connected. Thread: the main one; no
/// other may run yet. Throws: Error when one of them cannot be kept running.
void run_up(const Context& context, const UpOptions& options, const FileLock& lock,
            const std::function<void(const UpRecord&, const ablate::v1::WorkerSummary&)>& ready);

}  // namespace abl::cli
