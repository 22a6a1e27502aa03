// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <utility>

namespace abl {

/// A value that can be reached only with its lock held.
///   Guarded<std::vector<int>> jobs;
///   jobs.lock()->push_back(1);          // for one statement
///   auto held = jobs.lock(); held->…    // for a scope
template <class T>
class Guarded {
 public:
  class Lock {
   public:
    Lock(T& value, std::mutex& mutex) : value_{value}, lock_{mutex} {}
    T* operator->() { return &value_; }
    T& operator*() { return value_; }
    /// For a condition variable's wait.
    std::unique_lock<std::mutex>& mutex() { return lock_; }

   private:
    T& value_;
    std::unique_lock<std::mutex> lock_;
  };

  Guarded() = default;
  explicit Guarded(T value) : value_{std::move(value)} {}
  Lock lock() { return Lock{value_, mutex_}; }

 private:
  T value_{};
  std::mutex mutex_;
};

}  // namespace abl
