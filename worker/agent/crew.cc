// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/crew.h"

#include <utility>

namespace abl::agent {

Crew::~Crew() {
  {
    const std::scoped_lock lock{mutex_};
    over_ = true;
  }
  wake_.notify_all();
}

void Crew::take_on(std::function<void()> work) {
  const std::scoped_lock lock{mutex_};
  if (idle_ <= work_.size()) threads_.emplace_back([this] { wait_for_work(); });
  work_.push_back(std::move(work));
  wake_.notify_one();
}

void Crew::wait_for_work() {
  std::unique_lock lock{mutex_};
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return over_ || !work_.empty(); });
    --idle_;
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace abl::agent
