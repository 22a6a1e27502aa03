// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access/tls.h"
#include "base/clock.h"
#include "base/instruments.h"
#include "storage/change.h"
#include "storage/change_log.h"
#include "views/views.h"

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

/// Who may look, as whoever runs the dashboard knows. Nothing that waits: it is asked on the network thread.
/// Thread: any.
class Doorkeeper {
 public:
  virtual ~Doorkeeper() = default;
  struct Holder {
    std::string token;  ///< its public part
    std::string name, role;
    std::optional<Time> expires;
  };
  /// Throws: Error saying why not, kUnauthenticated or kPermissionDenied; with nothing of the token in it.
  virtual Holder recognise(std::string_view token) = 0;
  /// Why a token that was recognised is good for nothing any more; empty: it is good.
  virtual std::string why_over(const std::string& token) const = 0;
  /// Writes down that somebody came, left or was refused (a holder without a token). `peer`: an address.
  virtual void note(const Holder& holder, const std::string& what, const std::string& peer,
                    const std::string& outcome) = 0;
};

class Actions;  // web/server/actions.h

/// What one address, or all of them, may ask of a dashboard.
struct Limits {
  std::size_t connections = 512, of_one_address = 128;
  /// Where people sign in: requests of one address at once, and a second in the long run.
  double requests = 1000, requests_a_second = 200;
  /// Event streams, that is, pages that are open, of one token, or of one address where nobody signs in. All
  /// of an address together have three quarters of its connections, and all that there are of all, so that
  /// there is room for who asks for something.
  std::size_t event_streams_of_one = 32;
  /// In which the body of a request is there as a whole.
  std::chrono::milliseconds body{30'000};
};

struct ServerOptions {
  std::filesystem::path store;
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;    ///< 0: any free one
  bool watch_store = false;  ///< true: nobody publishes, look at PRAGMA data_version instead (read-only use
                             ///< beside a scheduler)
  std::chrono::milliseconds heartbeat{5000};  ///< of an event stream that has nothing else to say
  std::string version{};                      ///< of the program, as it says it
  const storage::ChangeLog* log = nullptr;  ///< what each commit touches; outlives the server; none: unknown
  const Monitor* monitor = nullptr;         ///< outlives the server; none: it knows nothing beside
  /// With TLS: what it is served with. Beyond loopback it needs that, and a doorkeeper.
  std::shared_ptr<const access::ServerCertificate> certificate{};
  Doorkeeper* doorkeeper = nullptr;  ///< outlives the server; none: whoever reaches it may look
  Actions* actions = nullptr;        ///< outlives the server; none: it only shows, and refuses to do anything
  views::OtherPlaces others{};       ///< where the program keeps more than the store; none: nowhere
  const Clock* clock = nullptr;      ///< of sessions; outlives the server; none: the system's
  Limits limits{};
};

/// The dashboard: JSON under /api/v1 (docs/http-api.md; each read is a file of views/reads/), Server-Sent
/// Events under /api/v1/events, /metrics and /healthz for those who watch over it (docs/operations.md), the
/// app at /. Runs on threads of its own with read-only connections; it can never fail a writer. Errors are
/// {"code": "NOT_FOUND", "message": …} with a fitting status; 503 with Retry-After where too much is under
/// way. Host must be a loopback name or one of the certificate's, and Origin, where sent, ours; what a page
/// of another site or port asks for is refused. With a doorkeeper, people sign in with a token (sign_in.h)
/// and scripts show one with each request; nothing but the sign-in page, the app's files and whether it is
/// well is for everybody.
class Server {
 public:
  /// Binds and starts. Throws: Error{kUnavailable} "port 8080 on 127.0.0.1 is in use: choose another with …".
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  std::string url() const;  ///< "http://127.0.0.1:8080/"

  /// Tells browsers what changed. Thread: any.
  void publish(storage::Change change);
  /// Why nothing can be stored, or empty: goes out with every heartbeat. Thread: any.
  void set_trouble(const std::string& trouble);
  /// A token has ended: event streams that were open with it end. Thread: any.
  void look_who_is_there();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace abl::web
