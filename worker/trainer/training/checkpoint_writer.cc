// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/checkpoint_writer.h"

#include <time.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/new_file.h"
#include "protocol/checkpoint_files.h"
#include "worker/trainer/device/failure.h"

namespace abl::training {
namespace fs = std::filesystem;

CheckpointFiles::CheckpointFiles(fs::path folder, int keep_last)
    : folder_{std::move(folder)}, keep_last_{static_cast<std::size_t>(std::max(1, keep_last))} {}

fs::path CheckpointFiles::file_of(std::int64_t step) const {
  return folder_ / protocol::checkpoint_name(step);
}

void CheckpointFiles::adopt() {
  protocol::remove_unfinished_checkpoints(folder_);
  std::map<std::int64_t, fs::path> found;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator{folder_, unreadable}) {
    const std::string name = entry.path().filename();
    if (const auto step = protocol::step_of_checkpoint(name)) found[*step] = folder_ / name;
  }
  for (const auto& [step, file] : found) kept_.push_back(file);
}

void CheckpointFiles::add(const fs::path& file) {
  std::erase(kept_, file);  // written once more
  kept_.push_back(file);
  for (; kept_.size() > keep_last_; kept_.pop_front()) {
    std::error_code gone;  // somebody else may have removed it
    fs::remove(kept_.front(), gone);
  }
}

fs::path CheckpointFiles::best() const { return folder_ / protocol::kBestCheckpoint; }

void CheckpointFiles::make_best(const fs::path& file) const {
  const auto best = this->best();
  std::error_code none;
  if (fs::equivalent(file, best, none)) return;  // it is, and two names of one file do not replace each other
  NewFile next{best, {.ending = unfinished_ending()}};
  next.take_content_of(file);
  next.publish();
}

namespace {

using Clock = std::chrono::steady_clock;

CheckpointWriter::Duration time_of_this_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

/// Copies a state into memory that may have held one before.
void copy(const std::map<std::string, torch::Tensor>& state, std::map<std::string, torch::Tensor>& copies) {
  const torch::NoGradGuard no_grad;
  std::optional<torch::Device> gpu;
  for (const auto& [name, tensor] : state) {
    auto& copy = copies[name];
    if (!copy.defined() || copy.sizes() != tensor.sizes() || copy.scalar_type() != tensor.scalar_type())
      copy = torch::empty(tensor.sizes(),
                          torch::TensorOptions{tensor.scalar_type()}.pinned_memory(tensor.is_cuda()));
    copy.copy_(tensor.detach(), /*non_blocking=*/true);
    if (tensor.is_cuda()) gpu = tensor.device();
  }
  if (gpu) torch::cuda::synchronize(gpu->index());
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::filesystem::path& folder, int keep_last,
                                   protocol::Events& events)
    : files_{folder, keep_last}, events_{events} {}

CheckpointWriter::~CheckpointWriter() {
  if (under_way_.valid()) under_way_.wait();
  if (!held_) return;
  try {
    write_file(held_->checkpoint, held_->is_best);
  } catch (...) {  // the training has ended by an error of its own
  }
}

void CheckpointWriter::hold(Checkpoint checkpoint, bool is_best) {
  const auto begun = Clock::now();
  const std::size_t place = held_ ? held_->copy : is_writing() ? 1 - written_copy_ : written_copy_;
  held_.reset();
  copy(checkpoint.tensors, copies_[place]);
  checkpoint.tensors = copies_[place];
  held_ = Held{.checkpoint = std::move(checkpoint),
               .is_best = is_best,
               .copy = place,
               .stood_still = Clock::now() - begun};
}

void CheckpointWriter::write() {
  const auto begun = Clock::now();
  finish();
  auto held = *std::exchange(held_, std::nullopt);
  written_copy_ = held.copy;
  stood_still_ = held.stood_still + (Clock::now() - begun);
  under_way_ = std::async(std::launch::async, [this, held = std::move(held)] {
    return write_file(held.checkpoint, held.is_best);
  });
}

/// Who goes on from a checkpoint that was said does not evaluate its step again: the best has its name by
/// then.
CheckpointWriter::Duration CheckpointWriter::write_file(const Checkpoint& checkpoint, bool is_best) {
  const auto file = files_.file_of(checkpoint.step);
  std::string digest;
  try {
    digest = write_checkpoint(file, checkpoint);
    if (is_best) files_.make_best(file);
  } catch (const Error& error) {
    std::uint64_t bytes = 0;
    for (const auto& [name, tensor] : checkpoint.tensors) bytes += tensor.nbytes();
    device::throw_as_disk_fault(error, bytes);
  }
  if (is_best)
    events_.best_checkpoint(checkpoint.step, std::filesystem::absolute(file), digest,
                            std::filesystem::absolute(files_.best()));
  else
    events_.checkpoint(checkpoint.step, std::filesystem::absolute(file), digest);
  files_.add(file);
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
  if (under_way_.valid()) cost_ = stood_still_ + under_way_.get();
}

}  // namespace abl::training
