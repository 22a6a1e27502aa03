// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "launchers/launcher.h"

namespace abl::launchers {

struct SlurmOptions {
  std::string store_id;             ///< in the names of its jobs: the pilots of other stores are not ours
  std::string scheduler;            ///< where workers find it
  std::filesystem::path script;     ///< is written there: what Slurm runs; the arguments say the rest
  Milliseconds time_limit{20'000};  ///< of a command
};

/// Pilots as jobs of Slurm, one node each. A pilot is known by its job's name, which has the store's identity
/// and the queue, and by this user; all are asked for in one call of squeue. Passes lie in `.join` of the
/// queue's home, which this machine and the nodes share.
class SlurmLauncher final : public Launcher {
 public:
  /// Writes the script. `queues`: those of this kind.
  /// Throws: Error where it cannot be written.
  SlurmLauncher(SlurmOptions options, const std::vector<QueueConfig>& queues);

  std::vector<Pilot> list(const std::stop_token& stop) override;
  std::string submit(const QueueConfig& queue, const std::optional<Pass>& pass,
                     const std::stop_token& stop) override;
  void cancel(const std::vector<Pilot>& pilots, const std::stop_token& stop) override;
  void remove(const QueueConfig& queue, const Leftovers& leftovers, const std::stop_token& stop) override;

 private:
  void ask_how_they_ended(std::vector<Pilot>& pilots, const std::stop_token& stop);
  std::string run(const std::vector<std::string>& argv, const std::stop_token& stop) const;

  SlurmOptions options_;
  std::map<std::string, std::string> queue_of_job_name_;
  std::map<std::string, Pilot> live_;   // as they were listed last
  std::set<std::string> asked_to_end_;  // of them; a second order is no question any more
};

/// The argv of sbatch for a pilot. Of its pass it has the names of two files.
std::vector<std::string> sbatch_argv(const QueueConfig& queue, const SlurmOptions& options,
                                     const std::optional<Pass>& pass = {});
/// What a job of this queue is called.
std::string job_name(const std::string& store_id, const std::string& queue);
/// The id that `sbatch --parsable` wrote: "4711", or "4711;cluster". Throws: Error for anything else.
std::string parse_job_id(std::string_view text);
/// The pilots in what squeue wrote, by `kSqueueFormat`. Lines that are not of these jobs, of an array, or
/// that cannot be read are left out: what is not understood is not ours.
std::vector<Pilot> parse_squeue(std::string_view text,
                                const std::map<std::string, std::string>& queue_of_job_name);
inline constexpr const char* kSqueueFormat = "%i|%T|%M|%j|%N|%r";
/// How jobs ended, by id, in what `sacct --parsable2 --format JobIDRaw,State,ElapsedRaw` wrote.
std::map<std::string, Pilot> parse_sacct(std::string_view text);

}  // namespace abl::launchers
