// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "worker/trainer/device/device_queue.h"
#include "worker/trainer/training/training.h"

// What of a training takes time, a little of each.
namespace abl::training {
namespace {

/// Of the budget; the rest is the checkpoint's.
constexpr double kForSteps = 0.65, kForEvaluation = 0.25;
constexpr int kWarmUp = 2;  ///< steps that allocate, and choose kernels; where they are long, the first
constexpr std::size_t kFewest = 3;  ///< steps that are timed, where one takes no longer than the budget

/// For which this thread could have run, had a core been free: other programs' time.
double seconds_kept_waiting() {
  std::ifstream in{"/proc/thread-self/schedstat"};
  double ran = 0, waited = 0;
  return in >> ran >> waited ? waited * 1e-9 : 0;
}

/// Time by the wall clock, less what other programs have taken of it.
class OwnTime {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count() -
           (seconds_kept_waiting() - waited_);
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  double waited_ = seconds_kept_waiting();
};

}  // namespace

Pace Training::measure(std::chrono::duration<double> budget, bool halves) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  };
  const auto begun = Clock::now();
  Pace pace{.steps = {}, .train_images = task_->data().train_images, .val_images = task_->data().val_images};
  if (!task_->learns()) {
    pace.steps = pace.halves = {0};
  } else {
    device::DeviceQueue queue{device_};
    load_to(done_ + (std::int64_t{1} << 20));
    const auto take_steps = [&](double until, std::vector<double>& times, const auto& take) {
      for (int taken = 0;; ++taken) {
        const OwnTime time;
        next_batch();
        take();
        learner_->loss_sum().item<double>();  // waits for a GPU
        const double used = seconds_since(begun) / budget.count();
        const bool is_slow = taken > 0 && used >= 1;
        const double took = time.seconds();
        const bool is_long = took > 0.08 * budget.count();
        if (taken >= (is_long ? 1 : kWarmUp) || is_slow) times.push_back(took);
        if (is_slow || (used >= until && times.size() >= kFewest)) break;
      }
    };
    take_steps(halves ? 0.6 * kForSteps : kForSteps, pace.steps, [&] { step(); });
    if (halves)
      take_steps(kForSteps, pace.halves, [&] {
        const auto half = task_->work(learner_->model(), done_, /*halved=*/true);
        learner_->step(half, learning_rate(options_.trial.recipe, done_, length_.total_steps));
      });
  }
  const auto first = Clock::now();
  const OwnTime of_evaluation;
  std::atomic<bool> stop = false;
  std::int64_t images = 0;
  const auto note = [&](std::int64_t more) {
    images += more;
    pace.image = of_evaluation.seconds() / static_cast<double>(images);
    stop = seconds_since(first) > kForEvaluation * budget.count();
  };
  task_->evaluate(learner_->model(), protocol::metric::kVal, stop, note);
  learner_->loss_sum().zero_();  // whatever was learned, it is no reason to refuse a checkpoint
  const OwnTime of_checkpoint;
  evaluated_ = done_;
  hold();
  write();
  writer_.finish();
  pace.checkpoint = of_checkpoint.seconds();
  return pace;
}

}  // namespace abl::training
