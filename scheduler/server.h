// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access/certificates.h"
#include "scheduler/scheduler.h"
#include "webhooks/webhook_file.h"

namespace abl::scheduler {

struct ServerOptions {
  SchedulerOptions scheduler;
  std::vector<std::string> listen;  ///< "unix:/path/scheduler.sock" or an IP address with its port, one at
                                    ///< least; beyond loopback with `tls`, or where it is `insecure`
  access::TlsFiles tls;             ///< TLS, and tokens, on every address that is no Unix socket
  bool insecure = false;            ///< whoever reaches a port does as he likes
  /// Of the dashboard on 127.0.0.1; 0: any free one; nothing: no dashboard, or the one at `http_listen`.
  /// Where there is TLS, it is served with it, and people sign in.
  std::optional<std::uint16_t> http_port;
  std::string http_listen;      ///< where the dashboard may be reached from: "0.0.0.0:8571"; needs TLS
  std::size_t pages_each = 32;  ///< of the dashboard that one token may have open; without TLS, one address
  std::size_t connections_each = 256;         ///< over gRPC, of one address
  std::vector<webhooks::Webhook> webhooks{};  ///< who is told what happens
  Milliseconds webhooks_between{5000};        ///< what happens meanwhile is told together
};

/// A scheduler that serves: its addresses, the dashboard and the timer, with health service and reflection
/// on.
/// Thread: one owner.
class SchedulerServer {
 public:
  /// Serves when it returns.
  /// Throws: Error for a store in use or not usable, an address in use or not allowed; nothing is left behind
  /// that was not there before.
  explicit SchedulerServer(const ServerOptions& options);
  /// Says goodbye to workers and watchers and stops. Leases stay: the trainers go on, and the next scheduler
  /// finds them.
  ~SchedulerServer();
  SchedulerServer(const SchedulerServer&) = delete;
  SchedulerServer& operator=(const SchedulerServer&) = delete;

  std::vector<std::string> addresses() const;  ///< with the ports that were chosen
  std::string dashboard() const;               ///< URL, or empty

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace abl::scheduler
