// SPDX-License-Identifier: Apache-2.0
// A worker of a release that is not there yet: it says Hello in a protocol that no scheduler speaks, and says
// what it was answered: "code N: message". Usage: chaos_stranger ADDRESS
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <iostream>

#include "ablate/v1/workers.grpc.pb.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: chaos_stranger ADDRESS\n";
    return 2;
  }
  const auto stub =
      ablate::v1::WorkerLink::NewStub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{5});
  const auto stream = stub->Session(&context);
  ablate::v1::WorkerMessage first;
  auto& hello = *first.mutable_hello();
  hello.set_name("stranger");
  hello.set_instance("stranger");
  hello.set_host("elsewhere");
  hello.set_lowest_protocol(99);
  hello.set_highest_protocol(99);
  hello.add_slots()->set_device("cpu");
  stream->Write(first);
  ablate::v1::SchedulerMessage answer;
  if (stream->Read(&answer)) {
    std::cout << "answered: " << answer.ShortDebugString() << '\n';
    return 1;
  }
  const grpc::Status status = stream->Finish();
  std::cout << "code " << status.error_code() << ": " << status.error_message() << '\n';
  return 0;
}
