// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "webhooks/happening.h"

namespace abl::webhooks {

inline constexpr Milliseconds kPostDeadline{15'000};  ///< of one post, from the name's lookup to the answer

/// What became of a post.
struct Posted {
  unsigned status = 0;  ///< of HTTP; 0: there was no answer
  std::string why;      ///< why not, or what the status says
  std::optional<std::chrono::seconds> retry_after{};

  bool taken() const { return status >= 200 && status < 300; }
  /// The receiver refuses this post, and would again.
  bool refused() const {
    return status >= 300 && status < 500 && status != 408 && status != 425 && status != 429;
  }
};

/// Posts to a webhook's address, over TLS with its server's certificate checked, as application/json. Its
/// headers: `Ablate-Event`, `Ablate-Delivery` (the happening's id), and with a secret `Ablate-Signature:
/// sha256=…`, the HMAC-SHA256 of the body in hexadecimal. Follows no redirection, and reads at most 64 KiB of
/// the answer. Never throws for what the network does.
/// Thread: any. Gives up when `stop` is requested.
Posted post(const Webhook& webhook, const Message& message, std::stop_token stop = {},
            Milliseconds deadline = kPostDeadline);

/// "sha256=" and HMAC-SHA256 in hexadecimal.
std::string signature_of(const std::string& body, const std::string& secret);

}  // namespace abl::webhooks
