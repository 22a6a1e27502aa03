// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "access/certificates.h"

namespace abl::access {

/// What gRPC serves TLS with. Files that change are read again within some seconds; connections that are
/// there go on. The files are those that `check` found right.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const TlsFiles& files);

/// How a client reaches a scheduler.
struct ClientAccess {
  bool tls = false;         ///< otherwise all that follows is not used: a Unix socket, a loopback address
  std::string authorities;  ///< in PEM; empty: the system's
  std::string token;        ///< goes with every call
};
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const ClientAccess& access);

}  // namespace abl::access
