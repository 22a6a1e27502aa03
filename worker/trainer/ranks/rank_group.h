// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "worker/trainer/ranks/rendezvous.h"

namespace c10d {
class ProcessGroup;
}

namespace abl::ranks {

/// A process's place among those that train one model together. On one machine or on several: nothing here
/// asks which.
struct RankPlace {
  int rank = 0, ranks = 1;
  Rendezvous rendezvous;
  std::string key{};      ///< of the run, where ranks of other machines come; empty: none do
  std::string address{};  ///< of this machine, at which those reach this rank; empty: the rendezvous' host
  torch::Device device = torch::kCPU;                            ///< this rank's own
  std::chrono::milliseconds patience = std::chrono::minutes{5};  ///< until all ranks have come
  std::chrono::milliseconds timeout = std::chrono::minutes{30};  ///< of each collective
};

/// How the reason begins that a rank gives when another one is gone: not the cause, but what it led to.
inline constexpr std::string_view kLostRanks = "the connection to the other ranks is lost";

/// The ranks of a run, seen from one of them. All functions but the first few are collective: every rank
/// calls them, in the same order. A rank alone needs nobody: for it they leave everything as it is.
/// Throws: Error{kUnavailable} that begins with kLostRanks when another rank is gone. Thread: one.
class RankGroup {
 public:
  RankGroup();  ///< one rank alone
  /// Waits for the other ranks. Throws: Error{kUnavailable} when not all come.
  explicit RankGroup(const RankPlace& place);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool alone() const { return ranks_ == 1; }
  bool first() const { return rank_ == 0; }
  c10::intrusive_ptr<c10d::ProcessGroup> process_group() const;  ///< null for a rank alone

  /// What the first rank says: all ranks do the same, though only it looks at clocks and signals.
  bool as_first(bool said);
  /// Gives every rank the values of the first one.
  void share(const std::vector<torch::Tensor>& tensors);
  /// Replaces a tensor by the sum over all ranks: the same bits on each.
  void sum(torch::Tensor& tensor);
  /// Shape: row [...] on the CPU -> [ranks, ...].
  torch::Tensor gather(const torch::Tensor& row);

 private:
  struct Links;
  const int rank_ = 0, ranks_ = 1;
  std::unique_ptr<Links> links_;  ///< null for a rank alone
};

/// Runs what talks to other ranks, and tells it from other failures: throws Error{kUnavailable} beginning
/// with kLostRanks where it throws.
void reach_ranks(const std::function<void()>& talk);

}  // namespace abl::ranks
