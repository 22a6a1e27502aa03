// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "access/listen_address.h"

namespace abl::access {

/// Listens for a server of gRPC, which has no bound of connections: lets so many in of one peer (an IPv4
/// address, an IPv6 network of 64 bits), and so many in all, and hands each over to the server. Of a peer
/// that has as many as it may, the connection that has sent least goes for a new one, or the new one where
/// all have just come; of all, one of the peer that has most. So nobody is kept out by
/// another peer, nor for long by half-open connections of his own.
/// Thread: one of its own; the methods from any.
class Porter {
 public:
  struct Bounds {
    std::size_t of_one = 256, all = 16'384;
    std::chrono::milliseconds to_begin{1000};     ///< so long nobody is put out for a new one
    std::chrono::milliseconds between_looks{20};  ///< at one peer: each costs as much as it has connections
  };
  explicit Porter(Bounds bounds);
  ~Porter();
  Porter(const Porter&) = delete;
  Porter& operator=(const Porter&) = delete;

  /// Listens at an address (port 0: any free one) for the server that is built from this.
  /// Returns: the port. Throws: Error{kUnavailable} where it is in use or not permitted.
  std::uint16_t listen(const ListenAddress& address, grpc::ServerBuilder& builder,
                       const std::shared_ptr<grpc::ServerCredentials>& credentials);
  /// Lets people in, once the server has started.
  void open();
  /// Lets nobody more in; those who are there are the server's. Before the server is shut down.
  void close();

  std::size_t connections() const;
  std::uint64_t turned_away() const;  ///< that were closed for a bound

 private:
  class Impl;
  class Descriptor;
  std::unique_ptr<Impl> impl_;
};

}  // namespace abl::access
