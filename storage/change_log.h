// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "storage/touched.h"

namespace abl::storage {

/// What commits have touched, by numbers that only grow: whoever keeps something of a store asks what changed
/// since the number that he knows. What is too long ago is forgotten. Thread: any.
class ChangeLog {
 public:
  static constexpr std::size_t kMost = 1 << 16;  ///< changes that are remembered

  /// Numbers begin after `before`: a later start of a scheduler goes on above those of an earlier one.
  explicit ChangeLog(std::uint64_t before = 0, std::size_t most = kMost)
      : most_{most}, forgotten_{before}, newest_{before} {}

  /// To be called after the commit, before anybody hears of it: who has heard of a commit finds it here.
  void add(const Touched& touched);
  /// Of the newest change. What is read of the store afterwards has it, or is newer.
  std::uint64_t number() const;

  struct Since {
    std::uint64_t number = 0;  ///< of the newest change
    bool complete = false;     ///< otherwise anything may have changed
    Touched touched;           ///< each trial and sweep once, ascending
  };
  Since since(std::uint64_t number) const;

 private:
  enum class Kind : std::uint8_t { kTrial, kSweep };
  struct Entry {
    std::uint64_t number = 0;
    std::uint32_t id = 0;
    Kind kind = Kind::kTrial;
  };
  void push(Kind kind, std::uint32_t id);

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  std::uint64_t forgotten_, newest_;  // up to this number; of the newest
};

}  // namespace abl::storage
