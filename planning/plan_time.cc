// SPDX-License-Identifier: Apache-2.0
#include "planning/plan_time.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "config/document/trial_document.h"
#include "planning/workload.h"
#include "statistics/summary.h"
#include "storage/count_store.h"
#include "storage/worker_store.h"

namespace abl::planning {
namespace {

namespace v1 = ablate::v1;
using nlohmann::json;
using storage::Calibration;

/// What is looked at of a store, however large it is.
constexpr std::uint32_t kNewestRuns = 2000, kCompletedRuns = 300;
/// The GPU that is assumed where no worker is connected.
constexpr const char* kAssumed = "NVIDIA A100";

struct Slot {
  std::string name;
  int threads = 0;  // of a CPU; 0: a GPU
};

std::vector<Slot> slots_of(const storage::WorkerRecord& worker) {
  std::vector<Slot> slots;
  const auto list = json::parse(worker.slots_json, nullptr, false);
  if (!list.is_array()) return slots;
  for (const auto& slot : list) {
    const bool is_gpu = slot.value("device", std::string{}).starts_with("cuda");
    slots.push_back({.name = slot.value("name", std::string{}),
                     .threads = is_gpu ? 0 : std::max(1, slot.value("threads", 1))});
  }
  return slots;
}

std::vector<Calibration> calibrations_in(const Place& place, storage::Database* db,
                                         const std::vector<Calibration>& fresh) {
  std::vector<Calibration> all = fresh;
  if (db)
    for (Calibration& stored :
         storage::MeasuredStore{*db}.calibrations(storage::MeasuredStore::kMostCalibrations))
      all.push_back(std::move(stored));
  std::string device = place.device;
  std::set<std::string> steps;
  std::vector<Calibration> here;
  for (Calibration& calibration : all) {
    if (calibration.threads != place.threads) continue;
    if (device.empty()) device = calibration.device;  // of CPUs the one that was measured last
    if (calibration.device == device && steps.insert(calibration.step_hash).second)
      here.push_back(std::move(calibration));
  }
  return here;
}

/// Completed runs of one kind of work in such a place.
struct RunsOfWork {
  std::vector<double> alone{};  ///< seconds of those that had their processor for themselves
  int shared = 0;               ///< of the others, how many
  double longest = 0;           ///< seconds, of the others
};
/// What completed runs say: rates, and times by `work_key`.
struct RatesAndTimes {
  std::vector<Rate> rates;
  std::map<std::string, RunsOfWork> times;
};

/// Of trials that do the same work.
std::string work_key(const Workload& work) {
  return fmt::format("{} {} {}", work.step_hash, work.steps, work.evaluated);
}

/// The seconds of a run whose processor other programs used as well are of that day, not of the work. It is
/// told from the others by its fastest steps: six runs of one thread by themselves did their steps at 0.85 to
/// 0.89 of their rate, so that less than this share says that a run was kept waiting.
constexpr double kShareOfFastest = 0.7, kUsualShareOfFastest = 0.85;

/// How fast completed runs were in such a place. Of a kind of step whose every run shared its processor, the
/// rate follows from the fastest steps; where any kind had it for itself, the others are left out.
RatesAndTimes rates_in(const KnownOfPlace& known, storage::Database& db) {
  const Place& place = known.place;
  constexpr double kStart = 2, kShortest = 6;  // seconds: of shorter runs the start is too much
  std::map<std::string, bool> on_such_gpus;
  for (const auto& worker : storage::WorkerStore{db}.list())
    on_such_gpus[worker.name] = std::ranges::any_of(
        slots_of(worker), [&](const Slot& slot) { return slot.threads == 0 && slot.name == place.device; });
  struct Sum {
    Rate rate;
    double logarithms = 0, shared_logarithms = 0;
    int runs = 0, shared_runs = 0;
  };
  RatesAndTimes found;
  std::map<std::string, Sum> sums;
  ModelCounts counts = known.counts;
  const storage::CountStore cache{db};
  for (const auto& run : storage::MeasuredStore{db}.completed(kNewestRuns, kCompletedRuns)) {
    if (run.seconds < kShortest || run.gpus > 1) continue;
    const auto environment = json::parse(run.environment_json, nullptr, false);
    if (!environment.is_object()) continue;
    const bool on_cpu = environment.value("device", std::string{}) == "cpu";
    if (on_cpu == place.is_gpu()) continue;
    if (on_cpu ? environment.value("threads", 0) != place.threads : !on_such_gpus[run.worker]) continue;
    const auto trial = trial_of(run.config);
    if (!trial) continue;
    const std::string model = config::canonical_model_text(*trial);
    if (!counts.contains(model))
      if (auto stored = cache.find(model)) counts.emplace(model, *std::move(stored));
    std::string missing;
    const auto work = workload_of(*trial, counts, known.images, missing);
    if (!work) continue;
    Sum& sum = sums[work->step_hash];
    sum.rate = {.family = work->family,
                .precision = trial->recipe.precision,
                .image_macs = work->step_macs,
                .images = work->step_images};
    const double rate = work->macs() / (run.seconds - kStart), fastest = run.fastest_images * work->step_macs;
    RunsOfWork& times = found.times[work_key(*work)];
    if (on_cpu && rate < kShareOfFastest * fastest) {
      sum.shared_logarithms += std::log(kUsualShareOfFastest * fastest);
      ++sum.shared_runs, ++times.shared;
      times.longest = std::max(times.longest, run.seconds);
    } else {
      sum.logarithms += std::log(rate);
      ++sum.runs;
      times.alone.push_back(run.seconds);
    }
  }
  const bool any_alone = std::ranges::any_of(sums, [](const auto& sum) { return sum.second.runs > 0; });
  for (auto& [hash, sum] : sums) {
    if (sum.runs == 0 && any_alone) continue;
    sum.rate.macs_per_second =
        std::exp(sum.runs > 0 ? sum.logarithms / sum.runs : sum.shared_logarithms / sum.shared_runs);
    found.rates.push_back(sum.rate);
  }
  return found;
}

/// The time of a row of whose runs some shared their processor: of the others, or else at the rate of what is
/// like it; up to as long as it took once.
TrialTime without_sharing(const RunsOfWork& runs, const Workload& work, const TrialTimes& times) {
  TrialTime time = times.of(work, 0);
  if (!runs.alone.empty()) {
    const auto summary = statistics::summarise(runs.alone);
    time = time_from_runs({.runs = static_cast<std::uint32_t>(runs.alone.size()),
                           .seconds = summary->mean,
                           .deviation = summary->sd});
  }
  time.from = TrialTime::From::kRuns;
  time.high = std::max(time.high, runs.longest);
  time.why = fmt::format("{}{} that shared {} processor", runs.alone.empty() ? "" : time.why + ", without ",
                         runs.shared == 1 ? "1 run" : fmt::format("{} runs", runs.shared),
                         runs.shared == 1 ? "its" : "their");
  return time;
}

std::string where_text(const Place& place) {
  const std::string device = place.device.empty() ? "a CPU" : place.device;
  if (place.is_gpu()) return device;
  return fmt::format("{}, {} thread{}", device, place.threads, place.threads == 1 ? "" : "s");
}

std::string rate_text(double macs_per_second) {
  return macs_per_second >= 1e12 ? fmt::format("{:.3g} T", macs_per_second / 1e12)
                                 : fmt::format("{:.3g} G", macs_per_second / 1e9);
}

/// The lines that say what times follow from.
void say_from(const TrialTimes& times, const std::map<TrialTime::From, int>& rows, bool stands_in,
              const std::set<config::Precision>& stated, v1::SweepPlan& plan) {
  const auto of = [&](TrialTime::From from) {
    const auto found = rows.find(from);
    const int count = found == rows.end() ? 0 : found->second;
    return count == 0 ? std::string{} : fmt::format("{} {}", count, count == 1 ? "row" : "rows");
  };
  const auto& place = times.place();
  if (const auto text = of(TrialTime::From::kRuns); !text.empty())
    plan.add_time_from(
        fmt::format("time of {}: from completed runs of the same configuration or work", text));
  if (const auto text = of(TrialTime::From::kCalibration); !text.empty())
    plan.add_time_from(
        fmt::format("time of {}: from a calibration of its own step on {}", text, where_text(place)));
  if (const auto text = of(TrialTime::From::kLike); !text.empty()) {
    const auto [least, most] = std::ranges::minmax(times.rates(), {}, &Rate::macs_per_second);
    plan.add_time_from(fmt::format(
        "time of {}: from its FLOPs at the rates of what was measured on {}: {} to {} multiply-adds a second",
        text, where_text(place), rate_text(least.macs_per_second), rate_text(most.macs_per_second)));
  }
  if (const auto text = of(TrialTime::From::kFlops); !text.empty())
    for (const auto precision : stated) {
      std::string named;
      const StatedRate rate = stated_rate(place, precision, &named);
      plan.add_time_from(fmt::format(
          "time of {}: from its FLOPs at {} multiply-adds a second in {}, {}{}: it may be 3 times too long "
          "or "
          "too short{}",
          text, rate_text(rate.macs_per_second), name_of(precision),
          rate.share > 0 ? fmt::format("{:.0f} % of the peak of {}", 100 * rate.share, named)
                         : fmt::format("assumed of {}", named),
          place.assumed.empty() ? "" : fmt::format(", because {}", place.assumed),
          "; measure it with 'ablate plan --measure'"));
    }
  if (stands_in)
    plan.add_time_from(
        "measured with drawn images: what reading and decoding the data take comes on top where that is "
        "slower");
}

void set(v1::PredictedTime& message, const TrialTime& time) {
  message.set_value(time.seconds);
  message.set_low(time.low);
  message.set_high(time.high);
  message.set_from(std::string{name_of(time.from)});
  message.set_why(time.why);
}

/// As the connected workers say.
Place place_of(int gpus, storage::Database* db, const std::vector<Calibration>& fresh) {
  if (!fresh.empty()) return {.device = fresh.front().device, .threads = fresh.front().threads};
  std::optional<Place> place;
  std::string none = "no worker is connected";
  if (db)
    for (const auto& worker : storage::WorkerStore{*db}.list()) {
      if (!worker.connected) continue;
      none = "no connected worker has a GPU";
      for (const Slot& slot : slots_of(worker)) {
        if (slot.threads == 0) return {.device = slot.name};
        if (gpus == 0 && !place) place = Place{.device = {}, .threads = slot.threads};
      }
    }
  if (place) return *place;
  if (db && gpus == 0)  // what somebody has measured says more than what nobody has
    if (const auto newest = storage::MeasuredStore{*db}.calibrations(1); !newest.empty())
      return {.device = newest[0].device, .threads = newest[0].threads};
  return {.device = kAssumed, .threads = 0, .assumed = none};
}

}  // namespace

KnownOfPlace known_of_place(const sweeps::SweepSpec& spec, storage::Database* db, const ModelCounts& counts,
                            const std::vector<Calibration>& fresh) {
  KnownOfPlace known{.place = place_of(spec.gpus, db, fresh)};
  known.calibrations = calibrations_in(known.place, db, fresh);
  known.counts = counts;
  for (const Calibration& calibration : known.calibrations) {
    if (calibration.base_bytes > known.base_bytes.value_or(0)) known.base_bytes = calibration.base_bytes;
    const auto trial = trial_of(calibration.config);
    if (!trial) continue;
    const bool whole = trial->data.held_out == 0;
    if (whole && calibration.train_images > 0 && trial->data.train_images == 0)
      known.images[trial->data.name].train = calibration.train_images;
    if (whole && calibration.val_images > 0 && trial->data.val_images == 0)
      known.images[trial->data.name].val = calibration.val_images;
    const std::string model = config::canonical_model_text(*trial);
    if (db && !known.counts.contains(model))
      if (auto stored = storage::CountStore{*db}.find(model)) known.counts.emplace(model, *std::move(stored));
  }
  return known;
}

std::vector<double> set_times(const sweeps::SweepSpec& spec, storage::Database* db, const KnownOfPlace& known,
                              const std::vector<double>& left, v1::SweepPlan& plan) {
  bool stands_in = false;
  std::optional<TrialTimes> times;
  RatesAndTimes seen;
  if (!spec.command && db) seen = rates_in(known, *db);
  if (!spec.command) times.emplace(known.place, known.calibrations, seen.rates, known.counts, known.images);
  int shared = 0;
  double longest = 0;
  std::vector<double> seconds(spec.rows.size());
  std::map<TrialTime::From, int> from;
  std::set<config::Precision> stated;
  TrialTime sum{.from = TrialTime::From::kRuns};
  for (std::size_t i = 0; i < spec.rows.size(); ++i) {
    const sweeps::Row& row = spec.rows[i];
    auto& line = *plan.mutable_rows(static_cast<int>(i));
    if (!line.not_trained().empty()) continue;
    std::optional<TrialTime> time;
    if (db)
      for (const auto* hash : {&row.config_hash, &row.work_hash})
        if (!time)
          if (const auto measured = storage::MeasuredStore{*db}.find(*hash, spec.gpus)) {
            time = time_from_runs(*measured);
            if (hash == &row.work_hash) time->why += " that do the same work";
          }
    if (time && times && spec.gpus == 0) {
      std::string unknown;
      const auto trial = trial_of(row.config);
      const auto work =
          trial ? workload_of(*trial, known.counts, known.images, unknown, row.teacher) : std::nullopt;
      const auto runs = work ? seen.times.find(work_key(*work)) : seen.times.end();
      if (runs != seen.times.end() && runs->second.shared > 0) {
        time = without_sharing(runs->second, *work, *times);
        ++shared, longest = std::max(longest, runs->second.longest);
      }
    }
    std::string missing = "no run of it has completed";
    if (!time && times)
      if (const auto trial = trial_of(row.config))
        if (const auto work = workload_of(*trial, known.counts, known.images, missing, row.teacher)) {
          time = times->of(*work, spec.gpus);
          if (time->from == TrialTime::From::kFlops) stated.insert(trial->recipe.precision);
          for (const Calibration& calibration : known.calibrations)
            if (calibration.train_images == 0 && time->from != TrialTime::From::kFlops) stands_in = true;
        }
    if (!time) {
      if (left[i] > 0 && plan.time_missing().empty())
        plan.set_time_missing(spec.command ? "no run of it has completed" : missing);
      continue;
    }
    seconds[i] = time->seconds;
    ++from[time->from];
    set(*line.mutable_time(), *time);
    if (left[i] == 0) continue;
    const double hours = left[i] * std::max(1, spec.gpus) / 3600;
    set(*line.mutable_gpu_hours(), {.seconds = hours * time->seconds,
                                    .low = hours * time->low,
                                    .high = hours * time->high,
                                    .from = time->from});
    sum.seconds += hours * time->seconds, sum.low += hours * time->low, sum.high += hours * time->high;
    sum.from = std::max(sum.from, time->from);
  }
  if (sum.seconds > 0) set(*plan.mutable_gpu_hours(), sum);
  if (times) say_from(*times, from, stands_in, stated, plan);
  if (shared > 0)
    plan.add_time_from(fmt::format(
        "other programs used the processor of runs of {} {}, of which one took {:.0f} s: the time is "
        "without them, and longer where they are there again",
        shared, shared == 1 ? "row" : "rows", longest));
  return seconds;
}

std::map<std::string, double> predictions(const v1::SweepPlan& plan) {
  std::map<std::string, double> seconds;
  for (const auto& row : plan.rows())
    if (row.has_time() && row.time().from() != name_of(TrialTime::From::kRuns) &&
        row.time().from() != name_of(TrialTime::From::kFlops))
      seconds[row.config_hash()] = row.time().value();
  return seconds;
}

std::map<std::string, double> predictions(const sweeps::SweepSpec& spec, storage::Database& db,
                                          const ModelCounts& counts) {
  v1::SweepPlan plan;
  for (const sweeps::Row& row : spec.rows) {
    auto& line = *plan.add_rows();
    line.set_config_hash(row.config_hash);
    if (row.not_trained) line.set_not_trained(std::string{name_of(*row.not_trained)});
  }
  set_times(spec, &db, known_of_place(spec, &db, counts, {}), std::vector<double>(spec.rows.size()), plan);
  return predictions(plan);
}

std::vector<std::string> to_measure(const sweeps::SweepSpec& spec, std::size_t most) {
  using Key = std::tuple<std::string, int, int, int, std::string>;  // alike ones side by side
  std::map<Key, std::string> distinct;
  for (const sweeps::Row& row : spec.rows) {
    const auto trial = trial_of(row.config);
    if (!trial) continue;
    distinct.emplace(Key{trial->model.family, static_cast<int>(trial->recipe.precision),
                         trial->data.image_size, trial->recipe.batch, step_hash(*trial)},
                     config::canonical_text(*trial));
  }
  std::vector<std::string> all, some;
  for (auto& [key, document] : distinct) all.push_back(std::move(document));
  if (all.size() <= most) return all;
  for (std::size_t i = 0; i < most; ++i)
    some.push_back(all[most == 1 ? (all.size() - 1) / 2 : i * (all.size() - 1) / (most - 1)]);
  return some;
}

std::optional<Calibration> calibration_of(const v1::Calibration& message, Time now) {
  const auto trial = trial_of(message.config());
  if (!trial) return std::nullopt;
  const bool learns = trial->task.kind != config::TaskKind::kProbeKnn;  // otherwise it has no steps
  const double pace = learns ? message.step_seconds() : message.image_seconds();
  if (!(pace > 0) || !std::isfinite(pace)) return std::nullopt;
  return Calibration{.device = message.device(),
                     .threads = static_cast<int>(message.threads()),
                     .step_hash = step_hash(*trial),
                     .config = message.config(),
                     .time = now,
                     .batch = static_cast<int>(message.batch()),
                     .step_seconds = message.step_seconds(),
                     .step_spread = message.step_spread(),
                     .steps = static_cast<int>(message.steps()),
                     .image_seconds = message.image_seconds(),
                     .start_seconds = message.start_seconds(),
                     .checkpoint_seconds = message.checkpoint_seconds(),
                     .base_bytes = message.base_bytes(),
                     .train_images = message.train_images(),
                     .val_images = message.val_images()};
}

}  // namespace abl::planning
