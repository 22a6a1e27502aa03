// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "tests/agent/fixtures.h"
#include "worker/agent/crew.h"
#include "worker/agent/run.h"

namespace abl::agent {

using ablate::v1::RunBatch;
using ablate::v1::RunEnded;

/// Keeps all batches; its disk is full, its data gone, or the scheduler far behind, when a test says so.
class Keeper final : public RunOwner {
 public:
  void append(std::uint32_t, const RunBatch& batch) override {
    const std::scoped_lock lock{mutex_};
    if (full_) throw Error{Code::kResourceExhausted, "cannot write spool: No space left on device"};
    batches_.push_back(batch);
    changed_.notify_all();
  }
  std::uint64_t backlog(std::uint32_t) override { return backlog_; }
  void starts(std::uint32_t, const std::filesystem::path& directory, std::optional<pid_t> group) override {
    const std::scoped_lock lock{mutex_};
    kept_ = {directory, group};
  }
  void troubled(const Trouble& trouble) override {
    const std::scoped_lock lock{mutex_};
    troubles_.push_back(trouble);
  }
  std::string fault(const ablate::v1::Assign&, Asked asked) override {
    const std::scoped_lock lock{mutex_};
    if (asked == Asked::kFailedFull && !fault_of_full_disk_.empty()) return fault_of_full_disk_;
    return asked == Asked::kBefore ? fault_at_start_ : fault_of_failure_;
  }
  std::string fetch(std::uint32_t, const std::string&, std::uint64_t, const std::filesystem::path& file,
                    const std::function<bool()>&) override {
    const std::scoped_lock lock{mutex_};
    write_file(file, "fetched");
    if (!fetch_error_) return fetch_failed_;
    throw Error{*fetch_error_, "the depot is away"};
  }
  void vacated(std::uint32_t) override {
    const std::scoped_lock lock{mutex_};
    vacated_ = true;
    changed_.notify_all();
  }
  void finished(std::uint32_t, std::optional<RunBatch> last) override {
    const std::scoped_lock lock{mutex_};
    if (last) batches_.push_back(std::move(*last));
    finished_ = true;
    changed_.notify_all();
  }
  void refused(std::uint32_t, const std::string& reason) override {
    const std::scoped_lock lock{mutex_};
    refusal_ = reason;
    finished_ = true;
    changed_.notify_all();
  }
  void disk_is_full() {
    const std::scoped_lock lock{mutex_};
    full_ = true;
  }
  void blame(const std::string& at_start, const std::string& of_failure) {
    const std::scoped_lock lock{mutex_};
    fault_at_start_ = at_start, fault_of_failure_ = of_failure;
  }
  void blame_a_full_disk(const std::string& why) {
    const std::scoped_lock lock{mutex_};
    fault_of_full_disk_ = why;
  }
  /// A fetch finds no such copy, or cannot be made now.
  void fail_fetches(const std::string& why, std::optional<Code> error = {}) {
    const std::scoped_lock lock{mutex_};
    fetch_failed_ = why, fetch_error_ = error;
  }
  void set_backlog(std::uint64_t bytes) { backlog_ = bytes; }
  std::vector<Trouble> troubles() {
    const std::scoped_lock lock{mutex_};
    return troubles_;
  }
  std::string refusal() {
    const std::scoped_lock lock{mutex_};
    return refusal_;
  }
  std::pair<std::filesystem::path, std::optional<pid_t>> kept_program() {
    const std::scoped_lock lock{mutex_};
    return kept_;
  }
  std::size_t batches() {
    const std::scoped_lock lock{mutex_};
    return batches_.size();
  }
  std::vector<RunBatch> wait_for_end() {
    std::unique_lock lock{mutex_};
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return finished_; })) << "the run has not ended";
    return batches_;
  }
  bool wait_for_slots() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kPatience, [&] { return vacated_ || finished_; }) && !finished_;
  }
  /// When the program was started, as soon as that is said.
  std::optional<std::int64_t> launched() {
    std::unique_lock lock{mutex_};
    std::optional<std::int64_t> when;
    changed_.wait_for(lock, kPatience, [&] {
      for (const RunBatch& batch : batches_)
        if (batch.has_launched_ms()) when = batch.launched_ms();
      return when.has_value();
    });
    return when;
  }
  bool heard(const std::string& log) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kPatience,
                             [&] { return log_of(batches_).find(log) != std::string::npos; });
  }
  bool heard_of_checkpoint() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kPatience, [&] {
      return std::ranges::any_of(batches_,
                                 [](const RunBatch& batch) { return !batch.checkpoints().empty(); });
    });
  }
  bool found_point(const std::string& metric) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kPatience, [&] { return !points(batches_, metric).empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RunBatch> batches_;
  bool full_ = false, vacated_ = false, finished_ = false;
  std::atomic<std::uint64_t> backlog_ = 0;
  std::string fault_at_start_, fault_of_failure_, fault_of_full_disk_;
  std::string fetch_failed_;
  std::optional<Code> fetch_error_;
  std::vector<Trouble> troubles_;
  std::string refusal_;
  std::pair<std::filesystem::path, std::optional<pid_t>> kept_;
};

class RunTest : public testing::Test {
 protected:
  RunTest() {
    settings.runs_root = folder.path() / "runs";
    settings.host = "here";
  }
  agent::Run& start(ablate::v1::Assign assign) {
    return run.emplace(std::move(assign),
                       std::vector<Slot>{{.device = "cpu", .name = "", .threads = 2, .visible = {}}},
                       settings, keeper, clock, crew);
  }
  agent::Run& start(const std::string& script) { return start(shell_assignment(1, script)); }
  RunEnded end_of(const std::string& script) {
    start(script);
    return keeper.wait_for_end().back().ended();
  }
  /// Of another run, in a folder of its own.
  RunEnded end_alone(ablate::v1::Assign assign) {
    assign.set_attempt(static_cast<std::uint32_t>(++attempts));
    Keeper own;
    const agent::Run other{std::move(assign),
                           std::vector<Slot>{{.device = "cpu", .name = "", .threads = 2, .visible = {}}},
                           settings,
                           own,
                           clock,
                           crew};
    return own.wait_for_end().back().ended();
  }
  static std::string metric_line(int step, const std::string& value) {
    return fmt::format(R"(echo '{{"event":"metric","step":{},"values":{{"val/loss":{}}}}}'; )", step, value);
  }
  std::filesystem::path directory() const { return settings.runs_root / "101/1"; }
  /// Of a process that wrote its own id there.
  pid_t pid_in(const char* name) const { return std::stoi(read_file(directory() / name)); }

  TemporaryFolder folder;
  RunSettings settings;
  SystemClock clock;
  Keeper keeper;
  Crew crew;
  int attempts = 0;
  std::optional<agent::Run> run;
};

}  // namespace abl::agent
