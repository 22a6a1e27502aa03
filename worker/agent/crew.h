// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace abl::agent {

/// Threads that carry runs out, one run at a time each. One whose run is over waits for the next: a new
/// thread costs more than a short run. Thread: any.
class Crew {
 public:
  Crew() = default;
  /// Waits until all work is done.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Has the work done at once. Throws: std::system_error when there is no thread for it.
  void take_on(std::function<void()> work);

 private:
  void wait_for_work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  std::size_t idle_ = 0;
  bool over_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace abl::agent
