// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/detect/aspect_order.h"

#include <array>
#include <utility>

namespace abl::tasks {

std::vector<bool> lying(const data::AnnotatedSource& pictures) {
  std::vector<bool> lies;
  for (std::uint32_t i = 0; i < pictures.size(); ++i) {
    const auto [width, height] = pictures.extent(i);
    lies.push_back(width > height);
  }
  return lies;
}

std::vector<std::uint32_t> by_aspect(const std::vector<std::uint32_t>& order, const std::vector<bool>& lies,
                                     std::size_t batch) {
  std::vector<std::uint32_t> grouped;
  std::array<std::vector<std::uint32_t>, 2> begun;  // batches: of pictures that stand, and that lie
  for (const auto picture : order) {
    auto& kind = begun[lies[picture] ? 1 : 0];
    kind.push_back(picture);
    if (kind.size() < batch) continue;
    grouped.insert(grouped.end(), kind.begin(), kind.end());
    kind.clear();
  }
  for (const auto& kind : begun) grouped.insert(grouped.end(), kind.begin(), kind.end());
  return grouped;
}

AspectOrder::AspectOrder(std::int64_t seed, std::vector<bool> lies, std::int64_t batch)
    : order_{seed, static_cast<std::uint32_t>(lies.size())},
      lies_{std::move(lies)},
      batch_{static_cast<std::size_t>(batch)} {}

const std::vector<std::uint32_t>& AspectOrder::of(std::uint64_t epoch) {
  if (epoch_ != epoch) grouped_ = by_aspect(*order_.of(epoch), lies_, batch_), epoch_ = epoch;
  return grouped_;
}

}  // namespace abl::tasks
