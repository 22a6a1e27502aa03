// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace abl::protocol {

/// How the slots of a trial may be divided among workers.
struct Split {
  /// Of its GPUs it takes fewer too, down to so many, where the connected workers have no more; 0: it wants
  /// all of them.
  int least_gpus = 0;
  /// On so many workers, on each of them as many; as `least_gpus`, fewer too. 0: on one, where one has enough
  /// GPUs, otherwise on as many as it takes.
  int least_nodes = 0, most_nodes = 0;

  bool operator==(const Split&) const = default;
  bool any() const { return *this != Split{}; }

  /// As it is stored: JSON with sorted keys, or empty. {"least_gpus":8}, {"nodes":[1,2]}
  std::string text() const;
  /// Throws: Error{kInvalidArgument} for a text that is no such thing.
  static Split parse(const std::string& text);
  /// What a trial of so many GPUs (0: one slot on each worker) needs, for people: "8 to 16 GPUs", "16 GPUs, 8
  /// on each of 2 workers", "2 slots, one on each of 2 workers".
  std::string words(int gpus) const;
};

}  // namespace abl::protocol
