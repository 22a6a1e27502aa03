// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace abl::scheduler {

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
