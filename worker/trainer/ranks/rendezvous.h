// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace abl::ranks {

/// Where the ranks of a run find each other: the address of a store that one process keeps.
struct Rendezvous {
  std::string host;
  std::uint16_t port = 0;

  std::string text() const;  ///< "127.0.0.1:29500"
};

/// Throws: Error{kInvalidArgument} where it is not HOST:PORT.
Rendezvous parse_rendezvous(const std::string& text);

/// Keeps such a store, at a free port that only this machine can reach.
class RendezvousServer {
 public:
  /// Throws: Error when there is no port to be had.
  RendezvousServer();
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  const Rendezvous& rendezvous() const { return rendezvous_; }

 private:
  struct Store;
  Rendezvous rendezvous_;
  std::unique_ptr<Store> store_;
};

}  // namespace abl::ranks
