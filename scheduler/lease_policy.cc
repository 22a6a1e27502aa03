// SPDX-License-Identifier: Apache-2.0
#include "scheduler/lease_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace abl::scheduler {

void LeasePolicy::check() const {
  if (heartbeat <= Milliseconds{0} || 2 * heartbeat > ttl)
    throw Error{
        Code::kInvalidArgument,
        fmt::format(
            "heartbeat of {} ms with leases of {} ms: the heartbeat must be above 0 and at most half a lease",
            heartbeat.count(), ttl.count())};
}

int LeasePolicy::depth(Milliseconds typical) const {
  constexpr Milliseconds kWork{100};
  return static_cast<int>(
      std::clamp<std::int64_t>(kWork / std::max(typical, Milliseconds{1}), ahead, most_ahead));
}

}  // namespace abl::scheduler
