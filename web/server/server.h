// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/instruments.h"
#include "storage/change.h"

namespace abl::web {

/// What a program says of itself at /metrics and /healthz, beside what the server knows. Nothing that waits,
/// and no query: it is asked on the network thread. Thread: any.
class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual void expose(Exposition& exposition) const = 0;
  /// Something that keeps it from its work: what was looked at, in a word, and what is wrong with it.
  struct Ailment {
    std::string check, message;
  };
  virtual std::vector<Ailment> ailments() const = 0;
};

struct ServerOptions {
  std::filesystem::path store;
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;    ///< 0: any free one
  bool watch_store = false;  ///< true: nobody publishes, look at PRAGMA data_version instead (read-only use
                             ///< beside a scheduler)
  std::chrono::milliseconds heartbeat{5000};  ///< of an event stream that has nothing else to say
  std::string version{};                      ///< of the program, as it says it
  const Monitor* monitor = nullptr;           ///< outlives the server; none: it knows nothing beside
};

/// What the scheduler lets a browser do; null = read-only. Empty until tokens exist: off the Unix socket HTTP
/// only reads.
class Actions {
 public:
  virtual ~Actions() = default;
};

/// The dashboard: JSON under /api/v1 (docs/http-api.md; each read is a file of views/reads/), Server-Sent
/// Events under /api/v1/events, /metrics and /healthz for those who watch over it (docs/operations.md), the
/// app at /. Runs on threads of its own with read-only connections; it can never fail a writer. Errors are
/// {"code": "NOT_FOUND", "message": …} with a fitting status; 503 with Retry-After where too much is under
/// way. Host must be a loopback name and Origin, where sent, ours; what a page of another site or port asks
/// for is refused.
class Server {
 public:
  /// Binds and starts. Throws: Error{kUnavailable} "port 8080 on 127.0.0.1 is in use: choose another with …".
  Server(const ServerOptions& options, std::shared_ptr<Actions> actions = nullptr);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  std::string url() const;  ///< "http://127.0.0.1:8080/"

  /// Tells browsers what changed. Thread: any.
  void publish(storage::Change change);
  /// Why nothing can be stored, or empty: goes out with every heartbeat. Thread: any.
  void set_trouble(const std::string& trouble);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace abl::web
