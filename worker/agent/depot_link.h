// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "ablate/v1/depot.grpc.pb.h"
#include "ablate/v1/runs.pb.h"
#include "access/tls.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/pieces.h"

namespace abl::agent {

/// The run for which a file is sent to the scheduler's depot, or fetched from there.
struct ForRun {
  std::uint32_t run = 0;
  std::string token;  ///< as its assignment had it
};

/// Whether a fetch that failed so would fail again: the depot does not have the file, or has another.
/// Anything else (nobody answers, no room here) says nothing of the copy.
constexpr bool is_of_the_copy(Code code) {
  return code == Code::kNotFound || code == Code::kDataLoss || code == Code::kPermissionDenied ||
         code == Code::kFailedPrecondition || code == Code::kInvalidArgument || code == Code::kUnimplemented;
}

/// The worker's way to the scheduler's depot. Calls end as soon as they are not to go on.
/// Thread: all methods, from any.
class DepotLink {
 public:
  DepotLink(std::string address, access::ClientAccess access);

  /// Sends a checkpoint that the run has written. Returns: whether it is there; false when it was not to go
  /// on. Throws: Error of the depot, or of the file.
  bool send(const ForRun& run, const std::filesystem::path& file, const std::string& sha256,
            std::uint64_t bytes, const GoOn& go_on);
  /// Fetches what the run needs. Returns and throws: as `fetch_in_pieces`.
  bool fetch(const ForRun& run, const std::filesystem::path& file, const std::string& sha256,
             std::uint64_t bytes, const GoOn& go_on);

 private:
  using Stub = std::shared_ptr<ablate::v1::Depot::Stub>;
  Stub stub();
  template <class Ask>
  auto with_stub(const Ask& ask);

  const std::string address_;
  const access::ClientAccess access_;
  std::mutex mutex_;
  Stub stub_;  ///< none before it is needed, and after a call that was not answered
};

/// Brings the newest checkpoints of runs to the scheduler's depot, where another machine finds them when this
/// one is gone: from time to time while a run goes on, and when it ends. One at a time, on a thread of its
/// own.
/// Thread: all methods, from any.
class Courier {
 public:
  /// Sends a file; as DepotLink::send.
  using Send = std::function<bool(const ForRun&, const std::filesystem::path& file, const std::string& sha256,
                                  std::uint64_t bytes, const GoOn&)>;
  /// Nothing leaves but files beneath `runs_root`.
  Courier(std::filesystem::path runs_root, Send send);
  ~Courier();

  /// A run's newest checkpoint is brought at most so often; 0: none is.
  void set_every(Milliseconds every);
  bool brings() const;  ///< some are
  /// The scheduler is there, or is not: nothing is tried then.
  void set_connected(bool connected);
  /// The run wrote a checkpoint.
  void wrote(const ForRun& run, const ablate::v1::Checkpoint& checkpoint);
  /// The run's program is gone, and another machine may go on with its trial: what it wrote last is brought
  /// at once, and `best` too where others take its weights. Waits for that, but not for longer than
  /// `patience`, nor while there is no scheduler; the rest is brought later. Returns: whether all of it is
  /// there.
  bool bring(std::uint32_t run, bool best, std::chrono::milliseconds patience,
             const std::function<bool()>& go_on);
  /// Nothing more of this run is needed elsewhere, or, with `when_brought` and where others take its weights,
  /// after what waits.
  void forget(std::uint32_t run, bool when_brought = false);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct File {
    std::uint32_t step = 0;
    std::filesystem::path path;
    std::string sha256;
  };
  struct Load {
    std::string token;
    std::optional<File> newest, best;  // not brought yet
    SteadyTime due{};
    bool hurry = false, leaves = false;
    bool wanted = false;   // by others, who take its weights
    bool refused = false;  // for want of room
    int failed = 0;        // in a row
  };
  struct Item {
    std::uint32_t run = 0;
    std::string token;
    bool is_best = false;
    File file;
  };
  enum class Outcome { kBrought, kLater, kRefused, kNever };
  void tell();
  void work(const std::stop_token& stop);
  std::optional<Item> next_due(SteadyTime now, SteadyTime& wake) const;
  Outcome carry(const Item& item, const std::stop_token& stop);
  void note(const Item& item, Outcome outcome);

  const std::filesystem::path runs_root_;
  const Send send_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Milliseconds every_{0};
  bool connected_ = false;
  bool news_ = false;  // since the thread looked what is due
  std::map<std::uint32_t, Load> loads_;
  std::jthread thread_;
};

}  // namespace abl::agent
