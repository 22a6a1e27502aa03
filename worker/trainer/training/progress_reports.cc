// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/progress_reports.h"

#include <fmt/format.h>
#include <torch/cuda.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "protocol/metrics.h"
#include "worker/trainer/device/gpu.h"
#include "worker/trainer/training/checkpoint.h"

namespace abl::training {

namespace metric = protocol::metric;

namespace {

/// Shares of the time since the point before, 0 to 1, in the order of Spent.
constexpr std::array kShares{metric::kTimeData, metric::kTimeCheckpoints, metric::kTimeEvaluation};

}  // namespace

ProgressReports::ProgressReports(protocol::Events& events, torch::Device device, bool skips_steps)
    : events_{events}, device_{device}, skips_steps_{skips_steps} {}

/// A copy there, once the device has computed them.
torch::Tensor ProgressReports::on_host(const torch::Tensor& values) const {
  auto copy =
      torch::empty(values.sizes(), values.options().device(torch::kCPU).pinned_memory(device_.is_cuda()));
  return copy.copy_(values, /*non_blocking=*/true);
}

void ProgressReports::add(std::int64_t step, std::int64_t from, const torch::Tensor& sums,
                          const torch::Tensor& gradients, double lr) {
  points_.push_back({step, from, std::exchange(images_, 0), on_host(sums), on_host(gradients), lr});
}

void ProgressReports::say(std::int64_t done) {
  const auto end = std::ranges::find_if(points_, [&](const Point& point) { return point.step > done; });
  if (end == points_.begin()) return;
  std::int64_t images = 0;
  for (auto point = points_.begin(); point != end; ++point) images += point->images;
  const auto now = Clock::now();  // of a step that is done, not of one that was given
  const double seconds =
      std::max(1e-9, std::chrono::duration<double>(now - std::exchange(since_, now)).count());
  std::map<std::string, double> of_the_time{
      {metric::kImagesPerSecond, static_cast<double>(images) / seconds}};
  for (std::size_t on = 0; on < spent_.size(); ++on) {
    const double spent = std::chrono::duration<double>(std::exchange(spent_[on], {})).count();
    of_the_time[kShares.at(on)] = std::min(1.0, spent / seconds);
  }
  for (; !points_.empty() && points_.front().step <= done; points_.pop_front())
    say(points_.front(), of_the_time);
}

void ProgressReports::say_all() {
  if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
  if (!points_.empty()) say(points_.back().step);
}

void ProgressReports::say(const Point& point, std::map<std::string, double> values) const {
  const double loss = point.sums[0].item<double>(), images = point.sums[2].item<double>();
  values[metric::kTrainLoss] = loss / images;
  if (recognises_) values[metric::kTrainTop1] = 100 * point.sums[1].item<double>() / images;
  const double norms = point.gradients[0].item<double>(), steps = point.gradients[1].item<double>();
  if (steps > 0) values[metric::kTrainGradNorm] = norms / steps;
  if (skips_steps_) values[metric::kTrainSkippedSteps] = point.gradients[2].item<double>();
  values[metric::kLearningRate] = point.lr;
  values[metric::kMemoryBytes] = device::peak_memory_bytes(device_);
  events_.metric(point.step, values);
  if (!std::isfinite(loss)) throw diverged(point.from, point.sums.slice(0, 3));
}

}  // namespace abl::training
