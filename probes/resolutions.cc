// SPDX-License-Identifier: Apache-2.0
#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>

#include "base/error.h"
#include "models/counting/memory.h"
#include "probes/probe.h"

namespace abl::probes {
namespace {

/// Image sizes of a probe, and what a size that nobody asked for may be left out for.
class Sizes {
 public:
  /// `parts`: of the trained size, where the request names no sizes.
  Sizes(const Subject& subject, const protocol::ProbeRequest& request, const std::vector<double>& parts)
      : subject_{subject}, sides_{request.numbers("sizes")}, chosen_{!sides_.empty()}, probe_{request.name} {
    for (const double part : parts)
      if (!chosen_) sides_.push_back(std::lround(part * static_cast<double>(subject.image_size)));
    std::ranges::sort(sides_);
  }

  const std::vector<std::int64_t>& sides() const { return sides_; }

  /// Nothing, and a note, for a size that the model does not take. Throws: Error where it was asked for, and
  /// whatever else than the size is wrong, as it comes.
  std::shared_ptr<models::Classifier> model(std::int64_t side, Findings& findings) const {
    const auto left_out = [&](const std::string& why) {
      if (chosen_)
        throw Error{Code::kInvalidArgument,
                    fmt::format("{}.sizes: the model takes no images of {} pixels: {}", probe_, side, why)};
      findings.notes.push_back(fmt::format("size {} is left out: {}", side, why));
    };
    try {
      return subject_.at_size(side);
    } catch (const Error& error) {
      if (error.code() != Code::kInvalidArgument) throw;
      left_out(error.what());
    } catch (const c10::ValueError& error) {
      left_out(error.what_without_backtrace());
    }
    return nullptr;
  }

 private:
  const Subject& subject_;
  std::vector<std::int64_t> sides_;
  const bool chosen_;
  const std::string probe_;
};

/// A column of numbers for each measure, a place for each size.
struct BySize {
  std::vector<std::string> sides;
  std::map<std::string, std::vector<double>> columns;

  void add(std::int64_t side, const std::map<std::string, double>& values) {
    sides.push_back(std::to_string(side));
    for (const auto& [name, value] : values) columns[name].push_back(value);
  }
  void hand_to(Findings& findings) const {
    for (const auto& [name, values] : columns) {
      findings.arrays[name] = {.axes = {{.name = "size", .places = sides}},
                               .values = torch::tensor(values, torch::kDouble)};
      for (std::size_t i = 0; i < sides.size(); ++i)
        if (std::isfinite(values[i])) findings.values[name + "-" + sides[i]] = values[i];
    }
  }
};

/// Throws: Error{kFailedPrecondition} where every size was left out.
void expect_some(const BySize& found, const Findings& findings, const protocol::ProbeRequest& request) {
  if (found.sides.empty())
    throw Error{Code::kFailedPrecondition,
                fmt::format("{}: {}", request.name, fmt::join(findings.notes, "; "))};
}

}  // namespace

/// The evaluation at each size: images are resized and cropped for it as for the trained one, positions are
/// interpolated. Source: XCiT section 4.1 (Robustness to resolution changes), Figure 3.
Findings accuracy_by_resolution(const Subject& subject, const protocol::ProbeRequest& request) {
  const Sizes sizes{subject, request, {0.5, 0.75, 1, 1.25, 1.5, 2}};
  Findings findings;
  BySize found;
  for (const auto side : sizes.sides()) {
    const auto model = sizes.model(side, findings);
    if (!model) continue;
    const auto accuracy = subject.accuracy(*model, side);
    found.add(side, {{"top1", accuracy.top1}, {"top5", accuracy.top5}, {"loss", accuracy.loss}});
  }
  expect_some(found, findings, request);
  found.hand_to(findings);
  return findings;
}

namespace {

std::int64_t bytes_of(const models::Classifier& model) {
  std::int64_t bytes = 0;
  for (const auto& tensor : model.parameters()) bytes += static_cast<std::int64_t>(tensor.nbytes());
  for (const auto& tensor : model.buffers()) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

/// The most that a pass holds at once, its images and the weights included.
std::int64_t memory_of_pass(models::Classifier& model, const std::vector<std::int64_t>& shape,
                            torch::Device device) {
  const auto weights = bytes_of(model);
  if (device.is_cpu()) {
    const models::CountingAllocator memory{torch::kCPU};
    model.forward(torch::zeros(shape));
    return weights + memory.peak();
  }
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  auto* const allocator = c10::getDeviceAllocator(device.type());
  allocator->resetPeakStats(index);
  const auto before = allocator->getDeviceStats(index).allocated_bytes[kAll].current;
  model.forward(torch::zeros(shape, torch::TensorOptions{device}));
  return weights + allocator->getDeviceStats(index).allocated_bytes[kAll].peak - before;
}

/// Images a second by the median of some passes; the one that measured memory has warmed up.
double speed(models::Classifier& model, const torch::Tensor& input) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kLeast = 3, kMost = 50;
  constexpr std::chrono::duration<double> kEnough{1.0};
  const auto wait = [&] {
    if (input.is_cuda()) torch::cuda::synchronize(input.device().index());
  };
  std::vector<double> seconds;
  const auto begun = Clock::now();
  while (seconds.size() < kLeast || (seconds.size() < kMost && Clock::now() - begun < kEnough)) {
    wait();
    const auto from = Clock::now();
    model.forward(input);
    wait();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - from).count());
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return static_cast<double>(input.size(0)) / *middle;
}

}  // namespace

/// What a pass over a batch costs at each size, in 32 bits, on the model's device: the most bytes that
/// weights, images and what is computed from them held at once, as the allocator counted them, and images a
/// second. A size for which memory is missing has neither, and a note says so. Source: XCiT section 4.1,
/// Figure 2.
Findings inference_cost(const Subject& subject, const protocol::ProbeRequest& request) {
  const Sizes sizes{subject, request, {1, 1.5, 2, 3, 4}};
  const auto batch = request.number("batch");
  Findings findings;
  BySize found;
  for (std::size_t i = 0; i < sizes.sides().size(); ++i) {
    const auto side = sizes.sides()[i];
    const auto model = sizes.model(side, findings);
    if (!model) continue;
    const auto too_large = [&] {
      const auto none = std::numeric_limits<double>::quiet_NaN();
      found.add(side, {{"memory_bytes", none}, {"images_per_s", none}});
      findings.notes.push_back(fmt::format("size {}: out of memory with {} images", side, batch));
    };
    try {
      const std::vector<std::int64_t> shape{batch, 3, side, side};
      const auto bytes = memory_of_pass(*model, shape, subject.device);
      const auto images_per_s = speed(*model, torch::zeros(shape, torch::TensorOptions{subject.device}));
      found.add(side, {{"memory_bytes", static_cast<double>(bytes)}, {"images_per_s", images_per_s}});
    } catch (const c10::OutOfMemoryError&) {
      too_large();
    } catch (const std::bad_alloc&) {
      too_large();
    }
    subject.progress(static_cast<double>(i + 1) / static_cast<double>(sizes.sides().size()));
  }
  expect_some(found, findings, request);
  found.hand_to(findings);
  return findings;
}

}  // namespace abl::probes
