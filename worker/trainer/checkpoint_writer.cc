// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/checkpoint_writer.h"

#include <time.h>

#include <algorithm>

namespace abl::trainer {
namespace {

using Clock = std::chrono::steady_clock;

CheckpointWriter::Duration time_of_this_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::filesystem::path& folder, int keep_last, Events& events)
    : files_{folder, keep_last}, events_{events} {}

void CheckpointWriter::begin(Checkpoint checkpoint, bool is_best) {
  finish();
  const auto begun = Clock::now();
  checkpoint.tensors = copy_of(checkpoint.tensors);
  copying_ = Clock::now() - begun;
  under_way_ = std::async(std::launch::async, [this, checkpoint = std::move(checkpoint), is_best] {
    return write(checkpoint, is_best);
  });
}

std::map<std::string, torch::Tensor> CheckpointWriter::copy_of(
    const std::map<std::string, torch::Tensor>& tensors) {
  const torch::NoGradGuard no_grad;
  std::optional<torch::Device> gpu;
  for (const auto& [name, tensor] : tensors) {
    auto& copy = copies_[name];
    if (!copy.defined() || copy.sizes() != tensor.sizes() || copy.scalar_type() != tensor.scalar_type())
      copy = torch::empty(tensor.sizes(),
                          torch::TensorOptions{tensor.scalar_type()}.pinned_memory(tensor.is_cuda()));
    copy.copy_(tensor.detach(), /*non_blocking=*/true);
    if (tensor.is_cuda()) gpu = tensor.device();
  }
  if (gpu) torch::cuda::synchronize(gpu->index());
  return copies_;
}

CheckpointWriter::Duration CheckpointWriter::write(const Checkpoint& checkpoint, bool is_best) {
  const auto file = files_.file_of(checkpoint.step);
  const std::string digest = write_checkpoint(file, checkpoint);
  events_.checkpoint(checkpoint.step, std::filesystem::absolute(file), digest);
  files_.add(file);
  if (is_best) files_.make_best(file);
  return time_of_this_thread();
}

bool CheckpointWriter::is_writing() const {
  return under_way_.valid() && under_way_.wait_for(std::chrono::seconds{0}) != std::future_status::ready;
}

CheckpointWriter::Duration CheckpointWriter::interval(Duration wished) const {
  constexpr double kTimesItsCost = 50;
  return wished.count() == 0 ? wished : std::max(wished, kTimesItsCost * cost_);
}

void CheckpointWriter::check() {
  if (under_way_.valid() && !is_writing()) finish();
}

void CheckpointWriter::finish() {
  if (under_way_.valid()) cost_ = copying_ + under_way_.get();
}

}  // namespace abl::trainer
