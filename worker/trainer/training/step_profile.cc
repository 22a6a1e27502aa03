// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/step_profile.h"

#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/cuda.h>

#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace abl::training {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

torch::profiler::impl::ProfilerConfig configuration() {
  return torch::profiler::impl::ProfilerConfig{torch::profiler::impl::ProfilerState::KINETO,
                                               /*report_input_shapes=*/true};
}

std::set<ActivityType> activities(torch::Device device) {
  if (device.is_cuda()) return {ActivityType::CPU, ActivityType::CUDA};
  return {ActivityType::CPU};
}

}  // namespace

StepProfile::StepProfile(std::filesystem::path file, torch::Device device)
    : file_{std::move(file)}, device_{device} {
  if (!file_.empty()) write_file(file_, "{}\n");  // a place that takes none is an error now, not in an hour
}

StepProfile::~StepProfile() {
  if (is_recording_) profiler::disableProfiler();
}

void StepProfile::begin_step() {
  if (file_.empty() || ++step_ != first_) return;
  if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
  profiler::prepareProfiler(configuration(), activities(device_));
  profiler::enableProfiler(configuration(), activities(device_));
  is_recording_ = true;
}

bool StepProfile::end_step() { return is_recording_ && step_ == first_ + kSteps - 1 && finish(); }

bool StepProfile::finish() {
  if (!std::exchange(is_recording_, false)) return false;
  if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
  const auto result = profiler::disableProfiler();
  const auto written = file_.string() + ".part";
  result->save(written);
  std::error_code problem;
  std::filesystem::rename(written, file_, problem);
  if (problem) throw system_error("cannot write the profile " + file_.string(), problem.value());
  return true;
}

}  // namespace abl::training
