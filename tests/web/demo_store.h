// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::web {

/// A store as a scheduler would have left it, for the dashboard's tests: the sweep "msf-sharing" of 7 rows by
/// 2 seeds, with its first seed done, its second under way on two workers, and a trial that was lost once.
/// The curves are made up, and always the same.
class DemoStore {
 public:
  static constexpr const char* kSweep = "msf-sharing";
  static constexpr std::uint32_t kSteps = 600;

  explicit DemoStore(const std::filesystem::path& file);

  storage::Database& db() { return db_; }
  /// Runs under way, oldest first.
  std::vector<storage::RunId> running();
  /// Trains every run under way for `steps` more; one that reaches its end completes, and its worker takes
  /// the next trial. Returns: the runs that changed.
  std::vector<storage::RunId> advance(std::uint32_t steps);
  /// Ends a run as failed, for good.
  void fail(storage::RunId run, const std::string& reason);
  /// A finished sweep of two rows by three seeds: in row `orig` the loss of seed 2 is NaN from step 300 on,
  /// in row `a` that of seed 1 at steps 200 to 290 alone. Runs: orig 0, 1, 2, then a 0, 1, 2.
  std::vector<storage::RunId> submit_diverged(const std::string& name);
  /// A finished sweep of one row by three seeds, of which seed 2 reports no val/top1, but 3 lines that are no
  /// metrics.
  void submit_incomplete(const std::string& name);
  /// Gives a sweep labels of 300 letters and headings of 80.
  void lengthen(const std::string& name);
  /// A finished sweep of many rows of one seed each: row-0 ends lowest, the last highest.
  void submit_crowd(const std::string& name, int rows);
  /// A finished sweep of two factors and two seeds, made of kernel dot and gaussian by groups 1, 2 and 4, but
  /// for the last combination; the first row is the baseline.
  void submit_factors(const std::string& name);
  /// Gives a sweep labels that would be harmful as HTML, long, or from right to left.
  void make_hostile(const std::string& name);
  /// Gives a run so many further points of the metric `long`, one at each step: its step, but for -1 at step
  /// 70,000 and NaN at 80,000.
  void grow(storage::RunId run, std::uint32_t points);
  /// A sweep of so many rows by one seed, in groups of 1,000, that all wait but for the first three. The row
  /// "r0000" is the baseline; params go up and down from row to row.
  void submit_long(const std::string& name, int rows);
  /// Gives a completed run what probes would find: feature-norms, subspace-similarity, attention(images=2)
  /// with a picture, and code-norms, which finds nothing. The values depend on the run's number.
  void look_into(storage::RunId run);
  /// Gives a run samples of what it takes of its machine, one every two seconds from `from` on, for so many
  /// seconds: it computes in waves, its memory grows, and for its first minute it waits for data a quarter of
  /// the time. Of runs with an even number a GPU is known as well.
  void sample(storage::RunId run, std::uint32_t from, std::uint32_t seconds);
  /// Gives a sweep two further revisions of its file, as if ann and bob had extended it: in the second one
  /// label is another, the third has 10,000 comments more and no line feed at its end.
  void extend(const std::string& name);
  /// Submits a small sweep that waits.
  void submit_waiting(const std::string& name);

 private:
  void submit(const std::string& name, int rows, int seeds, int priority = 0);
  storage::RunId start(const std::string& worker, std::uint32_t resumed_from_step = 0);
  void train(storage::RunId run, std::uint32_t from, std::uint32_t to);
  void complete(storage::RunId run);
  void explain_waiting();
  std::vector<storage::TrialId> queued();
  Time now() const { return now_; }

  storage::Database db_;
  Time now_;
};

}  // namespace abl::web
