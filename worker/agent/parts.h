// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "worker/agent/crew.h"
#include "worker/agent/launch.h"
#include "worker/agent/run.h"

namespace abl::agent {

/// What this worker does of other workers' runs: the ranks on its slots. Such a part is a program like a
/// run's, but it has no spool and says nothing to the scheduler but that it is over. Its log is `ranks.log`
/// in its folder. It ends with the others of its run by itself, also while the scheduler is away: the
/// trainers notice. Thread: any, none where `Owner` would block.
class Parts final : private RunOwner {
 public:
  /// The worker.
  struct Owner {
    /// As RunOwner's.
    std::function<std::string(const ablate::v1::Assign&, Asked)> fault;
    std::function<void(const Trouble&)> troubled;
    std::function<DataCache::Held(const ablate::v1::Assign&, const std::function<bool()>&)> fetch_data;
    /// Its slots are free.
    std::function<void(std::uint32_t run)> vacated;
    std::function<void(ablate::v1::PartEnded)> ended;
  };

  Parts(const RunSettings& settings, const Clock& clock, Crew& crew, Owner owner);
  ~Parts() override { end_all(); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  bool has(std::uint32_t run) const;
  /// Of each its token, for a Hello.
  std::map<std::uint32_t, std::string> tokens() const;
  bool busy() const;
  /// Starts one on free slots. Throws: std::exception when there is no thread or descriptor for it.
  void start(const ablate::v1::Assign& assign, std::vector<Slot> slots, const std::string& store);
  /// SIGTERM, which lets the whole run stop with a checkpoint; SIGKILL after the grace period.
  void stop(std::uint32_t run, const std::string& reason);
  void stop_all(const std::string& reason);
  void kill(std::uint32_t run);
  /// Lets go of those that are over.
  void tidy();
  /// Kills all and waits until they are over: nothing calls the owner afterwards.
  void end_all();

 private:
  struct Part {
    std::string token;
    std::string folder;  ///< where its program runs
    std::unique_ptr<Run> run;
  };
  struct State {
    std::map<std::uint32_t, Part> parts;
    std::vector<std::unique_ptr<Run>> over;  ///< about to leave their threads
  };

  void append(std::uint32_t run, const ablate::v1::RunBatch& batch) override;
  std::uint64_t backlog(std::uint32_t) override { return 0; }
  void starts(std::uint32_t run, const std::filesystem::path& directory, std::optional<pid_t> group) override;
  void troubled(const Trouble& trouble) override { owner_.troubled(trouble); }
  std::string fault(const ablate::v1::Assign& assign, Asked asked) override {
    return owner_.fault(assign, asked);
  }
  DataCache::Held fetch_data(const ablate::v1::Assign& assign, const std::function<bool()>& go_on) override {
    return owner_.fetch_data(assign, go_on);
  }
  void vacated(std::uint32_t run) override { owner_.vacated(run); }
  void finished(std::uint32_t run, std::optional<ablate::v1::RunBatch> last) override;
  void refused(std::uint32_t run, const std::string& reason) override;
  void end(std::uint32_t run, bool failed, const std::string& reason);

  const RunSettings& settings_;
  const Clock& clock_;
  Crew& crew_;
  const Owner owner_;
  mutable Guarded<State> state_;
};

}  // namespace abl::agent
