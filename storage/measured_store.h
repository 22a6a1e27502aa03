// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// What runs took that completed.
struct Measured {
  std::uint32_t runs = 0;
  double seconds = 0;                 ///< of a whole trial, in a slot of its own
  std::optional<double> deviation{};  ///< standard, of those; nothing where one alone is known
};

/// What was measured of a trial on a machine within some seconds.
struct Calibration {
  std::string device;     ///< "AMD EPYC 7B13", "NVIDIA H100 80GB HBM3"
  int threads = 0;        ///< of a CPU; 0: a GPU
  std::string step_hash;  ///< of what makes a step what it is (planning/workload.h)
  std::string config;     ///< canonical document
  Time time{};
  int batch = 0;            ///< images of the steps that were measured
  double step_seconds = 0;  ///< of one of them
  double step_spread = 0;   ///< standard deviation as a share of that
  int steps = 0;
  double image_seconds = 0;  ///< of an evaluated image
  double start_seconds = 0;  ///< from the start of the program to the first step
  double checkpoint_seconds = 0;
  double base_bytes = 0;  ///< of the process before it builds its model; 0: not measured
  std::int64_t train_images = 0, val_images = 0;  ///< of its data; 0: they were not there
};

/// A completed run, for what others like it will take.
struct CompletedRun {
  std::string config;  ///< of its trial, with the seed
  std::string worker, environment_json;
  double seconds = 0;  ///< of the whole trial
  int gpus = 0;
  double fastest_images = 0;  ///< images a second: the most that it reported; 0: nothing
};

/// What is left of a sweep's rows, from a bounded part of its trials.
struct LeftOfRow {
  std::string id, config_hash, work_hash;
  TrialId first = 0;
  std::uint32_t shape = 0;           ///< of its trials (QueueStore)
  int gpus = 0;                      ///< of each
  double waiting = 0;                ///< queued trials, where not all were looked at its part of them
  bool stands_for_others = false;    ///< not all rows were looked at
  std::vector<std::string> after{};  ///< rows whose trials one of these waits for, over however many
};

/// A run that has been leased and has not ended.
struct RunningTrial {
  TrialId trial = 0;
  std::string row, config_hash, work_hash;  ///< of its row
  bool started = false;                     ///< otherwise it is on its way, or waits behind another run
  Time since{};                             ///< its start, by the wall clock
  std::uint32_t step = 0, total_steps = 0;
  double steps_per_second = 0;
  int gpus = 0;
  std::uint32_t shape = 0;  ///< of its trial (QueueStore)
  std::string worker;
};

/// An active sweep of which something waits or runs.
struct OpenStanding {
  SweepId id = 0;
  std::string name, owner;
  int priority = 0;
  double weight = 1;
  std::optional<std::uint32_t> max_running;
  std::uint32_t queued = 0, under_way = 0;
  bool preempts = false;  ///< runs of lower priority give way to its trials
};

/// How long what is left will take, by what has been measured. Nothing here looks at all trials of a sweep or
/// at all runs there were.
/// Thread: the connection's.
class MeasuredStore {
 public:
  explicit MeasuredStore(Database& db) : db_{db} {}

  /// How a run went that completes.
  struct Went {
    std::optional<Milliseconds> took{};  ///< as its worker says; otherwise from its start to `now`
    double beside = 0;                   ///< other runs on its GPU, on the average of its time
  };
  void note(const RunRecord& run, const TrialRecord& trial, const Went& went, Time now);
  /// Of runs of such rows, by `sweep_row.config_hash` or `work_hash`. Nothing where none has completed.
  std::optional<Measured> find(const std::string& hash, int gpus) const;

  /// What is known of runs that may share a GPU, under `TrialRecord::pack`.
  struct Packing {
    double memory_bytes = 0;      ///< the most that one took; 0: not measured yet
    double steps_per_second = 0;  ///< of one that had its GPU for itself; 0: not known
    std::string stopped;          ///< why none is put beside others any more, or empty
    bool fits() const { return memory_bytes > 0 && stopped.empty(); }
  };
  Packing packing(const std::string& pack, int gpus) const;
  /// In place of an older one of the same device, threads and step. Of all the newest `kMostCalibrations`
  /// stay.
  void keep(const Calibration& calibration);
  static constexpr std::uint32_t kMostCalibrations = 500;
  /// Of newest times first, `most` of them.
  std::vector<Calibration> calibrations(std::uint32_t most) const;
  /// Seconds of trials by their rows' config_hash, as a plan predicts them; forecasts take them until a run
  /// has completed. What no row has, or a run has been measured of, is not kept.
  void predict(const std::map<std::string, double>& seconds, int gpus);
  std::optional<double> predicted(const std::string& config_hash, int gpus) const;
  /// The newest that completed by themselves, without another run's checkpoint and alone in their slots,
  /// among the newest `among` runs.
  std::vector<CompletedRun> completed(std::uint32_t among, std::uint32_t most) const;

  /// From now on its runs have their GPUs for themselves.
  void stop_packing(const std::string& pack, int gpus, const std::string& why);
  /// `TrialRecord::pack` -> bytes that a run takes which may be put beside others: of all that there are, to
  /// be read once, at the start.
  std::map<std::string, double> memories() const;

  /// The rows of a sweep, and how many trials of each wait; of many trials about `most` are looked at, evenly
  /// spread.
  std::vector<LeftOfRow> left(SweepId sweep, std::uint32_t queued, std::uint32_t most) const;
  /// What is under way, by the sweeps that want it: as much as there are slots, and what is leased ahead.
  std::map<SweepId, std::vector<RunningTrial>> running() const;
  /// By priority, the highest first, then the oldest; `most` of them.
  std::vector<OpenStanding> open(std::uint32_t most) const;

 private:
  Database& db_;
};

}  // namespace abl::storage
