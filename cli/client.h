// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "ablate/v1/access.grpc.pb.h"
#include "ablate/v1/depot.grpc.pb.h"
#include "ablate/v1/retention.grpc.pb.h"
#include "ablate/v1/runs.grpc.pb.h"
#include "ablate/v1/sweeps.grpc.pb.h"
#include "ablate/v1/workers.grpc.pb.h"
#include "access/tls.h"
#include "base/error.h"
#include "cli/context.h"

namespace abl::cli {

using std::chrono::seconds;

/// A connection to the scheduler. Every call has a deadline.
///   const auto sweeps = client.call(&Sweeps::Stub::ListSweeps, ListSweepsRequest{});
class Client {
 public:
  static constexpr seconds kDeadline{15};

  /// `address`: "unix:/path/scheduler.sock" or "host:port", reached as whoever has logged in there.
  explicit Client(std::string address);
  Client(std::string address, access::ClientAccess access);
  /// To the scheduler that the flags name. One that `ablate up` keeps running here may just be starting
  /// again: it is waited for.
  explicit Client(const Context& context);

  const std::string& address() const { return address_; }
  /// By which token, and in which way, it is reached.
  const access::ClientAccess& access() const { return access_; }

  /// Throws: Error with the scheduler's code and message; kUnavailable with what to do when none answers.
  template <class Stub, class Request, class Response>
  Response call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request, seconds deadline = kDeadline) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    Response response;
    const grpc::Status status = (stub<Stub>().*method)(&context, request, &response);
    check(status, deadline);
    pass_on_trouble(context);
    return response;
  }

  /// Reads a stream to its end. A stream that outlives the deadline or loses the scheduler ends with
  /// kDeadlineExceeded or kUnavailable.
  template <class Stub, class Request, class Message>
  void stream(std::unique_ptr<grpc::ClientReader<Message>> (Stub::*method)(grpc::ClientContext*,
                                                                           const Request&),
              const Request& request, const std::function<void(const Message&)>& sink, seconds deadline) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    const auto reader = (stub<Stub>().*method)(&context, request);
    try {
      for (Message message; reader->Read(&message);) sink(message);
    } catch (...) {
      context.TryCancel();
      reader->Finish();
      throw;
    }
    check(reader->Finish(), deadline);
    pass_on_trouble(context);
  }

 private:
  template <class Stub>
  Stub& stub();
  void check(const grpc::Status& status, seconds deadline) const;
  /// Of a call that was ended from there: why its token is good for nothing any more; empty: it is good, or
  /// nobody says.
  std::string why_refused() const;
  /// An answer of a scheduler that can store nothing says so at its end.
  void pass_on_trouble(const grpc::ClientContext& context) const;

  const Context* context_ = nullptr;  // takes notes, where there is one
  std::string address_;
  access::ClientAccess access_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ablate::v1::Sweeps::Stub> sweeps_;
  std::unique_ptr<ablate::v1::Runs::Stub> runs_;
  std::unique_ptr<ablate::v1::Workers::Stub> workers_;
  std::unique_ptr<ablate::v1::Access::Stub> access_service_;
  std::unique_ptr<ablate::v1::Depot::Stub> depot_;
  std::unique_ptr<ablate::v1::Keeping::Stub> keeping_;
};

template <>
inline ablate::v1::Sweeps::Stub& Client::stub() {
  return *sweeps_;
}
template <>
inline ablate::v1::Runs::Stub& Client::stub() {
  return *runs_;
}
template <>
inline ablate::v1::Workers::Stub& Client::stub() {
  return *workers_;
}
template <>
inline ablate::v1::Access::Stub& Client::stub() {
  return *access_service_;
}

template <>
inline ablate::v1::Depot::Stub& Client::stub() {
  return *depot_;
}
template <>
inline ablate::v1::Keeping::Stub& Client::stub() {
  return *keeping_;
}

/// Why no scheduler answers at an address, in one line with what to do. Takes some seconds at most.
Error unreached(const std::string& address, const access::ClientAccess& access);

/// True for what a restart of the scheduler, or a stream's deadline, looks like: worth asking again.
bool is_interruption(const Error& error);

/// Calls `attempt` until it returns; after an interruption of a stream that has brought something (`attempt`
/// sets `progress`) again, as long as the scheduler comes back within a minute. For watch and logs, which
/// must outlive a restart of the scheduler.
void with_reconnection(const std::function<void(bool& progress)>& attempt,
                       const std::function<void(const Error&)>& on_wait);

}  // namespace abl::cli
