// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace abl::data {

/// Calls `work(i)` once for each i < count, from `threads` threads; returns when all are done. After an
/// exception no further call is begun, and the first one is thrown.
template <class Work>
void parallel_for(std::size_t count, int threads, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr first;
  std::mutex mutex;
  const auto run = [&] {
    try {
      for (std::size_t i; (i = next++) < count;) work(i);
    } catch (...) {
      next = count;
      const std::scoped_lock lock{mutex};
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(run);
    run();
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace abl::data
