// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "worker/trainer/ranks/rank_group.h"

namespace abl::ranks {

/// Runs `work` as so many ranks, each in a thread of its own; throws what the first of them threw.
inline void as_ranks(int ranks, const std::function<void(RankGroup&)>& work) {
  const RendezvousServer server;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          RankGroup group{{.rank = rank, .ranks = ranks, .rendezvous = server.rendezvous()}};
          work(group);
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace abl::ranks
