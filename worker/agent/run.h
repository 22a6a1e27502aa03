// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "worker/agent/command_files.h"
#include "worker/agent/crew.h"
#include "worker/agent/data_cache.h"
#include "worker/agent/launch.h"
#include "worker/agent/log_limit.h"
#include "worker/agent/metrics_file.h"
#include "worker/agent/resource_sampler.h"
#include "worker/agent/trainer_output.h"
#include "worker/agent/trouble.h"

namespace abl::agent {
class Pipes;

/// Who keeps what runs say, and knows how the worker itself is. Called on the runs' threads.
class RunOwner {
 public:
  virtual ~RunOwner() = default;
  /// When a run asks whether the worker is to blame.
  enum class Asked {
    kBefore,      ///< it is about to start
    kFailed,      ///< its program has failed
    kFailedFull,  ///< and its last words were of a disk without room
  };
  /// Throws: Error when the batch cannot be kept.
  virtual void append(std::uint32_t run, const ablate::v1::RunBatch& batch) = 0;
  /// Bytes of the run that are kept and not acknowledged.
  virtual std::uint64_t backlog(std::uint32_t run) = 0;
  /// The run's program is about to start in this folder, and then is the leader of this group: to be found
  /// again when the worker is killed.
  /// Throws: Error when that cannot be kept.
  virtual void starts(std::uint32_t run, const std::filesystem::path& directory,
                      std::optional<pid_t> group) = 0;
  /// Something of the worker's own failed, or its trainer did not start: the run is lost by it.
  virtual void troubled(const Trouble& trouble) = 0;
  /// Why the worker is to blame when this trial cannot run here or has failed here: its data are gone, its
  /// disk is full. Looks, which may take long. Empty: it is not.
  virtual std::string fault(const ablate::v1::Assign& assign, Asked asked) = 0;
  /// The run's program was started: looks at what it takes of the machine as long as what is returned lives.
  /// Null: nobody does.
  virtual std::unique_ptr<ResourceSampler::Watch> watch(SampledRun run) {
    static_cast<void>(run);
    return nullptr;
  }
  /// Fetches a file that the run needs from the scheduler's depot. Returns: why it is not there then, or
  /// empty. Throws: Error of what is not the copy's fault and may pass: kUnavailable where the depot gives no
  /// answer; of the worker's disk.
  virtual std::string fetch(std::uint32_t run, const std::string& sha256, std::uint64_t bytes,
                            const std::filesystem::path& file, const std::function<bool()>& go_on) {
    static_cast<void>(run), static_cast<void>(sha256), static_cast<void>(bytes), static_cast<void>(file),
        static_cast<void>(go_on);
    return "no scheduler has a depot here";
  }
  /// The same of a data set that was pushed there.
  virtual DataCache::Held fetch_data(const ablate::v1::Assign& assign, const std::function<bool()>& go_on) {
    static_cast<void>(assign), static_cast<void>(go_on);
    return {.file = {}, .hold = {}, .why = "no scheduler has a depot here"};
  }
  /// Whether checkpoints are brought to a depot.
  virtual bool brings() { return false; }
  /// The run ends, and its trial may go on elsewhere, or others take its weights (`wanted`): brings what it
  /// wrote to the depot before that is said, if it does not take long.
  virtual void bring(std::uint32_t run, bool wanted, const std::function<bool()>& go_on) {
    static_cast<void>(run), static_cast<void>(wanted), static_cast<void>(go_on);
  }
  /// The run's program is gone, and what it had started, so its slots are free. What is left is to say how it
  /// ended, which may wait for a moment.
  virtual void vacated(std::uint32_t run) = 0;
  /// Nothing of the run is left to be done here. `last` is its last batch; nothing after `Run::kill`.
  virtual void finished(std::uint32_t run, std::optional<ablate::v1::RunBatch> last) = 0;
  /// In place of `finished`, of a run that cannot run here and has left nothing.
  virtual void refused(std::uint32_t run, const std::string& reason) = 0;
};

/// One execution of a trial: its folder, its program in a process group of its own, what that prints, and its
/// end. A thread of the crew starts the program, reads its pipes and reaps it; the program dies with that
/// thread, and what it has started itself and left is ended with the run (leftovers.h). What fails that is
/// the worker's own, not the program's, ends it as lost. Above a backlog the pipes are not read, so that the
/// program has to wait; its log is limited. The destructor kills what still runs and waits until it is over:
/// never call it where `RunOwner` would block.
class Run {
 public:
  /// `store`: the results file that it is in, which its folder says; empty: none that is known.
  /// Throws: std::exception when there is no thread or descriptor for it.
  Run(ablate::v1::Assign assign, std::vector<Slot> slots, const RunSettings& settings, RunOwner& owner,
      const Clock& clock, Crew& crew, std::string store = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// SIGTERM, and SIGKILL after the grace period; the run ends as stopped, or as lost, for this reason.
  /// Thread: any.
  void stop(const std::string& reason, bool lost = false);
  /// SIGKILL, and no further word.
  /// Thread: any.
  void kill();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Orders {
    std::string stop_reason;
    bool stop = false, kill = false, lost = false;
  };
  class Unfetched;
  void execute();
  void keep_document();
  std::string get_pushed_data();
  void say(const std::string& text);
  ablate::v1::RunEnded run_program(TrainerOutput& output, const Resume& resume);
  ChildExit supervise(ChildProcess& child, Pipes& pipes, TrainerOutput& output);
  bool held_back(bool stopping);
  void say_last_checkpoint(const ablate::v1::RunEnded& how, TrainerOutput& output);
  SampledRun sampled(pid_t program) const;
  void keep_if_due(TrainerOutput& output);
  void keep(TrainerOutput& output);
  std::string fetch_file(const std::string& sha256, std::uint64_t bytes, const std::filesystem::path& file);
  void bring_checkpoint(const ablate::v1::RunEnded& how, TrainerOutput& output);
  MetricsFile::Options metrics_options(const Resume& resume) const;
  void end_metrics_file(TrainerOutput& output);
  ablate::v1::RunBatch last_batch(ablate::v1::RunBatch last);
  void await_order(Milliseconds patience);
  ablate::v1::RunEnded lost(const std::string& why) const;
  ablate::v1::RunEnded lost(const Trouble& trouble);
  ablate::v1::RunEnded lost(const Unfetched& file);
  bool found_another_file(const TrainerOutput& output) const;
  std::optional<Trouble> trouble_of(const ChildExit& exit, const TrainerOutput& output) const;
  ablate::v1::RunEnded ended(const ChildExit& exit, TrainerOutput& output);
  ablate::v1::RunEnded ended_while_probing(const ChildExit& exit, TrainerOutput& output);
  void note_patterns(ablate::v1::RunEnded& ended, const TrainerOutput& output) const;
  void wake();
  Orders orders() { return *orders_.lock(); }

  ablate::v1::Assign assign_;  ///< with the paths of what was fetched
  const std::string store_;
  const std::vector<Slot> slots_;
  const RunSettings& settings_;
  RunOwner& owner_;
  const Clock& clock_;
  Guarded<Orders> orders_;
  const Milliseconds grace_;
  std::filesystem::path directory_;
  DataCache::Held data_;                           ///< of a data set that was pushed
  std::optional<ConfinedRun> confined_;            ///< of a command that is started
  std::unique_ptr<ResourceSampler::Watch> watch_;  ///< of its program
  std::optional<CommandFiles> files_;              ///< of its program
  LogLimit log_;
  std::optional<MetricsFile> metrics_file_;  ///< from the start of the program on
  ablate::v1::RunBatch unkept_;              ///< what the owner could not keep
  struct Exceeded {
    std::string limit;      ///< in words; empty: none
    bool for_good = false;  ///< another attempt would meet it again
  };
  Exceeded exceeded_limit(SteadyTime began, SteadyTime heard, const TrainerOutput& output) const;
  Exceeded exceeded_;        ///< what it was stopped for
  Milliseconds took_{};      ///< from the start of its program to its end
  bool cleared_ = false;     ///< nothing that its program had started is left
  bool overstayed_ = false;  ///< killed after the grace period
  bool holds_back_ = false;  ///< the program has to wait until more is acknowledged
  int wake_ = -1;            ///< eventfd: there are new orders
  /// Of two owners: who says so may be the last to touch it.
  std::shared_ptr<std::binary_semaphore> over_ = std::make_shared<std::binary_semaphore>(0);
};

}  // namespace abl::agent
