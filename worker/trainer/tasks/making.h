// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"

namespace abl::tasks {

/// Which images a batch is to hold, and what becomes of each.
template <class Item>
struct MakingPlan {
  std::vector<std::uint32_t> indices;
  /// `place`: in the batch. Nothing when an image is skipped. From several threads at a time.
  std::function<std::optional<Item>(std::uint32_t index, std::size_t place)> prepare;
  std::uint32_t replace_among = 0;  ///< of so many a skipped one's place goes to the next that can be read;
                                    ///< 0: it is left out
};

/// Items of a batch that are made, by any number of threads: each takes one at a time. What comes of it
/// depends on the plan alone.
template <class Item>
class ItemsInMaking {
 public:
  explicit ItemsInMaking(MakingPlan<Item> plan) : plan_{std::move(plan)}, slots_(plan_.indices.size()) {}

  bool has_work() const { return taken_ < slots_.size(); }
  /// Returns: whether the last of all is done by that; true in one thread alone.
  bool work(const std::atomic<bool>& stop) {
    if (slots_.empty()) return taken_++ == 0;
    for (std::size_t place; !stop && (place = taken_++) < slots_.size();) {
      try {
        slots_[place].item = prepared(place);
      } catch (...) {
        slots_[place].error = std::current_exception();
      }
      if (++done_ == slots_.size()) return true;
    }
    return false;
  }
  /// The items, once `work` returned true; once. Throws: what preparing the first that failed threw.
  std::vector<Item> finish() {
    std::vector<Item> items;
    for (Slot& slot : slots_) {
      if (slot.error) std::rethrow_exception(slot.error);
      if (slot.item) items.push_back(std::move(*slot.item));
    }
    return items;
  }

 private:
  struct Slot {
    std::optional<Item> item;
    std::exception_ptr error;
  };
  std::optional<Item> prepared(std::size_t place) const {
    const std::uint32_t index = plan_.indices[place], among = plan_.replace_among;
    auto item = plan_.prepare(index, place);
    for (std::uint32_t step = 1; !item && step < among; ++step)
      item = plan_.prepare((index + step) % among, place);
    if (!item && among > 0) throw Error{Code::kDataLoss, "data: no readable images"};
    return item;
  }

  const MakingPlan<Item> plan_;
  std::vector<Slot> slots_;
  std::atomic<std::size_t> taken_ = 0, done_ = 0;
};

}  // namespace abl::tasks
