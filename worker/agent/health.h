// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "worker/agent/trouble.h"

namespace abl::agent {

/// What a worker needs to be able to run anything.
struct HealthOptions {
  std::vector<std::filesystem::path> folders;                  ///< that it writes to
  std::filesystem::path runs;                                  ///< of them, the one that checkpoints go to
  std::filesystem::path trainer;                               ///< empty: there is none
  int gpus = 0;                                                ///< that the trainer must be able to reach
  std::map<std::string, std::filesystem::path> data, weights;  ///< logical name -> place; empty: none needed
  Milliseconds first{1000}, longest{60000};                    ///< between two looks at what is wrong
  std::size_t probe_bytes = 1 << 20;
};

/// Weights by their logical name, and which file is wanted under it.
struct WantedWeights {
  std::string name, sha256;
  auto operator<=>(const WantedWeights&) const = default;
};
/// As an assignment has them: logical name -> SHA-256.
using WantedDigests = google::protobuf::Map<std::string, std::string>;

/// What is wrong with the worker itself, as against the trials that it runs: a full disk, no descriptors, a
/// trainer that does not start, data that are gone. It looks again on a thread of its own, by doing what
/// failed, and is well when that succeeds.
/// Thread: all methods, from any.
class Health {
 public:
  /// `changed` is called, without a lock held, whenever `state` says something else.
  Health(HealthOptions options, std::function<void()> changed);
  ~Health();

  /// Something of the worker's own failed: it takes nothing more, or none that needs `trouble.data`.
  void trouble(const Trouble& trouble);

  /// Why no run of this trial can go on here now: its data or weights are gone. Looks; empty: they are there.
  std::string vanished(const ablate::v1::Assign& assign);
  /// Why a run of this trial had other weights than it was to have: a file here is not the one that is wanted
  /// under its name. Reads the files whose digest is known. Empty: they are those.
  std::string other_weights(const WantedDigests& digests);
  /// Why the folders cannot be written. Tries; empty: they can.
  std::string cannot_write();
  /// Why a program found no room where runs write, or empty where there is some.
  std::string lacks_room() const;

  struct State {
    std::string trouble;                                         ///< why it can run nothing, or empty
    std::map<std::string, std::string> gone_data, gone_weights;  ///< logical name -> why it is not offered
    std::map<WantedWeights, std::string> wrong_weights;          ///< -> what lies in their place
    bool well() const {
      return trouble.empty() && gone_data.empty() && gone_weights.empty() && wrong_weights.empty();
    }
    bool operator==(const State&) const = default;
  };
  State state() const;

 private:
  void watch(const std::stop_token& stop);
  std::string probe(const Trouble& trouble, const std::stop_token& stop);
  void data_trouble(const Trouble& trouble);
  bool can_open(const std::filesystem::path& place, const std::stop_token& stop) const;

  const HealthOptions options_;
  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  State state_;
  Trouble tried_;                   ///< all that has to succeed before it is well again
  std::set<std::string> unopened_;  ///< of the data that are gone those that the trainer has to open
  std::map<WantedWeights, std::string> read_;  ///< of the wrong weights: the mark of the file that was read
  std::uint64_t troubles_ = 0;  ///< counts them: one that comes during a probe is not forgotten
  std::jthread thread_;
};

}  // namespace abl::agent
