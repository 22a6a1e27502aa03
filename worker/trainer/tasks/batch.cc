// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/batch.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cstring>
#include <utility>

#include "base/error.h"

namespace abl::tasks {
namespace {

Erased erased_of(const images::Erasure& erasure, std::size_t image, bool pinned) {
  const auto& rectangle = erasure.rectangle;
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(erasure.noise_seed);
  return {.image = static_cast<std::int64_t>(image),
          .rectangle = rectangle,
          .noise = torch::randn({3, rectangle.height, rectangle.width}, generator,
                                torch::TensorOptions{}.pinned_memory(pinned))};
}

}  // namespace

Batch Batch::narrow(std::int64_t first, std::int64_t count) const {
  Batch some{
      .images = images.narrow(0, first, count), .labels = labels.narrow(0, first, count), .erased = {}};
  for (const auto& [image, rectangle, noise] : erased)
    if (image >= first && image < first + count) some.erased.push_back({image - first, rectangle, noise});
  return some;
}

BatchInMaking::BatchInMaking(BatchPlan plan, const Collation& collation)
    : plan_{std::move(plan)},
      collation_{collation},
      bytes_{std::size_t{3} * collation.image_size * collation.image_size},
      images_{torch::empty(
          {static_cast<std::int64_t>(plan_.indices.size()), collation.image_size, collation.image_size, 3},
          torch::dtype(torch::kUInt8).pinned_memory(collation.pinned))},
      slots_(plan_.indices.size()) {}

bool BatchInMaking::work(const std::atomic<bool>& stop) {
  if (slots_.empty()) return taken_++ == 0;
  for (std::size_t place; !stop && (place = taken_++) < slots_.size();) {
    try {
      prepare(place);
    } catch (...) {
      slots_[place].error = std::current_exception();
    }
    if (++done_ == slots_.size()) return true;
  }
  return false;
}

void BatchInMaking::prepare(std::size_t place) {
  const std::uint32_t index = plan_.indices[place], size = collation_.replace_among;
  auto sample = plan_.prepare(index, place);
  for (std::uint32_t step = 1; !sample && step < size; ++step)
    sample = plan_.prepare((index + step) % size, place);
  if (!sample && size > 0) throw Error{Code::kDataLoss, "data: no readable images"};
  if (!sample) return;
  std::memcpy(images_.data_ptr<std::uint8_t>() + place * bytes_, sample->image.pixels.data(), bytes_);
  auto& slot = slots_[place];
  slot.present = true, slot.label = sample->label;
  if (sample->erasure) slot.erased = erased_of(*sample->erasure, place, collation_.pinned);
}

Batch BatchInMaking::finish() {
  std::vector<std::int64_t> labels;
  std::vector<Erased> erased;
  const auto images = std::exchange(images_, {});
  auto* const first = images.data_ptr<std::uint8_t>();
  for (std::size_t place = 0; place < slots_.size(); ++place) {
    auto& slot = slots_[place];
    if (slot.error) std::rethrow_exception(slot.error);
    if (!slot.present) continue;
    const std::size_t filled = labels.size();  // those behind one that was left out move up
    if (filled != place) std::memcpy(first + filled * bytes_, first + place * bytes_, bytes_);
    if (slot.erased) {
      slot.erased->image = static_cast<std::int64_t>(filled);
      erased.push_back(std::move(*slot.erased));
    }
    labels.push_back(slot.label);
  }
  const auto of_labels = torch::tensor(labels, torch::kInt64);
  return {.images = images.narrow(0, 0, static_cast<std::int64_t>(labels.size())),
          .labels = collation_.pinned ? of_labels.pin_memory() : of_labels,
          .erased = std::move(erased)};
}

Batch collate(const std::vector<std::uint32_t>& indices, const Collation& collation, const Prepare& prepare) {
  const std::atomic<bool> never = false;
  BatchInMaking batch{{.indices = indices, .prepare = prepare}, collation};
  batch.work(never);
  return batch.finish();
}

namespace {

torch::Tensor of_channels(const std::vector<double>& numbers) {
  return torch::tensor(numbers, torch::kFloat32);
}

}  // namespace

torch::Tensor pixels_of(const torch::Tensor& input, const config::DataConfig& data) {
  const auto shown =
      input.to(torch::kCPU).permute({0, 2, 3, 1}) * of_channels(data.std) + of_channels(data.mean);
  return (shown * 255).round().clamp(0, 255).to(torch::kByte).contiguous();
}

Renormalisation::Renormalisation(const config::DataConfig& given, const config::DataConfig& expected,
                                 torch::Device device) {
  if (given.mean == expected.mean && given.std == expected.std) return;
  const auto numbers = [](const std::vector<double>& three) {
    return torch::tensor(three, torch::kFloat64).view({3, 1, 1});
  };
  const auto deviation = numbers(expected.std);
  scale_ = (numbers(given.std) / deviation).to(device, torch::kFloat32);
  shift_ = ((numbers(given.mean) - numbers(expected.mean)) / deviation).to(device, torch::kFloat32);
}

torch::Tensor Renormalisation::operator()(const torch::Tensor& images) const {
  return scale_.defined() ? torch::addcmul(shift_, images, scale_) : images;
}

BatchInput::BatchInput(torch::Device device, const config::DataConfig& data)
    : device_{device},
      mean_{of_channels(data.mean).to(device)},
      deviation_{of_channels(data.std).to(device)} {}

torch::Tensor BatchInput::images(const Batch& batch) const {
  const auto numbers = batch.images.to(device_, /*non_blocking=*/true).to(torch::kFloat32);
  const auto scaled = numbers.mul_(1.f / 255).sub_(mean_).div_(deviation_);
  auto images = scaled.permute({0, 3, 1, 2}).contiguous();
  for (const auto& [image, rectangle, noise] : batch.erased)
    images[image]
        .narrow(1, rectangle.top, rectangle.height)
        .narrow(2, rectangle.left, rectangle.width)
        .copy_(noise, /*non_blocking=*/true);
  return images;
}

torch::Tensor BatchInput::labels(const Batch& batch) const {
  return batch.labels.to(device_, /*non_blocking=*/true);
}

}  // namespace abl::tasks
