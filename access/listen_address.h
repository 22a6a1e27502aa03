// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace abl::access {

/// "localhost" in any case, 127.0.0.0/8 and ::1, as they are written in a Host or a listen address without
/// brackets: what only this machine reaches.
bool is_loopback(const std::string& host);
/// Numbers alone: a name may stand for several addresses, and for others tomorrow.
bool is_ip_address(const std::string& host);

/// Where a program listens: "unix:/path/scheduler.sock", a loopback address "127.0.0.1:7070",
/// "localhost:7070", "[::1]:7070", or where it may be reached from the network "0.0.0.0:7070".
struct ListenAddress {
  std::filesystem::path socket;  ///< of a Unix socket; empty: TCP
  std::string host;
  std::uint16_t port = 0;    ///< 0: any free one
  std::string text() const;  ///< as gRPC and clients take it
};

/// Who may reach a service: a network is no place for one without tokens and TLS.
enum class Reach { kThisMachine, kNetwork };

/// Throws: Error{kInvalidArgument} for text that is no address, and for TCP beyond loopback where only this
/// machine may reach it.
ListenAddress parse_listen_address(const std::string& text, Reach reach = Reach::kThisMachine);

/// Whether an address could be listened on; makes nothing, but closes the home folder to other users where
/// the socket is to be in it. `flag` is where people would name another. Throws: Error{kUnavailable} when
/// somebody listens there, Error{kPermissionDenied} when the socket's folder is open to others,
/// Error{kInvalidArgument} when the path is too long for a socket or no socket is there.
void check(const ListenAddress& address, const char* flag = "--listen");

/// Makes an address ready to be listened on: the socket's folder is this user's alone (0700; created where
/// absent), the socket of a dead program is removed. Returns: the folders that it made. Throws: as `check`.
std::vector<std::filesystem::path> prepare(const ListenAddress& address);

/// Closes the home folder to other users, where this is it.
void protect_home(const std::filesystem::path& folder);

}  // namespace abl::access
