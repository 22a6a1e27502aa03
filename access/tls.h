// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <string>

#include "access/certificates.h"

namespace abl::access {

/// The certificate that a program serves TLS with, and its key, as their files are now. New connections get
/// what is current; those that are there go on.
/// Thread: any.
class ServerCertificate {
 public:
  /// Throws: as `read_server_pem`.
  ServerCertificate(TlsFiles files, Time now);
  ~ServerCertificate();
  ServerCertificate(const ServerCertificate&) = delete;
  ServerCertificate& operator=(const ServerCertificate&) = delete;

  std::shared_ptr<const ServerPem> current() const;
  /// gRPC's, which take up what is current within some seconds.
  std::shared_ptr<grpc::ServerCredentials> credentials() const;
  /// Takes over files that have changed and stood still for one look: they are written one after the other.
  /// What is wrong with them is said in the log, once, and what there was stays; once a day, which
  /// certificate ends within a month. To be called every second or so, by one thread.
  void look_again(Time now);

 private:
  class Copy;
  void publish(ServerPem pem);
  void tell_of_ends(Time now);

  const TlsFiles files_;
  std::string seen_;       // what the files were when they were last read
  std::string last_look_;  // and when they were last looked at
  Time told_{};            // when it was last said which certificates end soon
  std::unique_ptr<Copy> certificate_, key_, client_authorities_;
  mutable std::mutex mutex_;
  std::shared_ptr<const ServerPem> current_;
};

/// How a client reaches a scheduler.
struct ClientAccess {
  bool tls = false;         ///< otherwise all that follows is not used: a Unix socket, a loopback address
  std::string authorities;  ///< in PEM; empty: the system's
  std::string token{};      ///< goes with every call
  TlsFiles own{};           ///< by which it shows who it is, where a scheduler asks for that
};
/// Of a channel that is opened now: files of its own are read anew.
/// Throws: as `read_client_pem`.
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const ClientAccess& access);

}  // namespace abl::access
