// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace abl::scheduler {

/// Where a scheduler listens: "unix:/path/scheduler.sock", or a loopback address "127.0.0.1:7070",
/// "localhost:7070", "[::1]:7070".
struct Endpoint {
  std::filesystem::path socket;  ///< of a Unix socket; empty: TCP
  std::string host;
  std::uint16_t port = 0;    ///< 0: any free one
  std::string text() const;  ///< as gRPC and clients take it
};

/// Throws: Error{kInvalidArgument} for text that is no address, and for TCP beyond loopback: a network is no
/// place for a service without tokens and TLS.
Endpoint parse_endpoint(const std::string& text);

/// Whether an endpoint could be listened on; makes nothing. `flag` is where people would name another.
/// Throws: Error{kUnavailable} when somebody listens there, Error{kPermissionDenied} when the socket's folder
/// is open to others, Error{kInvalidArgument} when the path is too long for a socket or no socket is there.
void check(const Endpoint& endpoint, const char* flag = "--listen");

/// Makes an endpoint ready to be listened on: the socket's folder is this user's alone (0700; created where
/// absent), the socket of a dead scheduler is removed. Returns: the folders that it made. Throws: as `check`.
std::vector<std::filesystem::path> prepare(const Endpoint& endpoint);

/// Closes the home folder to other users, where this is it.
void protect_home(const std::filesystem::path& folder);

/// Adds what is wrong with the store to the end of every answer, as metadata: answers are read from a state
/// that may be lost, and whoever reads one should know. `trouble` is called on gRPC's threads.
class TroubleNotes final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit TroubleNotes(std::function<std::string()> trouble) : trouble_{std::move(trouble)} {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo*) override {
    return new Note{trouble_};
  }

 private:
  class Note final : public grpc::experimental::Interceptor {
   public:
    explicit Note(const std::function<std::string()>& trouble) : trouble_{trouble} {}
    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      using grpc::experimental::InterceptionHookPoints;
      constexpr std::size_t kLongest = 2000;  // metadata has a limit
      if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS))
        if (const std::string trouble = trouble_(); !trouble.empty())
          methods->GetSendTrailingMetadata()->emplace("ablate-trouble-bin", trouble.substr(0, kLongest));
      methods->Proceed();
    }

   private:
    const std::function<std::string()>& trouble_;
  };

  const std::function<std::string()> trouble_;
};

}  // namespace abl::scheduler
