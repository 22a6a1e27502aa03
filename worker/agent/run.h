// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "worker/agent/launch.h"
#include "worker/agent/trainer_output.h"

namespace abl::agent {

/// Who keeps what runs say. Called on the runs' threads.
class RunOwner {
 public:
  virtual ~RunOwner() = default;
  /// Throws: Error when the batch cannot be kept; the run then ends with that as its reason.
  virtual void append(std::uint32_t run, const ablate::v1::RunBatch& batch) = 0;
  /// The run's program is gone and its slots are free. `last` is its last batch; nothing after `Run::kill`.
  virtual void finished(std::uint32_t run, std::optional<ablate::v1::RunBatch> last) = 0;
};

/// One execution of a trial: its folder, its program in a process group of its own, what that prints, and its
/// end. A thread of its own starts the program, reads its pipes and reaps it; the program dies with that
/// thread. The destructor kills what still runs and waits for the thread: never call it where `RunOwner`
/// would block.
class Run {
 public:
  Run(ablate::v1::Assign assign, std::vector<Slot> slots, const RunSettings& settings, RunOwner& owner,
      const Clock& clock);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// SIGTERM, and SIGKILL after the grace period; the run ends as stopped, for this reason. Thread: any.
  void stop(const std::string& reason);
  /// SIGKILL, and no further word. Thread: any.
  void kill();

 private:
  struct Orders {
    std::string stop_reason;
    bool stop = false, kill = false;
  };
  class Pipes;
  void execute();
  ablate::v1::RunEnded run_program(TrainerOutput& output, const Resume& resume);
  ChildExit supervise(ChildProcess& child, Pipes& pipes, TrainerOutput& output);
  ablate::v1::RunEnded ended(const ChildExit& exit, const TrainerOutput& output);
  void wake();
  Orders orders() { return *orders_.lock(); }

  const ablate::v1::Assign assign_;
  const std::vector<Slot> slots_;
  const RunSettings& settings_;
  RunOwner& owner_;
  const Clock& clock_;
  Guarded<Orders> orders_;
  const Milliseconds grace_;
  std::filesystem::path directory_;
  bool overstayed_ = false;  ///< killed after the grace period
  int wake_ = -1;            ///< eventfd: there are new orders
  std::jthread thread_;
};

}  // namespace abl::agent
