// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/loader.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace abl::trainer {
namespace {

Patch patch_of(const Erasure& erasure, std::size_t image, bool pinned) {
  const auto& rectangle = erasure.rectangle;
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(erasure.noise_seed);
  return {.image = static_cast<std::int64_t>(image),
          .rectangle = rectangle,
          .noise = torch::randn({3, rectangle.height, rectangle.width}, generator,
                                torch::TensorOptions{}.pinned_memory(pinned))};
}

}  // namespace

Loader::Loader(std::int64_t first, std::int64_t count, int threads, int ahead, MakeBatch make)
    : end_{first + count},
      ahead_{std::max(1, ahead)},
      make_{std::move(make)},
      to_make_{first},
      to_give_{first} {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { work(); });
}

Loader::~Loader() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  room_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Loader::work() {
  std::unique_lock lock{mutex_};
  for (;;) {
    room_.wait(lock, [&] { return stopping_ || to_make_ >= end_ || to_make_ < to_give_ + ahead_; });
    if (stopping_ || to_make_ >= end_) return;
    const std::int64_t number = to_make_++;
    lock.unlock();
    Outcome outcome;
    try {
      outcome.batch = make_(number);
    } catch (...) {
      outcome.error = std::current_exception();
    }
    lock.lock();
    done_.emplace(number, std::move(outcome));
    ready_.notify_all();
  }
}

std::optional<Batch> Loader::next() {
  std::unique_lock lock{mutex_};
  if (to_give_ >= end_) return std::nullopt;
  ready_.wait(lock, [&] { return done_.contains(to_give_); });
  Outcome outcome = std::move(done_.extract(to_give_++).mapped());
  lock.unlock();
  room_.notify_all();
  if (outcome.error) std::rethrow_exception(outcome.error);
  return std::move(outcome.batch);
}

Batch collate(const std::vector<std::uint32_t>& indices, const Collation& collation, const Prepare& prepare) {
  const auto& [size, side, pinned] = collation;
  const auto bytes = std::size_t{3} * side * side;
  auto images = torch::empty({static_cast<std::int64_t>(indices.size()), side, side, 3},
                             torch::dtype(torch::kUInt8).pinned_memory(pinned));
  std::vector<std::int64_t> labels;
  std::vector<Patch> patches;
  for (std::size_t place = 0; place < indices.size(); ++place) {
    auto sample = prepare(indices[place], place);
    for (std::uint32_t step = 1; !sample && step < size; ++step)
      sample = prepare((indices[place] + step) % size, place);
    if (!sample && size > 0) throw Error{Code::kDataLoss, "data: none of the images can be read"};
    if (!sample) continue;
    std::memcpy(images.data_ptr<std::uint8_t>() + labels.size() * bytes, sample->view.image.pixels.data(),
                bytes);
    if (sample->view.erasure) patches.push_back(patch_of(*sample->view.erasure, labels.size(), pinned));
    labels.push_back(sample->label);
  }
  const auto of_labels = torch::tensor(labels, torch::kInt64);
  return {.images = images.narrow(0, 0, static_cast<std::int64_t>(labels.size())),
          .labels = pinned ? of_labels.pin_memory() : of_labels,
          .patches = std::move(patches)};
}

}  // namespace abl::trainer
