// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace abl::ranks {

/// The loopback interface: where the ranks of a run on one machine meet.
inline constexpr const char* kThisMachine = "127.0.0.1";

/// Where the ranks of a run find each other: the address of a store that one process keeps.
struct Rendezvous {
  std::string host;
  std::uint16_t port = 0;

  std::string text() const;  ///< "127.0.0.1:29500"
};

/// Throws: Error{kInvalidArgument} where it is not HOST:PORT.
Rendezvous parse_rendezvous(const std::string& text);

/// Has NCCL talk over the network interface with this address of the machine, unless its own setting
/// (NCCL_SOCKET_IFNAME) is there.
void use_interface_of(const std::string& address);

/// Keeps such a store.
class RendezvousServer {
 public:
  struct Store;  ///< store_client.h
  /// At a free port of this address of the machine, and of no other: by default only this machine can reach
  /// it. Throws: Error naming the address when there is no port to be had, or no such address here.
  explicit RendezvousServer(const std::string& address = kThisMachine);
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  const Rendezvous& rendezvous() const { return rendezvous_; }
  const Store& store() const { return *store_; }

 private:
  Rendezvous rendezvous_;
  std::unique_ptr<Store> store_;
};

}  // namespace abl::ranks
