// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "ablate/v1/workers.grpc.pb.h"
#include "access/tls.h"
#include "base/clock.h"

namespace abl::agent {

/// What a session carries. Called on the session's threads; must not wait for long.
class Peer {
 public:
  virtual ~Peer() = default;
  /// A session begins: what is unacknowledged is to be sent again. Nobody is in `next` then.
  virtual ablate::v1::Hello hello() = 0;
  /// The next message to be sent, or nothing until `Session::wake`.
  virtual std::optional<ablate::v1::WorkerMessage> next() = 0;
  virtual void receive(const ablate::v1::SchedulerMessage& message) = 0;
};

/// Waiting between attempts: doubled after each failure, from `first` to `longest`, and shortened by chance
/// by up to a half, so that the workers of a restarted scheduler do not come all at once.
struct Backoff {
  Milliseconds first{100}, longest{5000};
};

/// The worker's bidirectional stream, opened again whenever it breaks. A thread of its own connects, says
/// hello and waits for the welcome. What `Peer::next` gives is sent one message at a time, by whoever is
/// there: by gRPC's thread after the message before, by the one that calls `flush`, otherwise by its own.
class Session {
 public:
  Session(std::string address, Peer& peer, Backoff backoff = {}, access::ClientAccess access = {});
  ~Session() { close(); }

  void start();
  /// Ends the stream; the peer is not called any more.
  void close();
  /// There may be something to send.
  /// Thread: any.
  void wake();
  /// The same, and sends it on this thread where nothing else is being sent: the peer is called.
  /// Thread: any, without a lock that the peer's methods want.
  void flush();
  bool connected() const;

 private:
  class Stream;
  void talk(std::stop_token stop);
  bool converse(std::stop_token stop);
  void send_pending();
  void say_why(const grpc::Status& status, const std::string& trouble, bool news);

  const std::string address_;
  Peer& peer_;
  const Backoff backoff_;
  const access::ClientAccess access_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Stream* stream_ = nullptr;  ///< the open one
  bool asking_ = false;       ///< somebody is in `next`, and will be back for the stream
  bool pending_ = false;      ///< `next` may have something
  bool connected_ = false;    ///< welcomed
  std::string last_trouble_;
  bool explained_ = false;  ///< more was found out about it than gRPC says
  std::chrono::steady_clock::time_point asked_{};
  std::jthread thread_;
};

}  // namespace abl::agent
